//! The list of scenarios that fail for a known reason: `conformance/known_gaps.json`, name → reason.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Result;

/// The reason for each known failure.
pub type KnownGaps = BTreeMap<String, String>;

/// Reads the list.
///
/// # Errors
/// If it is not an object of strings, or a reason is empty: a gap that nobody can explain is a bug.
pub fn read(path: &Path) -> Result<KnownGaps> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text).map_err(|error| format!("{}: {error}", path.display()).into())
}

fn parse(text: &str) -> Result<KnownGaps> {
    let gaps: KnownGaps = serde_json::from_str(text)?;
    match gaps.iter().find(|(_, reason)| reason.trim().is_empty()) {
        Some((name, _)) => Err(format!("no reason is given for `{name}`").into()),
        None => Ok(gaps),
    }
}

#[cfg(test)]
mod tests;
