//! `$regexMatch`, `$regexFind`, `$regexFindAll`.

use bson::raw::cstr;
use bson::{RawBson, RawBsonRef, RawDocumentBuf};
use fancy_regex::Captures;

use crate::error::{Error, Result};
use crate::expression::build::{ArrayBuilder, DocumentBuilder};
use crate::expression::call::{Operation, Prepared};
use crate::expression::node::Node;
use crate::expression::operand::{Operand, is_nullish};
use crate::expression::operators::{Arguments, Named, Operator};
use crate::expression::parse;
use crate::expression::scope::{ParseScope, Scope};
use crate::value::regex::{Options, Regex, SearchError};

pub(in crate::expression) const OPERATORS: &[Operator] = &[
    Operator::lazy("$regexMatch", Arguments::Own(parse_regex), is_match),
    Operator::lazy("$regexFind", Arguments::Own(parse_regex), find),
    Operator::lazy("$regexFindAll", Arguments::Own(parse_regex), find_all),
];

const REGEX: Named = Named {
    not_object: 51103,
    unknown: 31024,
    parameters: &[("input", Some(31022)), ("regex", Some(31023)), ("options", None)],
};

/// A pattern and options that are constants are compiled once.
fn parse_regex(operator: &'static Operator, value: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Node> {
    let arguments = parse::named(operator.name, &REGEX, value, scope)?;
    let mut operation = Operation::new(operator, arguments);
    let constant = |index: usize| match operation.arguments.get(index) {
        Some(Some(argument)) => argument.as_constant().map(Some),
        _ => Some(None),
    };
    if let (Some(regex), Some(options)) = (constant(1), constant(2))
        && let Some(regex) = pattern(operator.name, regex, options)?
    {
        operation.prepared = Prepared::Regex(Box::new(regex));
    }
    Ok(Node::Operation(Box::new(operation)))
}

/// Compiles the pattern; `None` if it is null.
fn pattern(name: &str, regex: Option<RawBsonRef<'_>>, options: Option<RawBsonRef<'_>>) -> Result<Option<Regex>> {
    let failed = |code: i32, problem: String| Err(Error::new(code, problem));
    let given = match options {
        value if is_nullish(value) => None,
        Some(RawBsonRef::String(options)) => Some(options),
        _ => return failed(51106, format!("{name} needs 'options' to be of type string")),
    };
    let (pattern, own) = match regex {
        value if is_nullish(value) => return Ok(None),
        Some(RawBsonRef::String(pattern)) => (pattern, ""),
        Some(RawBsonRef::RegularExpression(regex)) => (regex.pattern.as_str(), regex.options.as_str()),
        _ => return failed(51105, format!("{name} needs 'regex' to be of type string or regex")),
    };
    if !own.is_empty() && given.is_some() {
        return failed(
            51107,
            format!("{name}: found regex option(s) specified in both 'regex' and 'option' fields"),
        );
    }
    if pattern.contains('\0') {
        return failed(
            51109,
            format!("{name}: regular expression cannot contain an embedded null byte"),
        );
    }
    let letters = given.unwrap_or(own);
    if letters.contains('\0') {
        return failed(
            51110,
            format!("{name}: regular expression options string cannot contain an embedded null byte"),
        );
    }
    let invalid = |letter: char| Error::new(51108, format!("{name} invalid flag in regex options: {letter}"));
    let options = Options::parse(letters).map_err(invalid)?;
    let compiled = Regex::new(pattern, options);
    compiled
        .map(Some)
        .map_err(|problem| Error::new(51111, format!("Invalid Regex in {name}: {problem}")))
}

/// Calls the function with the text and the pattern; `None` if one of them is null.
fn search<T>(
    operation: &Operation,
    scope: &Scope<'_>,
    function: impl FnOnce(&str, &Regex) -> Result<T>,
) -> Result<Option<T>> {
    let name = operation.operator.name;
    let input = operation.argument(0, scope)?;
    let text = match input.as_ref().map(Operand::as_raw) {
        value if is_nullish(value) => None,
        Some(RawBsonRef::String(text)) => Some(text),
        _ => return Err(Error::new(51104, format!("{name} needs 'input' to be of type string"))),
    };
    if let Prepared::Regex(regex) = &operation.prepared {
        return text.map(|text| function(text, regex)).transpose();
    }
    let regex = operation.argument(1, scope)?;
    let options = operation.argument(2, scope)?;
    let regex = pattern(
        name,
        regex.as_ref().map(Operand::as_raw),
        options.as_ref().map(Operand::as_raw),
    )?;
    match (text, regex) {
        (Some(text), Some(regex)) => Ok(Some(function(text, &regex)?)),
        _ => Ok(None),
    }
}

fn failed(name: &str, error: &SearchError) -> Error {
    Error::new(
        51156,
        format!("Error occurred while executing the regular expression in {name}: {error}"),
    )
}

fn is_match<'a>(operation: &'a Operation, scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
    let found = search(operation, scope, |text, regex| {
        regex.is_match(text).map_err(|error| failed("$regexMatch", &error))
    })?;
    Ok(Some(Operand::Owned(RawBson::Boolean(found.unwrap_or(false)))))
}

fn find<'a>(operation: &'a Operation, scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
    let found = search(operation, scope, |text, regex| {
        let captures = regex.captures(text).map_err(|error| failed("$regexFind", &error))?;
        let found = captures.and_then(|captures| Some((captures.get(0)?.start(), captures)));
        found
            .map(|(start, captures)| document(&captures, count(text, 0, start), scope))
            .transpose()
    })?;
    Ok(Some(Operand::Owned(
        found.flatten().map_or(RawBson::Null, RawBson::Document),
    )))
}

fn find_all<'a>(operation: &'a Operation, scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
    let found = search(operation, scope, |text, regex| {
        let mut all = ArrayBuilder::new(scope);
        let (mut index, mut counted, mut position) = (0, 0, 0);
        // As in MongoDB, an empty match at the end counts only in an empty text.
        while position < text.len() || position == 0 {
            scope.step(1)?;
            let captures = regex.captures_from_pos(text, position);
            let Some(captures) = captures.map_err(|error| failed("$regexFindAll", &error))? else {
                break;
            };
            let Some(found) = captures.get(0) else { break };
            index += count(text, counted, found.start());
            counted = found.start();
            all.push(RawBsonRef::Document(&document(&captures, index, scope)?))?;
            let next = text.get(counted..).and_then(|rest| rest.chars().next());
            position = if found.range().is_empty() {
                counted + next.map_or(1, char::len_utf8)
            } else {
                found.end()
            };
        }
        Ok(all.finish())
    })?;
    let empty = || ArrayBuilder::new(scope).finish();
    Ok(Some(Operand::Owned(found.unwrap_or_else(empty))))
}

/// The number of characters between two positions in bytes.
fn count(text: &str, from: usize, to: usize) -> i32 {
    let characters = text.get(from..to).map_or(0, |part| part.chars().count());
    i32::try_from(characters).unwrap_or(i32::MAX)
}

/// The document of one match: the text, its position in characters, and its groups.
fn document(captures: &Captures<'_>, index: i32, scope: &Scope<'_>) -> Result<RawDocumentBuf> {
    let text = |group: usize| captures.get(group).map(|found| RawBsonRef::String(found.as_str()));
    let mut groups = ArrayBuilder::new(scope);
    for group in 1..captures.len() {
        groups.push(text(group).unwrap_or(RawBsonRef::Null))?;
    }
    let mut document = DocumentBuilder::new(scope);
    document.append(cstr!("match"), text(0).unwrap_or(RawBsonRef::Null))?;
    document.append(cstr!("idx"), RawBsonRef::Int32(index))?;
    if let RawBson::Array(groups) = groups.finish() {
        document.append(cstr!("captures"), RawBsonRef::Array(&groups))?;
    }
    Ok(document.finish())
}
