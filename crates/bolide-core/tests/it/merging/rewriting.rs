//! The filters that clients write into a query when they resume without `resumeFilter`.

use serde_json::Value;

/// The types in their order, as the conditions of a query.
const TYPES: [&str; 7] = [
    "NOT IS_DEFINED",
    "IS_NULL",
    "IS_BOOLEAN",
    "IS_NUMBER",
    "IS_STRING",
    "IS_ARRAY",
    "IS_OBJECT",
];

/// Returns the filter for the rows after given sort values, and for the rows with these values unless `exclude`.
///
/// For two keys: the first is greater, or it is equal and the second is greater.
pub fn filter(expressions: &[String], descending: &[bool], values: &[Option<Value>], exclude: bool) -> String {
    let prefixes = (0..expressions.len()).map(|last| {
        let equal = (0..last).map(|at| match &values[at] {
            None => format!("(NOT IS_DEFINED({}))", expressions[at]),
            Some(value) => format!("({} = {value})", expressions[at]),
        });
        let is_whole = last + 1 == expressions.len();
        let beyond = beyond(
            &expressions[last],
            descending[last],
            values[last].as_ref(),
            is_whole && !exclude,
        );
        let parts: Vec<String> = equal.chain([beyond]).collect();
        format!("({})", parts.join(" AND "))
    });
    prefixes.collect::<Vec<_>>().join(" OR ")
}

fn beyond(expression: &str, descends: bool, value: Option<&Value>, or_equal: bool) -> String {
    let (comparison, rank) = match value {
        None => {
            let comparison = match (descends, or_equal) {
                (true, false) => "false".to_owned(),
                (true, true) => format!("NOT IS_DEFINED({expression})"),
                (false, false) => format!("IS_DEFINED({expression})"),
                (false, true) => "true".to_owned(),
            };
            (comparison, 0)
        }
        Some(value) => {
            let rank = match value {
                Value::Null => 1,
                Value::Bool(_) => 2,
                Value::Number(_) => 3,
                Value::String(_) => 4,
                Value::Array(_) => 5,
                Value::Object(_) => 6,
            };
            let operator = match (descends, or_equal) {
                (true, false) => "<",
                (true, true) => "<=",
                (false, false) => ">",
                (false, true) => ">=",
            };
            (format!("{expression} {operator} {value}"), rank)
        }
    };
    let types = if descends { &TYPES[..rank] } else { &TYPES[rank + 1..] };
    let types = types.iter().map(|test| format!(" OR {test}({expression})"));
    format!("( {comparison}{} )", types.collect::<String>())
}
