//! Which queries may run on the thread of their request ([`crate::executor::Executor::run_here`]), as far as that can be told without compiling them.

use serde_json::Value;

use super::QueryItems;

/// Maximum length of the text.
const TEXT_BYTES: usize = 1_024;
/// Maximum number of operators and brackets in it: the stack of that thread is small.
const OPERATORS: usize = 32;
/// Maximum length of the parameters, with [`VALUE_BYTES`] for each value in them.
const PARAMETER_BYTES: usize = 1_024;
const VALUE_BYTES: usize = 16;

/// Returns whether a page may take less than a millisecond. A continuation may use up what earlier pages have kept, and is not to be used twice.
pub(super) fn may_be(query: &QueryItems) -> bool {
    query.text.len() <= TEXT_BYTES
        && query.continuation.is_none()
        && query.resume_filter.is_none()
        && operators(&query.text) <= OPERATORS
        && are_short(&query.parameters)
}

/// Returns the number of characters and words that can nest expressions in the text of a query, at least. Every query is read here first, so one pass over its bytes
/// must do; a name with `not` in it counts, too.
fn operators(text: &str) -> usize {
    let is_not = |at: usize| {
        let word = text.as_bytes().get(at..at + 3);
        word.is_some_and(|word| word.eq_ignore_ascii_case(b"NOT"))
    };
    let nests = |(at, byte): (usize, u8)| IS_OPERATOR[usize::from(byte)] || byte | 0x20 == b'n' && is_not(at);
    text.bytes().enumerate().filter(|place| nests(*place)).count()
}

/// Which bytes are operators and brackets.
const IS_OPERATOR: [bool; 256] = {
    let symbols = b"()[]{}+-*/%~!=<>&|^?:";
    let mut table = [false; 256];
    let mut at = 0;
    while at < symbols.len() {
        table[symbols[at] as usize] = true;
        at += 1;
    }
    table
};

/// Returns whether parameters have few and short values: a condition may be compared with each of them.
fn are_short(parameters: &[(String, Value)]) -> bool {
    let mut left = PARAMETER_BYTES;
    parameters.iter().all(|(_, value)| take_value(value, &mut left))
}

/// Subtracts the length of a value from what is left; returns whether it fits.
fn take_value(value: &Value, left: &mut usize) -> bool {
    let own = match value {
        Value::String(text) => text.len(),
        _ => 0,
    };
    let Some(rest) = left.checked_sub(own + VALUE_BYTES) else {
        return false;
    };
    *left = rest;
    match value {
        Value::Array(values) => values.iter().all(|value| take_value(value, left)),
        Value::Object(members) => members.values().all(|value| take_value(value, left)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn query(text: &str, parameter: Value) -> QueryItems {
        QueryItems {
            text: text.to_owned(),
            parameters: Arc::new(vec![("@p".to_owned(), parameter)]),
            ..QueryItems::default()
        }
    }

    #[test]
    fn short_queries_may_be_brief() {
        for text in [
            "SELECT * FROM c WHERE c.number = 17",
            "SELECT TOP 20 c.id, c.created FROM c WHERE c.created >= @p AND NOT IS_DEFINED(c.gone) ORDER BY c.created DESC",
        ] {
            assert!(may_be(&query(text, json!(["a", 1, {"b": null}]))), "{text}");
        }
    }

    #[test]
    fn long_and_deep_queries_are_not() {
        let texts = [
            format!("SELECT * FROM c WHERE c.name = '{}'", "x".repeat(1_024)),
            format!("SELECT VALUE {}1{} FROM c", "(".repeat(17), ")".repeat(17)),
            format!("SELECT VALUE {} c.a FROM c", "NOT ".repeat(33)),
            format!("SELECT VALUE {} c.a FROM c", "not ".repeat(33)),
            format!("SELECT VALUE c.a {} FROM c", "+ 1 ".repeat(33)),
        ];
        for text in texts {
            assert!(!may_be(&query(&text, json!(1))), "{text}");
        }
    }

    #[test]
    fn many_and_long_values_are_not() {
        let values = [
            json!("x".repeat(1_024)),
            json!(vec![1; 64]),
            json!([[[vec![0; 62]]]]),
            json!({"a": vec!["12345678901234567890"; 30]}),
        ];
        for value in values {
            let text = "SELECT * FROM c WHERE ARRAY_CONTAINS(@p, c.v)";
            assert!(!may_be(&query(text, value.clone())), "{value}");
        }
    }

    #[test]
    fn later_pages_are_not() {
        let mut later = query("SELECT * FROM c", json!(1));
        later.continuation = Some("token".to_owned());
        assert!(!may_be(&later));
        later.continuation = None;
        later.resume_filter = Some(json!({}));
        assert!(!may_be(&later));
    }
}
