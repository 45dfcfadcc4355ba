//! Checks of the whole project that no compiler makes: whether documents agree with manifests and files.

mod dependencies;
mod files;
mod functions;
mod layers;
mod links;
mod manifests;
mod raw_reads;
mod requirements;
mod source;
mod wire_texts;

use std::path::{Path, PathBuf};

use crate::project::Project;
use crate::{Result, compatibility, conformance};

/// Directories without files of ours.
const NOT_OURS: [&str; 7] = [
    "target",
    "node_modules",
    ".git",
    ".venv",
    "bolide-data",
    "corpus",
    "__pycache__",
];

/// A text file of the project.
struct TextFile {
    /// Relative to the project's root, with `/` on every platform.
    path: String,
    text: String,
}

/// Runs all checks and prints every problem found.
///
/// # Errors
/// If there is any problem.
pub fn run(project: &Project) -> Result<()> {
    let files = text_files(project.root())?;
    let metadata = project.metadata()?;
    let architecture = read(&files, "ARCHITECTURE.md")?;
    let requirements = read(&files, "docs/ttl-requirements.md")?;

    let mut problems = dependencies::check(architecture, &metadata);
    problems.extend(layers::check(architecture, &files));
    problems.extend(manifests::check(&metadata, &files));
    problems.extend(files::check(&files));
    problems.extend(raw_reads::check(&files));
    problems.extend(wire_texts::check(&files));
    problems.extend(links::check(&files, project.root()));
    problems.extend(requirements::check(requirements, &files));
    problems.extend(conformance::check_files(project).err().map(|error| error.to_string()));
    for (page, content) in compatibility::render(project)? {
        if content != read(&files, page)? {
            problems.push(format!("{page} is out of date; run `cargo xtask compatibility`"));
        }
    }
    for problem in &problems {
        println!("tidy: {problem}");
    }
    println!("tidy: {} files, {} problems", files.len(), problems.len());
    if problems.is_empty() {
        Ok(())
    } else {
        Err(format!("{} problems", problems.len()).into())
    }
}

fn read<'a>(files: &'a [TextFile], path: &str) -> Result<&'a str> {
    let file = files
        .iter()
        .find(|file| file.path == path)
        .ok_or_else(|| format!("there is no {path}"))?;
    Ok(&file.text)
}

/// All text files, in order of path.
fn text_files(root: &Path) -> Result<Vec<TextFile>> {
    let mut paths = Vec::new();
    collect(root, &mut paths)?;
    paths.sort();
    Ok(paths.iter().filter_map(|path| read_text(root, path)).collect())
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let kind = entry.file_type()?;
        if kind.is_dir() && !NOT_OURS.iter().any(|skipped| name == *skipped) {
            collect(&entry.path(), paths)?;
        } else if kind.is_file() && is_text(&entry.path()) {
            paths.push(entry.path());
        }
    }
    Ok(())
}

fn is_text(path: &Path) -> bool {
    let endings = [
        "rs", "toml", "md", "json", "py", "js", "mjs", "yml", "yaml", "sql", "sh",
    ];
    let has_ending = path
        .extension()
        .is_some_and(|extension| endings.iter().any(|ending| extension == *ending));
    has_ending || path.components().any(|part| part.as_os_str() == "testscripts")
}

fn read_text(root: &Path, path: &Path) -> Option<TextFile> {
    let relative = path
        .strip_prefix(root)
        .ok()?
        .components()
        .map(|part| part.as_os_str().to_string_lossy());
    let path_text = relative.collect::<Vec<_>>().join("/");
    Some(TextFile {
        path: path_text,
        text: std::fs::read_to_string(path).ok()?,
    })
}
