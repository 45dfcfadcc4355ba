//! Finds and reads case files.

use std::path::PathBuf;

use serde_json::Value as Json;

/// The number of cases of each family.
const COUNTS: &str = include_str!("../../../../conformance/case_counts.json");

/// Every case of a family with the name of its topic; `None` if the cases are not available, after printing how many do not run. They are next to the
/// project, in `../shared/cases`, or in the folder that `BOLIDE_CASES` names.
pub fn load(family: &str) -> Option<Vec<(String, Json)>> {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/cases"));
    let folder = std::env::var_os("BOLIDE_CASES").map_or_else(beside, PathBuf::from);
    let Ok(entries) = std::fs::read_dir(folder.join(family)) else {
        let counts: Json = serde_json::from_str(COUNTS).unwrap();
        let count = &counts[family];
        println!("not run: {count} {family} cases, which are not beside the project; BOLIDE_CASES names their folder");
        return None;
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut cases = Vec::new();
    for file in files
        .iter()
        .filter(|file| file.extension().is_some_and(|ext| ext == "json"))
    {
        let topic = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let list: Vec<Json> = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        cases.extend(list.into_iter().map(|case| (topic.clone(), case)));
    }
    Some(cases)
}

/// Counts outcomes per topic and compares them with the known failures.
pub fn report(outcomes: &[(String, String, Option<String>)], known: &[(&str, &str)]) {
    let mut topics: std::collections::BTreeMap<&str, (usize, usize)> = std::collections::BTreeMap::new();
    let mut wrong = Vec::new();
    for (topic, name, failure) in outcomes {
        let entry = topics.entry(topic).or_default();
        entry.1 += 1;
        entry.0 += usize::from(failure.is_none());
        let reason = known
            .iter()
            .find(|(listed, _)| listed == name)
            .map(|(_, reason)| *reason);
        match (failure, reason) {
            (Some(failure), None) => wrong.push(format!("{name}: {failure}")),
            (None, Some(reason)) => wrong.push(format!("{name}: passes, although listed as: {reason}")),
            _ => {}
        }
    }
    for (topic, (passed, all)) in &topics {
        println!("{topic}: {passed}/{all}");
    }
    assert!(
        wrong.is_empty(),
        "{} unexpected outcomes:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
