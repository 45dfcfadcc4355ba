//! Paths to fields and variables: `$a.b`, `$$name`, `$$name.a`.
//!
//! A path goes through arrays: on `{a: [{b: 1}, {b: 2}, 3]}` the value of `$a.b` is `[1, 2]`. Numbers in a path are names of fields, not positions.

use bson::{RawArray, RawBson, RawBsonRef, RawDocument};

use super::build::{self, ArrayBuilder};
use super::node::FieldPaths;
use super::operand::Operand;
use super::scope::{ParseScope, Scope};
use super::variables;
use crate::error::{Code, Error, Result};

/// Most names in one path, as MongoDB limits them.
const MAX_NAMES: usize = 200;

/// What a path begins at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Start {
    Current,
    Root,
    Now,
    ClusterTime,
    /// `$$REMOVE`, the missing value.
    Remove,
    /// A variable of the command, of a stage, or of an operator.
    Named(String),
}

/// A path that was checked.
#[derive(Debug, Clone)]
pub(super) struct FieldPath {
    start: Start,
    names: Vec<String>,
}

impl FieldPath {
    /// Reads a string that begins with `$`.
    pub(super) fn parse(text: &str, scope: &ParseScope) -> Result<FieldPath> {
        let path = text.strip_prefix('$').unwrap_or(text);
        if path.is_empty() {
            return Err(Error::new(16872, "'$' by itself is not a valid FieldPath"));
        }
        let Some(path) = path.strip_prefix('$') else {
            return Ok(FieldPath {
                start: Start::Current,
                names: names(path)?,
            });
        };
        let (variable, rest) = match path.split_once('.') {
            Some((variable, rest)) => (variable, Some(rest)),
            None => (path, None),
        };
        variables::check_name_for_read(variable)?;
        Ok(FieldPath {
            start: start(variable, scope)?,
            names: rest.map(names).transpose()?.unwrap_or_default(),
        })
    }

    /// `$$CURRENT` itself.
    pub(super) fn current() -> FieldPath {
        FieldPath {
            start: Start::Current,
            names: Vec::new(),
        }
    }

    pub(super) fn collect(&self, paths: &mut FieldPaths) {
        let starts_at_document = matches!(self.start, Start::Current | Start::Root);
        match self.names.is_empty() {
            _ if !starts_at_document => {}
            true => paths.is_whole_document = true,
            false => {
                paths.paths.insert(self.names.join("."));
            }
        }
    }

    pub(super) fn evaluate<'a>(&self, scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
        let start = match &self.start {
            Start::Current => scope.current(),
            Start::Root => Some(RawBsonRef::Document(scope.root())),
            Start::Now => Some(RawBsonRef::DateTime(variables::now(scope.context()))),
            Start::ClusterTime => Some(RawBsonRef::Timestamp(variables::cluster_time(scope.context())?)),
            Start::Remove => None,
            Start::Named(name) => scope.variable(name).ok_or_else(|| undefined(name))?,
        };
        match start {
            Some(value) => descend(value, &self.names, scope),
            None => Ok(None),
        }
    }
}

/// The variable of this name.
fn start(variable: &str, scope: &ParseScope) -> Result<Start> {
    Ok(match variable {
        "CURRENT" => Start::Current,
        "ROOT" => Start::Root,
        "NOW" => Start::Now,
        "CLUSTER_TIME" => Start::ClusterTime,
        "REMOVE" => Start::Remove,
        name if scope.is_defined(name) => Start::Named(name.to_owned()),
        "SEARCH_META" | "USER_ROLES" | "JS_SCOPE" | "IS_MR" => {
            return Err(Error::new(
                Code::NOT_IMPLEMENTED,
                format!("The variable $${variable} is not supported"),
            ));
        }
        name => return Err(undefined(name)),
    })
}

fn undefined(name: &str) -> Error {
    Error::new(17276, format!("Use of undefined variable: {name}"))
}

/// Splits a dotted path and checks its names.
///
/// # Errors
/// Those of MongoDB: 40352 for an empty path, 40353 for a dot at the end, and those of [`check_name`].
fn names(path: &str) -> Result<Vec<String>> {
    if path.is_empty() {
        return Err(Error::new(40352, "FieldPath cannot be constructed with empty string"));
    }
    if path.ends_with('.') {
        return Err(Error::new(40353, "FieldPath must not end with a '.'."));
    }
    let names: Vec<String> = path.split('.').map(str::to_owned).collect();
    if names.len() > MAX_NAMES {
        return Err(Error::new(Code::OVERFLOW, "FieldPath is too long"));
    }
    names.iter().try_for_each(|name| check_name(name))?;
    Ok(names)
}

/// Checks one name of a path, or of a document in an expression.
pub(super) fn check_name(name: &str) -> Result<()> {
    let (code, problem) = if name.is_empty() {
        (15998, "FieldPath field names may not be empty strings.")
    } else if name.starts_with('$') {
        (
            16410,
            "FieldPath field names may not start with '$'. Consider using $getField or $setField.",
        )
    } else if name.contains('\0') {
        (16411, "FieldPath field names may not contain '\\0'.")
    } else if name.contains('.') {
        (
            16412,
            "FieldPath field names may not contain '.'. Consider using $getField or $setField.",
        )
    } else {
        return Ok(());
    };
    Err(Error::new(code, problem))
}

/// Follows the names from a value.
fn descend<'a>(value: RawBsonRef<'a>, names: &[String], scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
    if names.is_empty() {
        return Ok(Some(Operand::Borrowed(value)));
    }
    match value {
        RawBsonRef::Document(document) => in_document(document, names, scope),
        RawBsonRef::Array(array) => Ok(Some(Operand::Owned(in_array(array, names, scope)?))),
        _ => Ok(None),
    }
}

fn in_document<'a>(document: &'a RawDocument, names: &[String], scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
    let Some((name, rest)) = names.split_first() else {
        return Ok(Some(Operand::Borrowed(RawBsonRef::Document(document))));
    };
    match build::field(document, name)? {
        Some(value) => descend(value, rest, scope),
        None => Ok(None),
    }
}

/// The values in the documents of an array; arrays in the array are left out.
fn in_array(array: &RawArray, names: &[String], scope: &Scope<'_>) -> Result<RawBson> {
    let mut found = ArrayBuilder::new(scope);
    for element in build::elements(array) {
        if let RawBsonRef::Document(document) = element?
            && let Some(value) = in_document(document, names, scope)?
        {
            found.push(value.as_raw())?;
        }
    }
    Ok(found.finish())
}
