//! Results as a table: a column for each member of any result, in order of first appearance.

use serde_json::Value;

/// The column for results that are not objects.
const VALUE: &str = "value";

/// The table; empty if there are no results.
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

/// The value of a row in a column; empty for an absent member, which differs from every JSON text.
fn cell(row: &Value, column: &str) -> String {
    match row {
        Value::Object(members) => members.get(column).map_or_else(String::new, shown),
        other if column == VALUE => shown(other),
        _ => String::new(),
    }
}

/// Strings are shown without quotes if they cannot be mistaken for another value.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() && serde_json::from_str::<Value>(text).is_err() => plain(text),
        other => other.to_string(),
    }
}

/// Text without line breaks.
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
mod tests;
