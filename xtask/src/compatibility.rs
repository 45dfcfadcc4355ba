//! `cargo xtask compatibility`: the compatibility pages, from a list of features and from the results of client tours and SDK tests.
//!
//! A cell says yes if a named check passed with that SDK, or a file of its own tests ran for it. So the pages claim only what was run, and `tidy`
//! checks that they are current. Suites that were never run with `--results` are not on them.

mod mongo;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use serde::Deserialize;

use crate::Result;
use crate::project::Project;

/// The path of the page of the Cosmos DB API.
const PAGE: &str = "docs/compatibility/cosmos.md";
const FEATURES: &str = "conformance/clients/features.json";
const RESULTS: &str = "conformance/clients/results.json";
/// For each SDK whose own tests run: its key in the results, its name, the list of expected failures.
const SUITES: [(&str, &str, &str); 3] = [
    (
        "python",
        "Python",
        "conformance/clients/python/sdk_expected_failures.json",
    ),
    ("go", "Go", "conformance/clients/go/sdk_expected_failures.json"),
    ("rust", "Rust", "conformance/clients/rust/sdk_expected_failures.json"),
];

#[derive(Deserialize)]
struct Features {
    sdks: Vec<Sdk>,
    features: Vec<Feature>,
}

#[derive(Deserialize)]
struct Sdk {
    key: String,
    name: String,
}

#[derive(Deserialize)]
struct Feature {
    area: String,
    feature: String,
    state: String,
    note: String,
    checks: Vec<String>,
    files: Vec<String>,
}

#[derive(Deserialize)]
struct Results {
    checks: BTreeMap<String, Vec<String>>,
    files: BTreeMap<String, Files>,
}

/// For an SDK's own tests: file → how many passed and how many failed as listed.
type Files = BTreeMap<String, BTreeMap<String, u64>>;

#[derive(Deserialize)]
struct Known {
    expected_failures: BTreeMap<String, String>,
    not_run: BTreeMap<String, String>,
}

/// Writes the pages.
///
/// # Errors
/// If a file is missing or has another format, or a feature names a check that no tour has.
pub fn run(project: &Project) -> Result<()> {
    for (path, content) in render(project)? {
        let page = project.root().join(path);
        fs::create_dir_all(page.parent().ok_or("the page has no folder")?)?;
        fs::write(page, content)?;
        println!("{path} is written");
    }
    Ok(())
}

/// The path and the expected content of each page.
///
/// # Errors
/// As [`run`].
pub fn render(project: &Project) -> Result<Vec<(&'static str, String)>> {
    let results: Results = read(project, RESULTS)?;
    Ok(vec![
        (PAGE, render_cosmos(project, &results)?),
        (mongo::PAGE, mongo::render(project, &results)?),
    ])
}

fn render_cosmos(project: &Project, results: &Results) -> Result<String> {
    let features: Features = read(project, FEATURES)?;
    let mut page = String::from(
        "# Compatibility with Azure Cosmos DB for NoSQL\n\n\
         Made by `cargo xtask compatibility` from what ran; do not edit by hand. A cell says yes where a check passed with that SDK, and is\n\
         empty where none has tried.\n\n",
    );
    write_features(&mut page, &features, results)?;
    for (sdk, name, list) in SUITES {
        if let Some(files) = results.files.get(sdk) {
            write_files(
                &mut page,
                &format!("The {name} SDK's own tests"),
                files,
                &read(project, list)?,
            )?;
        }
    }
    Ok(page)
}

fn read<T: for<'de> Deserialize<'de>>(project: &Project, path: &str) -> Result<T> {
    let text = fs::read_to_string(project.root().join(path)).map_err(|error| format!("{path}: {error}"))?;
    Ok(serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))?)
}

fn write_features(page: &mut String, features: &Features, results: &Results) -> Result<()> {
    let names: Vec<&str> = features.sdks.iter().map(|sdk| sdk.name.as_str()).collect();
    let mut area = "";
    for feature in &features.features {
        if feature.area != area {
            area = &feature.area;
            writeln!(page, "## {area}\n\n| feature | state | {} | |", names.join(" | "))?;
            writeln!(page, "| --- | --- |{} --- |", " --- |".repeat(names.len()))?;
        }
        let mut cells = Vec::new();
        for sdk in &features.sdks {
            cells.push(if is_shown(feature, &sdk.key, results) {
                "yes"
            } else {
                ""
            });
        }
        for check in &feature.checks {
            if !results.checks.values().flatten().any(|passed| passed == check) {
                return Err(format!("no tour has passed the check that `{}` names: {check}", feature.feature).into());
            }
        }
        let Feature {
            feature: name,
            state,
            note,
            ..
        } = feature;
        writeln!(page, "| {name} | {state} | {} | {note} |", cells.join(" | "))?;
        let is_last = features
            .features
            .iter()
            .rfind(|other| other.area == area)
            .is_some_and(|last| last.feature == *name);
        if is_last {
            page.push('\n');
        }
    }
    Ok(())
}

fn is_shown(feature: &Feature, sdk: &str, results: &Results) -> bool {
    let passed = results.checks.get(sdk).map_or(&[][..], Vec::as_slice);
    let ran = |file: &String| {
        results
            .files
            .get(sdk)
            .and_then(|files| files.get(file))
            .and_then(|counts| counts.get("passed"))
            .is_some_and(|count| *count > 0)
    };
    feature.checks.iter().any(|check| passed.contains(check)) || feature.files.iter().any(ran)
}

fn write_files(page: &mut String, title: &str, files: &Files, known: &Known) -> Result<()> {
    if !page.ends_with("\n\n") {
        page.push('\n');
    }
    writeln!(page, "## {title}\n")?;
    writeln!(
        page,
        "| file | passed | fail for a listed reason |\n| --- | --- | --- |"
    )?;
    for (file, counts) in files {
        let count = |name: &str| counts.get(name).copied().unwrap_or_default();
        writeln!(page, "| `{file}` | {} | {} |", count("passed"), count("fail as listed"))?;
    }
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for (test, reason) in known.expected_failures.iter().chain(&known.not_run) {
        // Several suites may share a list.
        let file = test.split_once("::").map_or(test.as_str(), |(file, _)| file);
        if files.contains_key(file) {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    if reasons.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "\n| why tests of all files fail or are left out | tests |\n| --- | --- |"
    )?;
    for (reason, tests) in reasons {
        writeln!(page, "| {reason} | {tests} |")?;
    }
    Ok(())
}
