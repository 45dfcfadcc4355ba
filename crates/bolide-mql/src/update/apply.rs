//! Applies a tree of operators to a document.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bson::{RawBson, RawBsonRef, RawDocument, RawDocumentBuf};

use super::array_filters::ArrayFilters;
use super::delta::{ChangedPath, FieldChanges, PathPart, Recorder, same_bytes};
use super::operator::{Change, Operator, Target};
use super::path::Name;
use super::plan::{Fields, Leaf, Plan};
use super::text::shown;
use super::tree::{Node, document_of, fields_of};
use crate::context::Context;
use crate::document;
use crate::error::{Code, Error, Result};

/// Most nulls that are put into an array before an element (mongo.md §12).
const MAX_PADDING: usize = 1_500_000;

/// What the walk needs to know.
pub(super) struct Input<'w> {
    /// Time and collation.
    pub(super) ctx: &'w Context,
    /// The document before the update.
    pub(super) document: &'w RawDocument,
    /// The filters of `$[identifier]`.
    pub(super) filters: &'w ArrayFilters,
    /// The values of `$rename`.
    pub(super) renamed: Vec<Option<RawBson>>,
    /// The array element that the query matched.
    pub(super) matched: Option<usize>,
    /// The update inserts the document.
    pub(super) is_insert: bool,
}

/// Applies the operators. Returns the new document and what changed.
///
/// # Errors
/// Those of operators; `PathNotViable`, `ImmutableField`, `ConflictingUpdateOperators`, `DollarPrefixedFieldName`, and 10334 for a document
/// that becomes too large.
pub(super) fn apply(plan: &Plan, input: Input<'_>) -> Result<(RawDocumentBuf, FieldChanges)> {
    let input_document = input.document;
    let mut root = Node::Document(fields_of(input_document)?);
    let matched = input.matched.map(Name::of_index).transpose()?;
    let mut walk = Walk {
        input,
        matched,
        path: ChangedPath::default(),
        changes: Recorder::default(),
        new_bytes: 0,
    };
    walk.apply(&[plan], &mut root)?;
    let document = match &root {
        Node::Document(fields) => document_of(fields),
        _ => RawDocumentBuf::new(),
    };
    let changes = walk.changes.finish(input_document, &document)?;
    Ok((document, changes))
}

struct Walk<'w> {
    input: Input<'w>,
    matched: Option<Name>,
    /// The path of the value that is being changed.
    path: ChangedPath,
    changes: Recorder,
    /// Bytes of new values, at least; all of them are in the result.
    new_bytes: usize,
}

/// What became of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Stays,
    Removed,
}

/// Where a field of a value is.
enum Place {
    /// At this position.
    At(usize),
    /// Nowhere yet.
    Missing,
    /// The value cannot have such a field.
    Impossible,
}

impl<'w> Walk<'w> {
    /// Applies plans that do not conflict to one value.
    fn apply(&mut self, plans: &[&Plan], node: &mut Node<'_>) -> Result<Outcome> {
        match plans {
            [Plan::Leaf(leaf)] => return self.leaf(leaf, node),
            [Plan::Elements(_), ..] => self.elements(plans, node)?,
            [Plan::Fields(Fields { named, matched: None })] => {
                for (name, plan) in named {
                    self.field(name, &[plan], node)?;
                }
            }
            _ => {
                for (name, plans) in self.fields(plans)? {
                    self.field(&name, &plans, node)?;
                }
            }
        }
        Ok(Outcome::Stays)
    }

    fn leaf(&mut self, leaf: &Leaf, node: &mut Node<'_>) -> Result<Outcome> {
        let old = node.value();
        let path = self.path.to_string();
        match leaf.operator.change(old.as_raw(), &self.target(&path))? {
            Change::None => Ok(Outcome::Stays),
            Change::Remove => Ok(Outcome::Removed),
            Change::Value(value) => {
                if !same_bytes(old.as_raw(), value.as_raw_bson_ref()) {
                    drop(old);
                    self.grow(size(&value))?;
                    self.changes.updated(&self.path, value.as_raw_bson_ref());
                    *node = Node::new(value);
                }
                Ok(Outcome::Stays)
            }
            Change::Append { array, first } => {
                drop(old);
                self.grow(array.as_bytes().len())?;
                for (index, element) in array.into_iter().enumerate().skip(first) {
                    let path = self.path.with(PathPart::Index(index));
                    self.changes.updated(&path, element?);
                }
                *node = Node::new(RawBson::Array(array));
                Ok(Outcome::Stays)
            }
        }
    }

    /// Applies plans for array elements.
    fn elements(&mut self, plans: &[&Plan], node: &mut Node<'_>) -> Result<()> {
        let Some(elements) = node.open_array()? else {
            let value = shown(node.value().as_raw());
            let name = self.path.0.last().map(PathPart::to_string).unwrap_or_default();
            return Err(Error::bad_value(format!(
                "Cannot apply array updates to non-array element {name}: {value}"
            )));
        };
        for (index, element) in elements.iter_mut().enumerate() {
            self.path.0.push(PathPart::Index(index));
            let matching = self.plans_of_element(plans, element)?;
            if !matching.is_empty() && self.apply(&matching, element)? == Outcome::Removed {
                self.set_null(element);
            }
            self.path.0.pop();
        }
        Ok(())
    }

    fn plans_of_element<'p>(&self, plans: &[&'p Plan], element: &Node<'_>) -> Result<Vec<&'p Plan>> {
        let value = element.value();
        let mut matching = Vec::new();
        for plan in plans {
            let Plan::Elements(by_identifier) = plan else {
                continue;
            };
            for (identifier, plan) in by_identifier {
                self.input.ctx.interrupt.check(1)?;
                if self.input.filters.matches(identifier, value.as_raw(), self.input.ctx)? {
                    self.check_conflicts(&matching, plan, &self.path.to_string())?;
                    matching.push(plan);
                }
            }
        }
        Ok(matching)
    }

    fn check_conflicts(&self, plans: &[&Plan], added: &Plan, path: &str) -> Result<()> {
        for plan in plans {
            self.input.ctx.interrupt.check(1)?;
            if let Some(at) = plan.conflict_with(added, path) {
                return Err(Error::new(
                    Code::CONFLICTING_UPDATE_OPERATORS,
                    format!("Update created a conflict at '{at}'"),
                ));
            }
        }
        Ok(())
    }

    /// Returns the plans for fields, in their order, with the number of the matched element in the place of `$`.
    fn fields<'p>(&self, plans: &[&'p Plan]) -> Result<BTreeMap<Name, Vec<&'p Plan>>> {
        let mut fields: BTreeMap<Name, Vec<&Plan>> = BTreeMap::new();
        for plan in plans {
            let Plan::Fields(Fields { named, matched }) = plan else {
                continue;
            };
            for (name, plan) in named {
                fields.entry(name.clone()).or_default().push(plan);
            }
            if let Some(plan) = matched {
                let name = self.matched.as_ref().ok_or_else(|| {
                    Error::bad_value("The positional operator did not find the match needed from the query.")
                })?;
                let same = fields.entry(name.clone()).or_default();
                let path = self.path.with(PathPart::Field(name.as_str().to_owned()));
                self.check_conflicts(same, plan, &path.to_string())?;
                same.push(plan);
            }
        }
        Ok(fields)
    }

    /// Applies plans to a field of a value.
    fn field(&mut self, name: &Name, plans: &[&Plan], parent: &mut Node<'_>) -> Result<()> {
        let changes = self.changes.count();
        // Looking for a name in a document takes as many steps.
        self.input.ctx.interrupt.check(match parent {
            Node::Document(fields) => fields.len() as u64,
            _ => 1,
        })?;
        match place_of(name, parent)? {
            Place::At(position) => self.existing_field(name, position, plans, parent)?,
            Place::Missing => self.missing_field(name, plans, parent)?,
            Place::Impossible => self.check_not_needed(name, plans, parent)?,
        }
        if self.path.0.is_empty() && self.changes.count() != changes {
            self.check_top_level(name, plans)?;
        }
        Ok(())
    }

    fn existing_field(&mut self, name: &Name, position: usize, plans: &[&Plan], parent: &mut Node<'_>) -> Result<()> {
        match parent {
            Node::Document(fields) => {
                self.path.0.push(PathPart::Field(name.as_str().to_owned()));
                if self.apply(plans, &mut fields[position].1)? == Outcome::Removed {
                    fields.remove(position);
                    self.changes.removed(&self.path);
                }
            }
            Node::Array(elements) => {
                self.path.0.push(PathPart::Index(position));
                if self.apply(plans, &mut elements[position])? == Outcome::Removed {
                    self.set_null(&mut elements[position]);
                }
            }
            Node::Raw(_) | Node::Owned(_) => return Ok(()),
        }
        self.path.0.pop();
        Ok(())
    }

    fn missing_field(&mut self, name: &Name, plans: &[&Plan], parent: &mut Node<'_>) -> Result<()> {
        self.path.0.push(match (&*parent, name.index()) {
            (Node::Array(_), Some(index)) => PathPart::Index(index),
            _ => PathPart::Field(name.as_str().to_owned()),
        });
        if let Some(value) = self.create(plans)? {
            self.grow(size(&value))?;
            self.changes.updated(&self.path, value.as_raw_bson_ref());
            match parent {
                Node::Document(fields) => fields.push((Cow::Owned(name.as_cstr().to_owned()), Node::new(value))),
                Node::Array(elements) => self.add_element(name, value, elements)?,
                Node::Raw(_) | Node::Owned(_) => {}
            }
        }
        self.path.0.pop();
        Ok(())
    }

    fn add_element(&mut self, name: &Name, value: RawBson, elements: &mut Vec<Node<'_>>) -> Result<()> {
        let padding = name.index().unwrap_or(usize::MAX).saturating_sub(elements.len());
        if padding > MAX_PADDING {
            return Err(Error::new(
                Code::CANNOT_BACKFILL_ARRAY,
                format!("can't backfill more than {MAX_PADDING} elements"),
            ));
        }
        // A null has at least its type, one digit and a zero byte.
        self.grow(padding * 3)?;
        elements.extend((0..padding).map(|_| Node::Raw(RawBsonRef::Null)));
        elements.push(Node::new(value));
        Ok(())
    }

    /// Returns the value that plans make where there is none.
    fn create(&mut self, plans: &[&Plan]) -> Result<Option<RawBson>> {
        match plans {
            [Plan::Leaf(leaf)] => {
                let path = self.path.to_string();
                leaf.operator.create(&self.target(&path))
            }
            [Plan::Elements(_), ..] => Err(Error::bad_value(format!(
                "The path '{}' must exist in the document in order to apply array updates.",
                self.path
            ))),
            _ => {
                let mut document = RawDocumentBuf::new();
                for (name, plans) in self.fields(plans)? {
                    self.path.0.push(PathPart::Field(name.as_str().to_owned()));
                    if let Some(value) = self.create(&plans)? {
                        document.append(name.as_cstr(), value);
                    }
                    self.path.0.pop();
                }
                Ok((!document.is_empty()).then_some(RawBson::Document(document)))
            }
        }
    }

    /// Checks that plans need no field where there cannot be one: `$unset` does not, operators that remove elements do.
    fn check_not_needed(&mut self, name: &Name, plans: &[&Plan], parent: &Node<'_>) -> Result<()> {
        let parent_name = self.path.0.last().map(PathPart::to_string).unwrap_or_default();
        self.path.0.push(PathPart::Field(name.as_str().to_owned()));
        let is_created = self.create(plans)?.is_some();
        self.path.0.pop();
        let name = name.as_str();
        let element = || format!("{{{parent_name}: {}}}", shown(parent.value().as_raw()));
        let message = if is_created {
            format!("Cannot create field '{name}' in element {}", element())
        } else if let Some(path) = plans.iter().find_map(|plan| plan.path_that_must_be_viable()) {
            format!(
                "Cannot use the part ({name}) of ({path}) to traverse the element ({})",
                element()
            )
        } else {
            return Ok(());
        };
        Err(Error::new(Code::PATH_NOT_VIABLE, message))
    }

    /// Checks a change of a top-level field: `_id` does not change, and names with `$` can only be removed, or be there from the beginning.
    fn check_top_level(&self, name: &Name, plans: &[&Plan]) -> Result<()> {
        let name = name.as_str();
        let path = plans.first().map_or(name, |plan| plan.first_path());
        if name == "_id" && self.input.document.get("_id")?.is_some() {
            return Err(Error::new(
                Code::IMMUTABLE_FIELD,
                format!("Performing an update on the path '{path}' would modify the immutable field '_id'"),
            ));
        }
        if name.starts_with('$') && !self.input.is_insert && !plans.iter().all(|plan| plan.only_removes()) {
            return Err(document::dollar_prefixed(name, path));
        }
        Ok(())
    }

    /// Puts null in the place of an array element, as all removals of elements by their numbers do.
    fn set_null(&mut self, element: &mut Node<'_>) {
        if !matches!(element.value().as_raw(), RawBsonRef::Null) {
            self.changes.updated(&self.path, RawBsonRef::Null);
            *element = Node::Raw(RawBsonRef::Null);
        }
    }

    /// Counts bytes of the result, so that what cannot be stored is not put together.
    fn grow(&mut self, bytes: usize) -> Result<()> {
        self.new_bytes = self.new_bytes.saturating_add(bytes);
        document::check_internal_size(self.new_bytes)
    }

    fn target<'t>(&'t self, path: &'t str) -> Target<'t> {
        Target {
            ctx: self.input.ctx,
            document: self.input.document,
            path,
            name: path.rsplit('.').next().unwrap_or(path),
            renamed: &self.input.renamed,
            is_insert: self.input.is_insert,
        }
    }
}

fn place_of(name: &Name, parent: &mut Node<'_>) -> Result<Place> {
    if let Some(fields) = parent.open_document()? {
        let position = fields.iter().position(|(field, _)| **field == *name.as_cstr());
        return Ok(position.map_or(Place::Missing, Place::At));
    }
    let Some(elements) = parent.open_array()? else {
        return Ok(Place::Impossible);
    };
    Ok(match name.index() {
        Some(index) if index < elements.len() => Place::At(index),
        Some(_) => Place::Missing,
        None => Place::Impossible,
    })
}

/// Returns the bytes of a value, at least.
fn size(value: &RawBson) -> usize {
    match value {
        RawBson::String(text) | RawBson::Symbol(text) => text.len(),
        RawBson::Document(document) => document.as_bytes().len(),
        RawBson::Array(array) => array.as_bytes().len(),
        RawBson::Binary(data) => data.bytes.len(),
        _ => 1,
    }
}

impl Plan {
    fn leaves<'p>(&'p self, found: &mut Vec<&'p Leaf>) {
        match self {
            Plan::Empty => {}
            Plan::Leaf(leaf) => found.push(leaf),
            Plan::Fields(fields) => {
                (fields.named.values())
                    .chain(fields.matched.as_deref())
                    .for_each(|plan| plan.leaves(found));
            }
            Plan::Elements(elements) => elements.values().for_each(|plan| plan.leaves(found)),
        }
    }

    /// Tells whether every operator only removes.
    fn only_removes(&self) -> bool {
        let mut leaves = Vec::new();
        self.leaves(&mut leaves);
        leaves.iter().all(|leaf| leaf.operator.only_removes())
    }

    /// Returns the path of the first operator that adds nothing, and yet is refused where its path is impossible.
    fn path_that_must_be_viable(&self) -> Option<&str> {
        let mut leaves = Vec::new();
        self.leaves(&mut leaves);
        let leaf = leaves.into_iter().find(|leaf| {
            matches!(
                leaf.operator,
                Operator::Pull(_) | Operator::PullAll(_) | Operator::Pop(_)
            )
        })?;
        Some(&leaf.path)
    }
}
