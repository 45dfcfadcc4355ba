//! Cases: the parsed content of a file.
//!
//! Parsing is strict: a step run without a key that this runner does not know would test something else than the case claims.

use std::collections::BTreeMap;
use std::path::Path;

use bson::{Bson, Document};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::json::document;
use crate::Result;
use crate::conformance::scenario;

/// The format that this runner reads.
const SCHEMA: &str = "bolide-mongo-ttl/1";

/// The start of a case's name in lists that hold cases of several suites.
const LABEL: &str = "mongo-ttl/";

/// One file: a script of steps in a fresh, empty database.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    schema: String,
    name: String,
    /// The claim of the case.
    pub about: String,
    #[serde(rename = "source")]
    _source: Vec<String>,
    #[serde(rename = "needs")]
    /// The features that the server or the runner must have.
    pub needs: Vec<String>,
    start: Value,
    steps: Vec<RawStep>,
}

/// A step before its kind is known.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    run: Option<Map<String, Value>>,
    expect: Option<Map<String, Value>>,
    db: Option<String>,
    #[serde(default)]
    save: BTreeMap<String, String>,
    advance_ms: Option<i64>,
    visible: Option<Value>,
    coll: Option<String>,
    #[serde(default)]
    restart: bool,
    #[serde(default)]
    down_ms: i64,
}

/// One step.
#[derive(Debug)]
pub enum Step {
    /// Send a command and compare the reply.
    Run(Command),
    /// Move the clock forward, in milliseconds.
    Advance(i64),
    /// Check which documents exist on every read path.
    Visible { ids: Vec<Bson>, collection: String },
    /// Stop the server, let this many milliseconds pass, start it again.
    Restart(i64),
}

/// A command with what is expected of its reply.
#[derive(Debug)]
pub struct Command {
    /// The command without `$db`.
    pub command: Document,
    /// The database if it is not the case's own.
    pub database: Option<String>,
    /// The expected keys of the reply.
    pub expect: Document,
    /// The values to keep: name → dotted path in the reply.
    pub save: BTreeMap<String, String>,
}

impl Case {
    /// The name in reports and in lists of known gaps.
    pub fn label(&self) -> String {
        format!("{LABEL}{}", self.name)
    }

    /// The name of the case's own database.
    pub fn database(&self) -> &str {
        &self.name
    }

    /// Whether the case needs a feature.
    pub fn needs(&self, feature: &str) -> bool {
        self.needs.iter().any(|need| need == feature)
    }

    /// The clock at the start, in epoch milliseconds.
    ///
    /// # Errors
    /// If it is not a date.
    pub fn start_ms(&self) -> Result<i64> {
        match Bson::try_from(self.start.clone())? {
            Bson::DateTime(instant) => Ok(instant.timestamp_millis()),
            other => Err(format!("the start is not a date. start={other}").into()),
        }
    }

    /// The steps.
    ///
    /// # Errors
    /// If one of them has no kind or two.
    pub fn steps(&self) -> Result<Vec<Step>> {
        let parse = |(index, step)| Step::parse(step).map_err(|error| format!("step {}: {error}", index + 1).into());
        self.steps.iter().enumerate().map(parse).collect()
    }
}

impl Step {
    fn parse(step: &RawStep) -> Result<Self> {
        match (&step.run, step.advance_ms, &step.visible, step.restart) {
            (Some(command), None, None, false) => Ok(Self::Run(Command {
                command: document(command.clone())?,
                database: step.db.clone(),
                expect: document(step.expect.clone().unwrap_or_default())?,
                save: step.save.clone(),
            })),
            (None, Some(duration), None, false) => Ok(Self::Advance(duration)),
            (None, None, Some(ids), false) => match Bson::try_from(ids.clone())? {
                Bson::Array(ids) => Ok(Self::Visible {
                    ids,
                    collection: step.coll.clone().ok_or("`visible` without `coll`")?,
                }),
                other => Err(format!("`visible` is not a list. visible={other}").into()),
            },
            (None, None, None, true) => Ok(Self::Restart(step.down_ms)),
            _ => Err("not exactly one of `run`, `advance_ms`, `visible`, `restart`".into()),
        }
    }
}

/// The cases of a folder, in order of name.
///
/// # Errors
/// If a file cannot be read, has another format, or is named differently from its case.
pub fn read_all(folder: &Path) -> Result<Vec<Case>> {
    scenario::files(folder)?.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Case> {
    let with_path = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| with_path(&error))?;
    let case: Case = serde_json::from_str(&text).map_err(|error| with_path(&error))?;
    if case.schema != SCHEMA {
        return Err(with_path(&format!("the format is not {SCHEMA}. schema=`{}`", case.schema)).into());
    }
    if path.file_stem().is_none_or(|stem| stem != case.name.as_str()) {
        return Err(with_path(&format!("the case calls itself `{}`", case.name)).into());
    }
    Ok(case)
}

#[cfg(test)]
mod tests;
