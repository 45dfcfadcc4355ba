//! What every package must have: the workspace's version, the licences, a page; and examples that are tests.

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

/// Examples, and the page that has each of them word for word.
const EXAMPLES: [&str; 6] = [
    "packages/python/tests/test_example.py",
    "packages/python/tests/test_example_fixtures.py",
    "packages/npm/tests/node/example.test.mjs",
    "packages/npm/tests/vitest/example.test.ts",
    "packages/go/tests/example/example_test.go",
    "packages/java/tests/src/test/java/ExampleTest.java",
];
const PAGE: &str = "docs/testing.md";

/// Files that repeat the workspace's version, and what is around it there.
const VERSIONS: [(&str, &str, &str); 4] = [
    ("packages/npm/package.json", "\n  \"version\": \"", "\","),
    ("packages/java/pom.xml", "\n  <version>", "</version>"),
    (
        "docs/testing.md",
        "<artifactId>bolide-testing</artifactId>\n  <version>",
        "</version>",
    ),
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
    let read = |file: &str| fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"));
    let mut problems = Vec::new();
    for folder in FOLDERS {
        problems.extend(problems_of(root, folder));
    }
    for (file, before, after) in VERSIONS {
        match between(&read(file)?, before, after) {
            Some(found) if found == version => {}
            found => problems.push(format!(
                "{file}: the version is {}, the workspace's is {version}",
                found.unwrap_or("missing")
            )),
        }
    }
    let page = read(PAGE)?;
    for example in EXAMPLES {
        if !page.contains(&format!("\n{}```\n", read(example)?)) {
            problems.push(format!("{PAGE}: has not what is in {example}"));
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
