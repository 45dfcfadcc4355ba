//! The licences of everything that is compiled into the binary: each wants its text to be passed on.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Result;
use crate::project::Project;

/// Files with the terms of a licence begin with one of these, in any case.
const NAMES: [&str; 5] = ["license", "licence", "copying", "notice", "unlicense"];
/// C sources inside of crates have their own files, some folders below.
const DEPTH: usize = 4;
/// The licences of the packages in the data explorer, which its build collects.
const EXPLORER: &str = "explorer/dist/licences.md";
/// The package of the binary.
const ROOT: &str = "bolide-server";

/// Each package with its licence, then each text once, with the packages that it belongs to.
pub fn text(project: &Project, target: &str) -> Result<Vec<u8>> {
    let metadata = project.dependencies(target)?;
    let mut summary = String::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in linked(&metadata) {
        let text = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
        let name = format!("{} {}", text("name"), text("version"));
        summary.push_str(&format!("{name}: {}\n", text("license")));
        let manifest = PathBuf::from(text("manifest_path"));
        let mut files = Vec::new();
        find(manifest.parent().unwrap_or(Path::new(".")), DEPTH, &mut files);
        files.sort();
        for file in files {
            let terms = String::from_utf8_lossy(&fs::read(file)?)
                .replace("\r\n", "\n")
                .trim()
                .to_owned();
            let packages = texts.entry(terms).or_default();
            if packages.last() != Some(&name) {
                packages.push(name.clone());
            }
        }
    }
    let mut all = format!("Bolide contains these packages:\n\n{summary}");
    let mut ordered: Vec<(Vec<String>, String)> =
        texts.into_iter().map(|(terms, packages)| (packages, terms)).collect();
    ordered.sort();
    for (packages, terms) in ordered {
        all.push_str(&format!("\n{}\n{}\n\n{terms}\n", "=".repeat(100), packages.join(", ")));
    }
    // The built explorer is compiled in, too.
    let explorer = fs::read_to_string(project.root().join(EXPLORER))?;
    all.push_str(&format!(
        "\n{}\nThe data explorer\n\n{}\n",
        "=".repeat(100),
        explorer.trim()
    ));
    Ok(all.into_bytes())
}

/// The packages from registries that are linked into the binary: those that it uses, directly or not, other than for building and testing.
fn linked(metadata: &Value) -> Vec<&Value> {
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let packages: HashMap<&str, &Value> = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let nodes: HashMap<String, Value> = list(&metadata["resolve"]["nodes"])
        .into_iter()
        .filter_map(|node| Some((node["id"].as_str()?.to_owned(), node)))
        .collect();
    let root = packages
        .iter()
        .find(|(_, package)| package["name"] == ROOT)
        .map(|(id, _)| (*id).to_owned());
    let mut waiting: Vec<String> = root.into_iter().collect();
    let mut seen = HashSet::new();
    while let Some(id) = waiting.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        for dependency in nodes.get(&id).map(|node| list(&node["deps"])).unwrap_or_default() {
            // No kind: a usual dependency.
            let is_linked = list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
            if let Some(package) = dependency["pkg"].as_str().filter(|_| is_linked) {
                waiting.push(package.to_owned());
            }
        }
    }
    let is_foreign = |package: &&&Value| !package["source"].is_null();
    let found = packages
        .iter()
        .filter(|(id, _)| seen.contains(**id))
        .map(|(_, package)| package);
    let mut found: Vec<&Value> = found.filter(is_foreign).copied().collect();
    found.sort_by_key(|package| (package["name"].as_str(), package["version"].as_str()));
    found
}

fn find(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
        if path.is_dir() {
            if depth > 0 {
                find(&path, depth - 1, found);
            }
        } else if NAMES.iter().any(|known| name.starts_with(known)) && !name.ends_with(".rs") {
            found.push(path);
        }
    }
}

#[cfg(test)]
mod tests;
