//! What every package must have: the workspace's version, the licences, a page.

use std::fs;
use std::path::Path;

use crate::Result;
use crate::project::Project;

/// The folders of the packages.
const FOLDERS: [&str; 5] = [
    "packages/python",
    "packages/npm",
    "crates/bolide-testing",
    "packages/go",
    "packages/java",
];

/// Files that the workspace's root and each package have, with equal content.
const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// Files that repeat the workspace's version, and what is around it there.
const VERSIONS: [(&str, &str, &str); 3] = [
    ("packages/npm/package.json", "\n  \"version\": \"", "\","),
    ("packages/java/pom.xml", "\n  <version>", "</version>"),
    (
        "packages/java/tests/pom.xml",
        "<artifactId>bolide-testing</artifactId>\n      <version>",
        "</version>",
    ),
];

/// Compares all packages with the workspace, and returns its version.
///
/// # Errors
/// Names every file that differs or is missing.
pub fn check(project: &Project) -> Result<String> {
    let metadata = project.metadata()?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let server = packages
        .filter(|package| package["name"] == "bolide-server")
        .find_map(|package| package["version"].as_str());
    let version = server.ok_or("cargo knows no package bolide-server")?;
    let root = project.root();
    let mut problems = Vec::new();
    for folder in FOLDERS {
        problems.extend(problems_of(root, folder));
    }
    for (file, before, after) in VERSIONS {
        let text = fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
        match between(&text, before, after) {
            Some(found) if found == version => {}
            found => problems.push(format!(
                "{file}: the version is {}, the workspace's is {version}",
                found.unwrap_or("missing")
            )),
        }
    }
    if problems.is_empty() {
        Ok(version.to_owned())
    } else {
        Err(problems.join("; ").into())
    }
}

fn problems_of(root: &Path, folder: &str) -> Vec<String> {
    let read = |path: &str| fs::read(root.join(path)).ok();
    let licences = LICENCES.iter().filter(|name| {
        let copy = read(&format!("{folder}/{name}"));
        copy.is_none() || copy != read(name)
    });
    let mut problems: Vec<String> = licences
        .map(|name| format!("{folder}/{name}: differs from {name}"))
        .collect();
    if read(&format!("{folder}/README.md")).is_none() {
        problems.push(format!("{folder}: there is no README.md"));
    }
    problems
}

/// The first text between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}

#[cfg(test)]
mod tests;
