//! Links from one document of the project to another.

use std::path::Path;

use super::TextFile;

/// Checks that every relative link in a document leads to an existing file.
pub fn check(files: &[TextFile], root: &Path) -> Vec<String> {
    let documents = files.iter().filter(|file| file.path.ends_with(".md"));
    let broken = |file: &TextFile| {
        let directory = root.join(&file.path);
        let directory = directory.parent().unwrap_or(root).to_path_buf();
        let missing = links_in(&file.text).filter(move |link| !directory.join(link).exists());
        missing
            .map(|link| format!("{}: the link to {link} leads nowhere", file.path))
            .collect::<Vec<_>>()
    };
    documents.flat_map(broken).collect()
}

/// The files in `[text](file#heading)` links; links to other sites and to headings on the same page are left out.
fn links_in(text: &str) -> impl Iterator<Item = &str> {
    let targets = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    let files =
        targets.filter(|target| !target.contains("://") && !target.starts_with('#') && !target.starts_with("mailto:"));
    files.filter_map(|target| target.split('#').next())
}

#[cfg(test)]
mod tests;
