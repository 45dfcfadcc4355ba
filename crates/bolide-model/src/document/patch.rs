//! Partial updates: a list of operations on paths of a document.
//!
//! Paths are JSON pointers. A step into an array is an index, or `-` for the position after its last element; a step into an object is a name, digits
//! or not. No operation creates a parent. Source: cosmos-rest §5.5.

use std::fmt;

use serde_json::{Map, Number, Value};

use super::{SYSTEM_PROPERTIES, ingest, number, parse_json_body};
use crate::error::{Error, Result, excerpt};
use crate::limits::PATCH_OPERATIONS;
use crate::partition_key::PartitionKeyDefinition;

/// Operations to apply in order, all or none.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// One to ten operations.
    pub operations: Vec<Operation>,
    /// `FROM … WHERE …` that the item must satisfy first; not parsed here.
    pub condition: Option<String>,
}

/// One change of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Sets a property; in an array, inserts before the index.
    Add {
        /// The path.
        path: Pointer,
        /// The value.
        value: Value,
    },
    /// Sets a property or an element.
    Set {
        /// The path.
        path: Pointer,
        /// The value.
        value: Value,
    },
    /// Sets an existing property or element.
    Replace {
        /// The path.
        path: Pointer,
        /// The value.
        value: Value,
    },
    /// Removes an existing property or element.
    Remove {
        /// The path.
        path: Pointer,
    },
    /// Adds to a number; a missing property is set to `by`.
    Increment {
        /// The path.
        path: Pointer,
        /// The number to add.
        by: Number,
    },
    /// Removes the value at `from` and adds it at `path`.
    Move {
        /// The source.
        from: Pointer,
        /// The destination.
        path: Pointer,
    },
}

/// A JSON pointer with at least one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    text: String,
    steps: Vec<String>,
}

impl Pointer {
    /// Reads a pointer; `None` if it does not begin with a slash or has an invalid `~` escape.
    pub fn parse(text: &str) -> Option<Pointer> {
        let steps = text
            .strip_prefix('/')?
            .split('/')
            .map(unescape)
            .collect::<Option<Vec<_>>>()?;
        Some(Pointer {
            text: text.to_owned(),
            steps,
        })
    }

    /// The names and indexes from the root down.
    pub fn steps(&self) -> &[String] {
        &self.steps
    }

    fn split_last(&self) -> (&str, &[String]) {
        let (last, parents) = self.steps.split_last().expect("a pointer has a step");
        (last, parents)
    }

    fn is_below(&self, other: &Pointer) -> bool {
        self.steps.len() > other.steps.len() && self.steps.starts_with(&other.steps)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&excerpt(&self.text))
    }
}

fn unescape(step: &str) -> Option<String> {
    let mut parts = step.split('~');
    let mut name = parts.next()?.to_owned();
    for part in parts {
        let (escaped, rest) = match part.split_at_checked(1)? {
            ("0", rest) => ('~', rest),
            ("1", rest) => ('/', rest),
            _ => return None,
        };
        name.push(escaped);
        name.push_str(rest);
    }
    Some(name)
}

impl Patch {
    /// Reads a request body.
    ///
    /// # Errors
    /// `BadRequest`: not JSON, or as [`Patch::from_value`].
    pub fn parse(body: &[u8]) -> Result<Patch> {
        Patch::from_value(&parse_json_body(body)?)
    }

    /// Reads `{"condition": …, "operations": […]}`, or the bare array of operations that old clients send.
    ///
    /// # Errors
    /// `BadRequest`: another shape, no operations, more than [`PATCH_OPERATIONS`], or an invalid operation; the message counts operations from 1.
    pub fn from_value(value: &Value) -> Result<Patch> {
        let (operations, condition) = match value {
            Value::Array(operations) => (operations, None),
            Value::Object(members) => (read_operations(members)?, read_condition(members)?),
            other => {
                return Err(invalid(&format!(
                    "expected an object with 'operations', and this is {}",
                    ingest::kind(other)
                )));
            }
        };
        if operations.is_empty() {
            return Err(invalid("it has no operations"));
        }
        if operations.len() > PATCH_OPERATIONS {
            return Err(invalid(&format!(
                "it has {} operations, and at most {PATCH_OPERATIONS} are allowed",
                operations.len()
            )));
        }
        let operations = operations
            .iter()
            .enumerate()
            .map(|(index, operation)| Operation::from_value(operation).map_err(|message| at(index, &message)))
            .collect::<Result<_>>()?;
        Ok(Patch { operations, condition })
    }

    /// Changes the members of a document's root. After an error some operations are applied: use a copy.
    ///
    /// # Errors
    /// `BadRequest`: a path or its parent is missing, an index is out of range, a number is to be added to something else,
    /// or the change would touch the id, a system property or the partition key; the message counts operations from 1.
    pub fn apply(&self, members: &mut Map<String, Value>, definition: &PartitionKeyDefinition) -> Result<()> {
        for (index, operation) in self.operations.iter().enumerate() {
            operation
                .check_paths(definition)
                .map_err(|message| at(index, &message))?;
            operation.apply(members).map_err(|message| at(index, &message))?;
        }
        Ok(())
    }
}

fn read_operations(members: &Map<String, Value>) -> Result<&Vec<Value>> {
    members
        .get("operations")
        .and_then(Value::as_array)
        .ok_or_else(|| invalid("'operations' must be an array"))
}

fn read_condition(members: &Map<String, Value>) -> Result<Option<String>> {
    match members.get("condition") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(condition)) => Ok(Some(condition.clone())),
        Some(_) => Err(invalid("'condition' must be a string")),
    }
}

fn invalid(what: &str) -> Error {
    Error::bad_request(format!("The patch is invalid: {what}."))
}

fn at(index: usize, message: &str) -> Error {
    Error::bad_request(format!("For Operation({}): {message}.", index + 1))
}

impl Operation {
    fn from_value(value: &Value) -> Result<Operation, String> {
        let members = value.as_object().ok_or("an operation must be an object")?;
        let path = read_pointer(members, "path")?;
        match read_string(members, "op")? {
            "add" => Ok(Operation::Add {
                path,
                value: read_value(members)?,
            }),
            "set" => Ok(Operation::Set {
                path,
                value: read_value(members)?,
            }),
            "replace" => Ok(Operation::Replace {
                path,
                value: read_value(members)?,
            }),
            "remove" => Ok(Operation::Remove { path }),
            "incr" => Ok(Operation::Increment {
                path,
                by: read_increment(members)?,
            }),
            "move" => read_move(members, path),
            other => Err(format!(
                "the operation '{}' is none of add, set, replace, remove, incr and move",
                excerpt(other)
            )),
        }
    }

    /// The paths that change; for a move the source too.
    fn touched(&self) -> impl Iterator<Item = &Pointer> {
        let (path, from) = match self {
            Operation::Add { path, .. }
            | Operation::Set { path, .. }
            | Operation::Replace { path, .. }
            | Operation::Remove { path }
            | Operation::Increment { path, .. } => (path, None),
            Operation::Move { from, path } => (path, Some(from)),
        };
        std::iter::once(path).chain(from)
    }

    fn check_paths(&self, definition: &PartitionKeyDefinition) -> Result<(), String> {
        self.touched().try_for_each(|pointer| check_path(pointer, definition))
    }

    fn apply(&self, members: &mut Map<String, Value>) -> Result<(), String> {
        match self {
            Operation::Add { path, value } => Parent::of(members, path, "Add")?.add(value.clone()),
            Operation::Set { path, value } => Parent::of(members, path, "Set")?.set(value.clone()),
            Operation::Replace { path, value } => {
                *Parent::of(members, path, "Replace")?.existing()? = value.clone();
                Ok(())
            }
            Operation::Remove { path } => Parent::of(members, path, "Remove")?.remove().map(drop),
            Operation::Increment { path, by } => Parent::of(members, path, "Increment")?.increment(by),
            Operation::Move { from, path } => {
                let value = Parent::of(members, from, "Move")?.remove()?;
                Parent::of(members, path, "Move")?.add(value)
            }
        }
    }
}

fn check_path(pointer: &Pointer, definition: &PartitionKeyDefinition) -> Result<(), String> {
    let root = pointer.steps[0].as_str();
    if root == "id" && pointer.steps.len() == 1 {
        return Err("the id of an item cannot be patched".to_owned());
    }
    if SYSTEM_PROPERTIES.contains(&root) {
        return Err(format!("the system property '{root}' cannot be patched"));
    }
    match definition.paths.iter().find(|path| path.is_within(&pointer.steps)) {
        None => Ok(()),
        Some(path) => Err(format!(
            "the path '{pointer}' would change the partition key at '{path}'"
        )),
    }
}

fn read_string<'a>(members: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    members
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| format!("'{name}' must be a string"))
}

fn read_pointer(members: &Map<String, Value>, name: &str) -> Result<Pointer, String> {
    let text = read_string(members, name)?;
    Pointer::parse(text).ok_or_else(|| {
        format!(
            "'{name}' must be a JSON pointer such as '/a/b', and this is '{}'",
            excerpt(text)
        )
    })
}

fn read_value(members: &Map<String, Value>) -> Result<Value, String> {
    members
        .get("value")
        .cloned()
        .ok_or_else(|| "'value' is missing".to_owned())
}

fn read_increment(members: &Map<String, Value>) -> Result<Number, String> {
    match members.get("value") {
        Some(Value::Number(by)) => Ok(by.clone()),
        _ => Err("'value' of incr must be a number".to_owned()),
    }
}

fn read_move(members: &Map<String, Value>, path: Pointer) -> Result<Operation, String> {
    let from = read_pointer(members, "from")?;
    if path.is_below(&from) {
        return Err(format!("'{from}' cannot be moved below itself, to '{path}'"));
    }
    Ok(Operation::Move { from, path })
}

/// The object or array that contains the target of a pointer, and the last step.
struct Parent<'a> {
    target: Target<'a>,
    pointer: &'a Pointer,
}

enum Target<'a> {
    /// A member of an object, which may be absent.
    Member(&'a mut Map<String, Value>, &'a str),
    /// An element of an array: an index, or `None` for its end.
    Element(&'a mut Vec<Value>, Option<usize>),
}

impl<'a> Parent<'a> {
    fn of(members: &'a mut Map<String, Value>, pointer: &'a Pointer, operation: &str) -> Result<Parent<'a>, String> {
        let (last, parents) = pointer.split_last();
        let Some((first, rest)) = parents.split_first() else {
            return Ok(Parent {
                target: Target::Member(members, last),
                pointer,
            });
        };
        let refused = |missing: &str| {
            Err(format!(
                "{operation} Operation can only create a child object of an existing node(array or object) and cannot create path \
                 recursively, no path found beyond: '{}' in '{pointer}'",
                excerpt(missing)
            ))
        };
        let target = match descend(members, first, rest) {
            Ok(Value::Object(members)) => Target::Member(members, last),
            Ok(Value::Array(elements)) => Target::Element(elements, element(last, pointer)?),
            Ok(_) => return refused(rest.last().unwrap_or(first)),
            Err(missing) => return refused(missing),
        };
        Ok(Parent { target, pointer })
    }

    fn add(self, value: Value) -> Result<(), String> {
        match self.target {
            Target::Member(members, name) => {
                members.insert(name.to_owned(), value);
            }
            Target::Element(elements, index) => {
                let index = index.unwrap_or(elements.len());
                check_index(index, elements.len(), self.pointer)?;
                elements.insert(index, value);
            }
        }
        Ok(())
    }

    fn set(self, value: Value) -> Result<(), String> {
        match self.target {
            Target::Element(elements, Some(index)) if index < elements.len() => {
                elements[index] = value;
                Ok(())
            }
            target => Parent { target, ..self }.add(value),
        }
    }

    fn existing(self) -> Result<&'a mut Value, String> {
        let found = match self.target {
            Target::Member(members, name) => members.get_mut(name),
            Target::Element(elements, index) => index.and_then(|index| elements.get_mut(index)),
        };
        found.ok_or_else(|| missing(self.pointer))
    }

    fn remove(self) -> Result<Value, String> {
        let removed = match self.target {
            // Not `remove`, which would move the last member to this position.
            Target::Member(members, name) => members.shift_remove(name),
            Target::Element(elements, index) => index
                .filter(|&index| index < elements.len())
                .map(|index| elements.remove(index)),
        };
        removed.ok_or_else(|| missing(self.pointer))
    }

    fn increment(self, by: &Number) -> Result<(), String> {
        match self.target {
            Target::Member(members, name) if !members.contains_key(name) => {
                members.insert(name.to_owned(), Value::Number(by.clone()));
                Ok(())
            }
            target => {
                let Value::Number(number) = (Parent { target, ..self }).existing()? else {
                    return Err(format!("'{}' is not a number that incr could add to", self.pointer));
                };
                *number = sum(number, by).ok_or_else(|| format!("the sum at '{}' is out of range", self.pointer))?;
                Ok(())
            }
        }
    }
}

fn missing(pointer: &Pointer) -> String {
    format!("there is nothing at '{pointer}'")
}

fn check_index(index: usize, length: usize, pointer: &Pointer) -> Result<(), String> {
    if index <= length {
        return Ok(());
    }
    Err(format!(
        "the index in '{pointer}' is out of range: the array has {length} elements"
    ))
}

/// The value at the end of the steps.
///
/// # Errors
/// The first step that leads nowhere.
fn descend<'a, 's>(
    members: &'a mut Map<String, Value>,
    first: &'s str,
    rest: &'s [String],
) -> Result<&'a mut Value, &'s str> {
    rest.iter()
        .try_fold(members.get_mut(first).ok_or(first)?, |value, step| {
            let found = match value {
                Value::Object(members) => members.get_mut(step),
                Value::Array(elements) => array_index(step).and_then(|index| elements.get_mut(index)),
                _ => None,
            };
            found.ok_or(step.as_str())
        })
}

/// The index of a step into an array; `None` for its end.
fn element(step: &str, pointer: &Pointer) -> Result<Option<usize>, String> {
    if step == "-" {
        return Ok(None);
    }
    let index = array_index(step).ok_or_else(|| format!("'{pointer}' leads into an array and must end in an index"))?;
    Ok(Some(index))
}

/// A whole number without sign or leading zeros.
fn array_index(step: &str) -> Option<usize> {
    let is_canonical = step == "0" || !step.starts_with(['0', '+']);
    step.parse().ok().filter(|_| is_canonical)
}

/// Adds whole numbers exactly if 64 bits hold the sum, other numbers as doubles. `None` if the result is not finite.
fn sum(a: &Number, b: &Number) -> Option<Number> {
    let whole = a.as_i128().zip(b.as_i128()).map(|(a, b)| a + b);
    match whole.and_then(Number::from_i128) {
        Some(sum) => Some(sum),
        None => number(a.as_f64()? + b.as_f64()?),
    }
}

#[cfg(test)]
mod tests;
