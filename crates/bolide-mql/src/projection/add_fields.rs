//! The parser of `$addFields`: every leaf is an expression.

use bson::raw::{CString, RawBsonRef, RawDocument};

use super::tree::{Action, Node};
use super::{Kind, MAX_DEPTH, Projection};
use crate::error::{Code, Error, Result};
use crate::expression::{Expression, ParseScope};
use crate::path::field::{FieldPath, join, parse_name};
use crate::value::text;

/// Parses a specification.
pub(super) fn parse(spec: &RawDocument, scope: &mut ParseScope) -> Result<Projection> {
    if spec.is_empty() {
        return Err(Error::new(40177, "specification must have at least one field"));
    }
    let mut root = Node::default();
    for element in spec {
        let (name, value) = element?;
        let path = FieldPath::parse(name.as_str())?;
        field(&mut root, path.names(), value, scope)?;
    }
    Ok(Projection {
        kind: Kind::Addition,
        root,
        has_positional: false,
    })
}

fn field(root: &mut Node, path: &[CString], value: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<()> {
    if path.len() > MAX_DEPTH {
        return Err(Error::new(Code::OVERFLOW, "FieldPath is too long"));
    }
    let RawBsonRef::Document(spec) = value else {
        return compute(root, path, value, scope);
    };
    let mut has_operator = false;
    let mut count = 0usize;
    for element in spec {
        has_operator |= element?.0.as_str().starts_with('$');
        count += 1;
    }
    match (count, has_operator) {
        (0, _) => {
            let text = format!(
                "an empty object is not a valid value. Found empty object at path {}",
                join(path)
            );
            Err(Error::new(40180, text))
        }
        (1, true) => compute(root, path, value, scope),
        (_, true) => {
            let shown = text::render(value);
            let text = format!(
                "an expression specification must contain exactly one field, the name of the expression. Found {count} fields in {shown}, \
                 while parsing object {shown}"
            );
            Err(Error::new(40181, text))
        }
        (_, false) => fields(root, path, spec, scope),
    }
}

/// Parses the names below a path.
fn fields(root: &mut Node, path: &[CString], spec: &RawDocument, scope: &mut ParseScope) -> Result<()> {
    for element in spec {
        let (name, value) = element?;
        if name.as_str().contains('.') {
            let shown = text::render(RawBsonRef::Document(spec));
            let text = format!("cannot use dotted field name '{name}' in a sub object: {shown}");
            return Err(Error::new(40183, text));
        }
        let mut path = path.to_vec();
        path.push(parse_name(name.as_str())?);
        field(root, &path, value, scope)?;
    }
    Ok(())
}

fn compute(root: &mut Node, path: &[CString], value: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<()> {
    let expression = Expression::parse(value, scope)?;
    root.insert(path, Action::Compute(expression))
        .map_err(|error| match error.code.0 {
            31249 | 31250 => {
                let text = format!(
                    "specification contains two conflicting paths. Cannot specify both '{}' and a part of it",
                    join(path)
                );
                Error::new(40176, text)
            }
            _ => error,
        })
}
