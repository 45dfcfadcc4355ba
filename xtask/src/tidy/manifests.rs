//! Rules for the manifests of all crates.

use serde_json::Value;

use super::TextFile;

/// Checks that each crate has a description and a licence and uses the workspace's lints.
pub fn check(metadata: &Value, files: &[TextFile]) -> Vec<String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let described = packages.flat_map(|package| {
        let missing = ["description", "license"]
            .into_iter()
            .filter(|field| package[*field].as_str().is_none_or(str::is_empty));
        missing
            .map(|field| format!("{}: the manifest has no {field}", package["name"]))
            .collect::<Vec<_>>()
    });
    let unlinted = files
        .iter()
        .filter(|file| is_crate_manifest(&file.path) && !takes_workspace_lints(&file.text));
    described
        .chain(unlinted.map(|file| format!("{}: no `[lints] workspace = true`", file.path)))
        .collect()
}

fn is_crate_manifest(path: &str) -> bool {
    path == "xtask/Cargo.toml" || (path.starts_with("crates/") && path.ends_with("/Cargo.toml"))
}

fn takes_workspace_lints(manifest: &str) -> bool {
    manifest
        .lines()
        .skip_while(|line| line.trim() != "[lints]")
        .nth(1)
        .is_some_and(|line| line.trim() == "workspace = true")
}

#[cfg(test)]
mod tests;
