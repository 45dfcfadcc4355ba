//! Applies a projection: one walk over the document, beside the tree.

use bson::raw::{CStr, RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};

use super::array::element;
use super::bounds::{check_bytes, check_depth};
use super::tree::{Action, Node};
use super::{Kind, Projection};
use crate::error::{Error, Result};
use crate::expression::Scope;

/// Applies `projection`; `matched` is the array index that the query matched.
pub(super) fn apply(
    projection: &Projection,
    document: &RawDocument,
    scope: &Scope<'_>,
    matched: Option<usize>,
) -> Result<RawDocumentBuf> {
    let application = Application {
        kind: projection.kind,
        scope,
        matched,
    };
    let result = application.document(&projection.root, document)?;
    if projection.root.computes() {
        check_depth(&result)?;
    }
    Ok(result)
}

struct Application<'a> {
    kind: Kind,
    scope: &'a Scope<'a>,
    matched: Option<usize>,
}

impl Application<'_> {
    fn document(&self, node: &Node, document: &RawDocument) -> Result<RawDocumentBuf> {
        let mut output = RawDocumentBuf::new();
        let mut is_set = vec![false; node.fields().len()];
        let append = |output: &mut RawDocumentBuf, name: &CStr, value: &RawBson| {
            output.append(name, value);
            check_bytes(output.as_bytes().len())
        };
        for field in document {
            let (name, value) = field?;
            let Some((place, action)) = node.find(name.as_str()) else {
                if self.kind != Kind::Inclusion {
                    output.append(name, value);
                }
                continue;
            };
            let is_at_end = matches!(action, Action::Compute(_) | Action::ElementMatch(_));
            if self.kind == Kind::Inclusion && is_at_end {
                continue;
            }
            // Of several fields of one name the first is changed; the others of it are dropped.
            let was_set = is_set
                .get_mut(place)
                .is_some_and(|is_set| std::mem::replace(is_set, true));
            if was_set {
                continue;
            }
            if let Some(value) = self.field(name, action, value)? {
                append(&mut output, name, &value)?;
            }
        }
        for ((name, action), is_set) in node.fields().iter().zip(is_set) {
            if is_set || !action.computes() {
                continue;
            }
            if let Some(value) = self.computed(name, action, document)? {
                append(&mut output, name, &value)?;
            }
        }
        Ok(output)
    }

    /// Returns what becomes of a field in its place.
    fn field(&self, name: &CStr, action: &Action, value: RawBsonRef<'_>) -> Result<Option<RawBson>> {
        match action {
            Action::Keep => Ok(Some(value.into())),
            Action::Drop => Ok(None),
            Action::Compute(expression) => expression.evaluate(self.scope),
            Action::Descend(node) => self.value(node, Some(value)),
            Action::Slice(slice) => match value {
                RawBsonRef::Array(array) => Ok(Some(RawBson::Array(slice.apply(array)?))),
                _ => Ok(Some(value.into())),
            },
            Action::Positional => self.positional(value),
            Action::ElementMatch(condition) => condition.apply(name, value, self.scope.context()),
        }
    }

    /// Returns a field that is set at the end.
    fn computed(&self, name: &CStr, action: &Action, document: &RawDocument) -> Result<Option<RawBson>> {
        match action {
            Action::Compute(expression) => expression.evaluate(self.scope),
            Action::Descend(node) => self.value(node, None),
            Action::ElementMatch(condition) => match document.get(name.as_str())? {
                Some(value) => condition.apply(name, value, self.scope.context()),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// Applies a sub-tree to a value: to a document, to each element of an array; computed fields replace anything else by a document.
    fn value(&self, node: &Node, value: Option<RawBsonRef<'_>>) -> Result<Option<RawBson>> {
        match value {
            Some(RawBsonRef::Document(document)) => Ok(Some(RawBson::Document(self.document(node, document)?))),
            Some(value @ RawBsonRef::Array(_)) if node.has_positional() => self.positional(value),
            Some(RawBsonRef::Array(array)) => {
                let mut output = RawArrayBuf::new();
                for element in array {
                    if let Some(element) = self.value(node, Some(element?))? {
                        output.push(&element);
                    }
                }
                Ok(Some(RawBson::Array(output)))
            }
            _ if node.computes() => Ok(Some(RawBson::Document(self.document(node, &RawDocumentBuf::new())?))),
            Some(value) if self.kind != Kind::Inclusion => Ok(Some(value.into())),
            _ => Ok(None),
        }
    }

    /// Returns the matched element of an array; other values as they are.
    fn positional(&self, value: RawBsonRef<'_>) -> Result<Option<RawBson>> {
        let RawBsonRef::Array(array) = value else {
            return Ok(Some(value.into()));
        };
        let Some(matched) = self.matched else {
            let text = "Executor error during find command :: caused by :: positional operator '.$' couldn't find a matching element in the array";
            return Err(Error::new(51246, text));
        };
        match element(array, matched)? {
            Some(only) => Ok(Some(only)),
            None => {
                let text =
                    "Executor error during find command :: caused by :: positional operator '.$' element mismatch";
                Err(Error::new(51247, text))
            }
        }
    }
}
