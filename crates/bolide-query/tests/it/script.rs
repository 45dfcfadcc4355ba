//! The format of the scripts in `testscripts/`: a container, its documents, statements, and their expected results.
//!
//! ```text
//! # What the script shows.
//! container {"geospatialType": "Geometry"}
//! document {"id": "a", "n": 1}
//!
//! > SELECT VALUE c.n + @more
//!   FROM c
//! @more = 2
//! ---
//! 3
//!
//! > SELECT VALUE NOSUCH(1)
//! ! SC2005 at 13..19: 'NOSUCH' is not a recognized built-in function name.
//! ```
//!
//! A line that begins with `#` outside a statement is a comment. Lines of a statement after the first are indented by two spaces, which are not part
//! of it. Rows are JSON, one per line, up to the next empty line; without lines there are no rows. `--- in any order` compares them as a multiset,
//! `--- in any order, arrays too` also the arrays in them. An error has its code, or `-` for none, and may have its location in the text and its
//! message. `container` and `document` apply to all statements of the script.

use serde_json::{Value as Json, json};

/// A parsed script.
pub struct Script {
    /// Members as in [`crate::container::Container::new`].
    pub settings: Json,
    pub documents: Vec<Json>,
    pub statements: Vec<Statement>,
}

/// A query and its expected result.
pub struct Statement {
    /// The number of its first line, from 1.
    pub line: usize,
    pub text: String,
    pub parameters: Vec<(String, Json)>,
    pub expected: Expected,
}

/// The expected result of a statement.
pub enum Expected {
    Rows { rows: Vec<Json>, order: Order },
    Error(ExpectedError),
}

/// Whether the order of the result matters.
#[derive(Clone, Copy, PartialEq)]
pub enum Order {
    Counts,
    /// Rows may come in any order.
    OfRowsIsOpen,
    /// Elements of arrays, too.
    OfElementsIsOpen,
}

/// The expected parts of an error; `None` if the script does not state them.
pub struct ExpectedError {
    /// Empty: the error has no code.
    pub code: String,
    pub location: Option<Json>,
    pub message: Option<String>,
}

type Lines<'t> = std::iter::Peekable<std::iter::Zip<std::ops::RangeFrom<usize>, std::str::Lines<'t>>>;

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// The number and the mistake of a line that does not follow the format, or that there is no statement.
    pub fn parse(text: &str) -> Result<Script, String> {
        let mut script = Script {
            settings: json!({}),
            documents: Vec::new(),
            statements: Vec::new(),
        };
        let mut lines = (1..).zip(text.lines()).peekable();
        while let Some((number, line)) = lines.next() {
            let at_line = |error: &dyn std::fmt::Display| format!("line {number}: {error}");
            if line.is_empty() || line.starts_with('#') {
                continue;
            } else if let Some(settings) = line.strip_prefix("container ") {
                script.settings = parse_json(settings).map_err(|error| at_line(&error))?;
            } else if let Some(document) = line.strip_prefix("document ") {
                script
                    .documents
                    .push(parse_json(document).map_err(|error| at_line(&error))?);
            } else if let Some(first) = line.strip_prefix("> ") {
                let statement = statement(number, first, &mut lines).map_err(|error| at_line(&error))?;
                script.statements.push(statement);
            } else {
                return Err(at_line(&format!(
                    "neither comment, container, document nor statement: {line}"
                )));
            }
        }
        match script.statements.is_empty() {
            true => Err("no statement".to_owned()),
            false => Ok(script),
        }
    }
}

fn statement(line: usize, first: &str, lines: &mut Lines<'_>) -> Result<Statement, String> {
    let mut text = first.to_owned();
    while let Some((_, more)) = lines.next_if(|(_, line)| line.starts_with("  ")) {
        text.push('\n');
        text.push_str(&more[2..]);
    }
    let mut parameters = Vec::new();
    while let Some((_, parameter)) = lines.next_if(|(_, line)| line.starts_with('@')) {
        let (name, value) = parameter.split_once(" = ").ok_or("a parameter is `@name = value`")?;
        parameters.push((name.to_owned(), parse_json(value)?));
    }
    Ok(Statement {
        line,
        text,
        parameters,
        expected: expected(lines)?,
    })
}

fn expected(lines: &mut Lines<'_>) -> Result<Expected, String> {
    let (_, line) = lines.next().ok_or("what must the statement give?")?;
    if let Some(error) = line.strip_prefix("! ") {
        return expected_error(error).map(Expected::Error);
    }
    let order = match line {
        "---" => Order::Counts,
        "--- in any order" => Order::OfRowsIsOpen,
        "--- in any order, arrays too" => Order::OfElementsIsOpen,
        _ => return Err(format!("neither `---` nor `! CODE` after the statement: {line}")),
    };
    let mut rows = Vec::new();
    while let Some((_, row)) = lines.next_if(|(_, line)| !line.is_empty()) {
        rows.push(parse_json(row)?);
    }
    Ok(Expected::Rows { rows, order })
}

/// `CODE`, `CODE at 1..2`, `CODE: message` or `CODE at 1..2: message`.
fn expected_error(text: &str) -> Result<ExpectedError, String> {
    let (head, message) = match text.split_once(": ") {
        Some((head, message)) => (head, Some(message.to_owned())),
        None => (text, None),
    };
    let (code, place) = match head.split_once(" at ") {
        Some((code, place)) => (code, Some(place)),
        None => (head, None),
    };
    let location = |place: &str| {
        let (start, end) = place.split_once("..")?;
        Some(json!({ "start": start.parse::<u64>().ok()?, "end": end.parse::<u64>().ok()? }))
    };
    Ok(ExpectedError {
        code: code.trim_start_matches('-').to_owned(),
        location: place
            .map(|place| location(place).ok_or_else(|| format!("no place in the text: {place}")))
            .transpose()?,
        message,
    })
}

fn parse_json(text: &str) -> Result<Json, String> {
    serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))
}
