//! Results as a table: a column for each member of any result, in order of first appearance.

use serde_json::Value;

/// The column of results that are no objects.
const VALUE: &str = "value";

/// The table; nothing if there are no results.
pub fn text(rows: &[Value]) -> String {
    let mut columns: Vec<&str> = Vec::new();
    for row in rows {
        let names: Vec<&str> = match row {
            Value::Object(members) => members.keys().map(String::as_str).collect(),
            _ => vec![VALUE],
        };
        for name in names {
            if !columns.contains(&name) {
                columns.push(name);
            }
        }
    }
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| columns.iter().map(|column| cell(row, column)).collect())
        .collect();
    let head: Vec<String> = columns.iter().map(|column| plain(column)).collect();
    let widths: Vec<usize> = (0..columns.len())
        .map(|column| {
            let lines = std::iter::once(&head).chain(&cells);
            lines.map(|line| line[column].chars().count()).max().unwrap_or(0)
        })
        .collect();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    if rows.is_empty() {
        return String::new();
    }
    [&head, &rule]
        .into_iter()
        .chain(&cells)
        .map(|cells| line(cells, &widths))
        .collect()
}

/// What a row has in a column; an absent member leaves it empty, which no JSON text is.
fn cell(row: &Value, column: &str) -> String {
    match row {
        Value::Object(members) => members.get(column).map_or_else(String::new, shown),
        other if column == VALUE => shown(other),
        _ => String::new(),
    }
}

/// Strings stand without quotes where that cannot be mistaken for another value.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() && serde_json::from_str::<Value>(text).is_err() => plain(text),
        other => other.to_string(),
    }
}

/// Text that keeps to its line.
fn plain(text: &str) -> String {
    if text.chars().any(char::is_control) {
        Value::from(text).to_string()
    } else {
        text.to_owned()
    }
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
    let line = padded.collect::<Vec<_>>().join("  ");
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_the_members_of_all_rows() {
        let rows = [
            json!({"id": "a", "n": 1}),
            json!({"id": "bcd", "m": [1]}),
            json!("text"),
        ];
        let expected = "id   n  m    value\n---  -  ---  -----\na    1\nbcd     [1]\n             text\n";
        assert_eq!(text(&rows), expected);
    }

    #[test]
    fn a_string_that_looks_like_another_value_keeps_its_quotes() {
        let shown: Vec<String> = [json!("1"), json!(1), json!(""), json!("null"), json!("a b")]
            .iter()
            .map(shown)
            .collect();
        assert_eq!(shown, ["\"1\"", "1", "\"\"", "\"null\"", "a b"]);
    }

    #[test]
    fn a_cell_keeps_to_its_line() {
        assert_eq!(text(&[json!("a\nb")]), "value\n------\n\"a\\nb\"\n");
        assert_eq!(text(&[]), "");
    }
}
