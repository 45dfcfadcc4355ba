//! Compares the result of a step with its expectations.
//!
//! Objects in expectations are subsets; lists have exactly the given length, and the given order unless the key ends in `AnyOrder`; numbers compare
//! as numbers; etags and charges compare with those saved under a label.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// The result of a step, with the names that expectations use.
#[derive(Debug, Default)]
pub struct StepResult {
    /// The result fields: `status`, `body`, `values` and so on.
    pub fields: Map<String, Value>,
    /// The values that a label saves.
    pub kept: SavedValues,
    /// The server's error message, if it refused.
    pub message: Option<String>,
}

/// The values saved from the result of a step.
#[derive(Clone, Debug, Default)]
pub struct SavedValues {
    /// The etag of the item or container.
    pub etag: Option<String>,
    /// Request units.
    pub charge: Option<f64>,
    /// The continuation of a query or feed.
    pub continuation: Option<String>,
    /// The cursor that a command of the MongoDB API opened; 0 if it gave all its documents at once.
    pub cursor: Option<i64>,
}

/// The saved values, by label.
pub type Labels = HashMap<String, SavedValues>;

impl StepResult {
    /// A result with only a status.
    pub fn of_status(status: u16) -> Self {
        Self::default().with("status", status)
    }

    /// Whether the status means success.
    pub fn succeeded(&self) -> bool {
        matches!(self.fields.get("status").and_then(Value::as_u64), Some(200..300))
    }

    /// Adds a result field.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }
}

/// Checks a result; without expectations it must be a success.
///
/// # Errors
/// The first difference, as `what: expected …, got …`.
pub fn check(expected: Option<&Map<String, Value>>, answer: &StepResult, labels: &Labels) -> Result<(), String> {
    match expected {
        Some(expected) => expected
            .iter()
            .try_for_each(|(key, value)| check_field(key, value, answer, labels)),
        None => match answer.fields.get("status").and_then(Value::as_u64) {
            Some(200..300) => Ok(()),
            None if answer.fields.get("ok").is_none_or(|ok| ok.as_f64() == Some(1.0)) => Ok(()),
            None => Err(differs("ok", 1, answer.fields["ok"].clone(), answer)),
            Some(status) => Err(differs("status", "a success", status, answer)),
        },
    }
}

fn check_field(key: &str, expected: &Value, answer: &StepResult, labels: &Labels) -> Result<(), String> {
    match key {
        "absent" => check_absent(expected, answer),
        "etag" => check_etag(expected, answer, labels),
        "charge" => check_charge(expected, answer, labels),
        "docsWithout" => check_documents_without(expected, answer),
        "minIndexesAdded" => check_indexes_added(expected, answer),
        _ => {
            let got = answer
                .fields
                .get(key)
                .ok_or_else(|| differs(key, expected, "nothing", answer))?;
            let holds = match key {
                // Events list all their members: a member that is not expected must not exist.
                "events" => expected == got,
                _ if key.ends_with("AnyOrder") => matches_in_any_order(expected, got),
                _ => matches(expected, got),
            };
            if holds {
                Ok(())
            } else {
                Err(differs(key, expected, got, answer))
            }
        }
    }
}

fn check_absent(expected: &Value, answer: &StepResult) -> Result<(), String> {
    let body = answer
        .fields
        .get("body")
        .and_then(Value::as_object)
        .ok_or("absent: the answer has no body")?;
    let names = expected.as_array().ok_or("absent: not a list")?;
    match names
        .iter()
        .filter_map(Value::as_str)
        .find(|name| body.contains_key(*name))
    {
        Some(present) => Err(format!("absent: the body has `{present}`: {}", body[present])),
        None => Ok(()),
    }
}

/// No document of the first batch has a field.
fn check_documents_without(expected: &Value, answer: &StepResult) -> Result<(), String> {
    let field = expected.as_str().ok_or("docsWithout: not a name")?;
    let values = answer.fields.get("values").and_then(Value::as_array);
    let documents = values.ok_or_else(|| differs("docsWithout", "documents", "none", answer))?;
    match documents.iter().find(|document| document.get(field).is_some()) {
        Some(document) => Err(format!("docsWithout: a document has `{field}`: {document}")),
        None => Ok(()),
    }
}

/// A command has created at least so many indexes.
fn check_indexes_added(expected: &Value, answer: &StepResult) -> Result<(), String> {
    let count = |name: &str| answer.fields.get(name).and_then(Value::as_f64);
    let added = count("numIndexesAfter")
        .zip(count("numIndexesBefore"))
        .map(|(after, before)| after - before);
    match (added, expected.as_f64()) {
        (Some(added), Some(least)) if added >= least => Ok(()),
        _ => Err(differs("minIndexesAdded", expected, format!("{added:?}"), answer)),
    }
}

fn check_etag(expected: &Value, answer: &StepResult, labels: &Labels) -> Result<(), String> {
    let (relation, label) = relation(expected)?;
    let before = kept(label, labels)?.etag.as_ref();
    let now = answer.kept.etag.as_ref();
    match (relation, now.is_some() && now == before) {
        ("same", true) | ("changed", false) if now.is_some() => Ok(()),
        _ => Err(differs(
            "etag",
            format!("{relation} as {before:?}"),
            format!("{now:?}"),
            answer,
        )),
    }
}

fn check_charge(expected: &Value, answer: &StepResult, labels: &Labels) -> Result<(), String> {
    let (relation, label) = relation(expected)?;
    let before = kept(label, labels)?.charge;
    let now = answer.kept.charge;
    if relation == "same" && now.is_some() && now == before {
        return Ok(());
    }
    Err(differs(
        "charge",
        format!("{relation} as {before:?}"),
        format!("{now:?}"),
        answer,
    ))
}

/// Splits `same:label` into its two words.
fn relation(expected: &Value) -> Result<(&str, &str), String> {
    expected
        .as_str()
        .and_then(|text| text.split_once(':'))
        .ok_or_else(|| format!("not `relation:label`: {expected}"))
}

/// The values saved under a label.
pub fn kept<'a>(label: &str, labels: &'a Labels) -> Result<&'a SavedValues, String> {
    labels
        .get(label)
        .ok_or_else(|| format!("nothing is kept under the label `{label}`"))
}

/// Whether a value has all expected members.
fn matches(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => expected
            .iter()
            .all(|(key, value)| got.get(key).is_some_and(|got| matches(value, got))),
        (Value::Array(expected), Value::Array(got)) => {
            expected.len() == got.len() && expected.iter().zip(got).all(|(expected, got)| matches(expected, got))
        }
        (Value::Number(expected), Value::Number(got)) => expected == got || expected.as_f64() == got.as_f64(),
        _ => expected == got,
    }
}

/// Whether each expected element has a different counterpart.
fn matches_in_any_order(expected: &Value, got: &Value) -> bool {
    let (Value::Array(expected), Value::Array(got)) = (expected, got) else {
        return false;
    };
    expected.len() == got.len() && pair_up(expected, &mut got.iter().collect())
}

/// Finds counterparts by backtracking: a subset may match several elements, so the first match is not always right.
fn pair_up(expected: &[Value], left: &mut Vec<&Value>) -> bool {
    let Some((first, rest)) = expected.split_first() else {
        return true;
    };
    (0..left.len()).any(|index| {
        if !matches(first, left[index]) {
            return false;
        }
        let tried = left.remove(index);
        let fits = pair_up(rest, left);
        left.insert(index, tried);
        fits
    })
}

fn differs(what: &str, expected: impl std::fmt::Display, got: impl std::fmt::Display, answer: &StepResult) -> String {
    let message = answer
        .message
        .as_ref()
        .map(|message| format!(" ({message})"))
        .unwrap_or_default();
    format!("{what}: expected {expected}, got {got}{message}")
}

#[cfg(test)]
mod tests;
