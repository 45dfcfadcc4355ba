//! Judges an answer by what its step expects.
//!
//! Objects in expectations are subsets; lists have exactly the given length, and the given order unless the key ends in `AnyOrder`; numbers
//! compare as numbers; etags and charges compare with those kept under a label.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// What a step saw, under the names that expectations use.
#[derive(Debug, Default)]
pub struct Answer {
    /// The result fields: `status`, `body`, `values` and so on.
    pub fields: Map<String, Value>,
    /// What a label keeps.
    pub kept: Kept,
    /// What the server said when it refused.
    pub message: Option<String>,
}

/// What a label keeps of an answer.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// The etag of the item or container.
    pub etag: Option<String>,
    /// Request units.
    pub charge: Option<f64>,
    /// Where a query or feed goes on.
    pub continuation: Option<String>,
}

/// What was kept, by label.
pub type Labels = HashMap<String, Kept>;

impl Answer {
    /// An answer that has a status and nothing else yet.
    pub fn of_status(status: u16) -> Self {
        Self::default().with("status", status)
    }

    /// Whether the status is one of success.
    pub fn succeeded(&self) -> bool {
        matches!(self.fields.get("status").and_then(Value::as_u64), Some(200..300))
    }

    /// Adds a result field.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }
}

/// Checks an answer; without expectations it must be a success.
///
/// # Errors
/// The first difference, as `what: expected …, got …`.
pub fn check(expected: Option<&Map<String, Value>>, answer: &Answer, labels: &Labels) -> Result<(), String> {
    match expected {
        Some(expected) => expected
            .iter()
            .try_for_each(|(key, value)| check_field(key, value, answer, labels)),
        None => match answer.fields.get("status").and_then(Value::as_u64) {
            Some(200..300) | None => Ok(()),
            Some(status) => Err(differs("status", "a success", status, answer)),
        },
    }
}

fn check_field(key: &str, expected: &Value, answer: &Answer, labels: &Labels) -> Result<(), String> {
    match key {
        "absent" => check_absent(expected, answer),
        "etag" => check_etag(expected, answer, labels),
        "charge" => check_charge(expected, answer, labels),
        _ => {
            let got = answer
                .fields
                .get(key)
                .ok_or_else(|| differs(key, expected, "nothing", answer))?;
            let holds = match key {
                // Events name everything they have: a mark that is not expected must not be there.
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

fn check_absent(expected: &Value, answer: &Answer) -> Result<(), String> {
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

fn check_etag(expected: &Value, answer: &Answer, labels: &Labels) -> Result<(), String> {
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

fn check_charge(expected: &Value, answer: &Answer, labels: &Labels) -> Result<(), String> {
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

/// What is kept under a label.
pub fn kept<'a>(label: &str, labels: &'a Labels) -> Result<&'a Kept, String> {
    labels
        .get(label)
        .ok_or_else(|| format!("nothing is kept under the label `{label}`"))
}

/// Whether a value has everything that is expected of it.
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

/// Whether each expected element has a counterpart of its own.
fn matches_in_any_order(expected: &Value, got: &Value) -> bool {
    let (Value::Array(expected), Value::Array(got)) = (expected, got) else {
        return false;
    };
    expected.len() == got.len() && pair_up(expected, &mut got.iter().collect())
}

/// Finds counterparts by trying: a subset may fit several elements, so the first fit is not always the right one.
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

fn differs(what: &str, expected: impl std::fmt::Display, got: impl std::fmt::Display, answer: &Answer) -> String {
    let message = answer
        .message
        .as_ref()
        .map(|message| format!(" ({message})"))
        .unwrap_or_default();
    format!("{what}: expected {expected}, got {got}{message}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(fields: &Value) -> Answer {
        Answer {
            fields: fields.as_object().expect("an object").clone(),
            ..Answer::default()
        }
    }

    fn judge(expected: &Value, fields: &Value) -> Result<(), String> {
        check(expected.as_object(), &answer(fields), &Labels::new())
    }

    fn with_etag(etag: &str) -> Answer {
        Answer {
            kept: Kept {
                etag: Some(etag.to_owned()),
                ..Kept::default()
            },
            ..Answer::default()
        }
    }

    #[test]
    fn properties_not_named_are_not_looked_at_at_any_depth() {
        let body = json!({"body": {"a": {"b": 1, "c": 2}, "d": 3}});
        assert_eq!(judge(&json!({"body": {"a": {"b": 1}}}), &body), Ok(()));
        assert!(judge(&json!({"body": {"a": {"b": 2}}}), &body).is_err());
        assert!(judge(&json!({"body": {"e": null}}), &body).is_err());
    }

    #[test]
    fn numbers_compare_as_numbers_and_not_as_text() {
        assert_eq!(judge(&json!({"credit": 20}), &json!({"credit": 20.0})), Ok(()));
        assert!(judge(&json!({"credit": 20}), &json!({"credit": 20.5})).is_err());
        assert!(judge(&json!({"credit": 20}), &json!({"credit": "20"})).is_err());
        assert!(judge(&json!({"n": 9007199254740993_u64}), &json!({"n": "9007199254740993"})).is_err());
    }

    #[test]
    fn lists_have_the_given_length_and_order() {
        assert_eq!(judge(&json!({"values": [1, 2]}), &json!({"values": [1, 2]})), Ok(()));
        assert!(judge(&json!({"values": [1, 2]}), &json!({"values": [2, 1]})).is_err());
        assert!(judge(&json!({"values": [1]}), &json!({"values": [1, 2]})).is_err());
    }

    #[test]
    fn any_order_still_counts_duplicates() {
        assert_eq!(
            judge(
                &json!({"valuesAnyOrder": [1, 2, 1]}),
                &json!({"valuesAnyOrder": [1, 1, 2]})
            ),
            Ok(())
        );
        assert!(
            judge(
                &json!({"valuesAnyOrder": [1, 2, 2]}),
                &json!({"valuesAnyOrder": [1, 1, 2]})
            )
            .is_err()
        );
    }

    #[test]
    fn any_order_finds_the_pairing_when_one_subset_fits_two_elements() {
        let expected = json!({"valuesAnyOrder": [{"a": 1}, {"a": 1, "b": 2}]});
        assert_eq!(
            judge(
                &expected,
                &json!({"valuesAnyOrder": [{"a": 1, "b": 2}, {"a": 1, "b": 3}]})
            ),
            Ok(())
        );
    }

    #[test]
    fn a_ttl_mark_that_is_not_expected_must_not_be_there() {
        let marked = json!({"events": [{"op": "delete", "id": "a", "ttlExpired": true}]});
        assert_eq!(judge(&marked, &marked), Ok(()));
        assert!(judge(&json!({"events": [{"op": "delete", "id": "a"}]}), &marked).is_err());
    }

    #[test]
    fn absent_properties_are_reported_with_their_value() {
        let body = json!({"body": {"ttl": 5}});
        assert_eq!(judge(&json!({"absent": ["defaultTtl"]}), &body), Ok(()));
        assert_eq!(
            judge(&json!({"absent": ["ttl"]}), &body),
            Err("absent: the body has `ttl`: 5".to_owned())
        );
        assert!(judge(&json!({"absent": ["ttl"]}), &json!({"status": 404})).is_err());
    }

    #[test]
    fn an_etag_is_the_same_or_changed_but_never_missing() {
        let labels = Labels::from([("v1".to_owned(), with_etag("\"1\"").kept)]);
        let judge = |expected: &str, answer: &Answer| check(json!({"etag": expected}).as_object(), answer, &labels);
        assert_eq!(judge("same:v1", &with_etag("\"1\"")), Ok(()));
        assert_eq!(judge("changed:v1", &with_etag("\"2\"")), Ok(()));
        assert!(judge("changed:v1", &with_etag("\"1\"")).is_err());
        assert!(judge("same:v1", &with_etag("\"2\"")).is_err());
        assert!(judge("changed:v1", &Answer::default()).is_err());
        assert!(judge("same:v2", &with_etag("\"1\"")).is_err());
    }

    #[test]
    fn a_charge_is_compared_with_the_one_kept() {
        let of = |charge| Answer {
            kept: Kept {
                charge: Some(charge),
                ..Kept::default()
            },
            ..Answer::default()
        };
        let labels = Labels::from([("v1".to_owned(), of(4.95).kept)]);
        let expected = json!({"charge": "same:v1"});
        assert_eq!(check(expected.as_object(), &of(4.95), &labels), Ok(()));
        assert!(check(expected.as_object(), &of(5.0), &labels).is_err());
        assert!(check(expected.as_object(), &Answer::default(), &labels).is_err());
    }

    #[test]
    fn without_expectations_a_step_must_succeed() {
        assert_eq!(check(None, &answer(&json!({"status": 201})), &Labels::new()), Ok(()));
        let refused = Answer {
            message: Some("no such container".to_owned()),
            ..answer(&json!({"status": 404}))
        };
        let difference = check(None, &refused, &Labels::new()).expect_err("404 is no success");
        assert_eq!(difference, "status: expected a success, got 404 (no such container)");
    }
}
