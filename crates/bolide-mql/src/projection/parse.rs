//! The parser of projections.

use bson::raw::{CString, RawBsonRef, RawDocument};

use super::array::{ElementMatch, Slice};
use super::tree::{Action, Node};
use super::{Kind, MAX_DEPTH, Projection};
use crate::error::{Code, Error, Result};
use crate::expression::{self, Expression, ParseScope};
use crate::path::field::{FieldPath, parse_name};
use crate::value::{is_truthy, text};

/// Which operators there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    /// `find`: with `$slice`, `$elemMatch`, `a.$`.
    Find,
    /// The stage `$project`.
    Stage,
}

/// Parses a specification.
pub(super) fn parse(spec: &RawDocument, language: Language, scope: &mut ParseScope) -> Result<Projection> {
    let mut parser = Parser {
        language,
        scope,
        root: Node::default(),
        kind: None,
        id: Id::Unnamed,
        seen: Seen::default(),
    };
    for element in spec {
        let (name, value) = element?;
        parser.element(&[], name.as_str(), value)?;
    }
    parser.finish()
}

struct Parser<'s> {
    language: Language,
    scope: &'s mut ParseScope,
    root: Node,
    kind: Option<Kind>,
    id: Id,
    seen: Seen,
}

/// How the specification names the field `_id` as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Id {
    Unnamed,
    Included,
    Excluded,
    /// Computed, or a part of it is named.
    Other,
}

/// The operators seen so far.
#[derive(Debug, Default)]
struct Seen {
    slice: bool,
    element_match: bool,
    meta: bool,
    positional: bool,
}

impl Parser<'_> {
    fn element(&mut self, parent: &[CString], name: &str, value: RawBsonRef<'_>) -> Result<()> {
        let is_positional = name.ends_with(".$");
        if is_positional && self.language == Language::Stage {
            return Err(Error::new(
                31324,
                "Cannot use positional projection in aggregation projection",
            ));
        }
        if name.contains(".$.") {
            return Err(Error::new(
                31394,
                "As of 4.4, it's illegal to specify positional operator in the middle of a path.Positional projection may only be used at \
                 the end, for example: a.b.$. If the query previously used a form like a.b.$.d, remove the parts following the '$' and the \
                 results will be equivalent.",
            ));
        }
        if parent.is_empty()
            && name.starts_with("_id")
            && (name == "_id" || name.starts_with("_id."))
            && self.id == Id::Unnamed
        {
            self.id = Id::Other;
        }
        match value {
            RawBsonRef::Document(_) if is_positional => {
                let text = "positional projection cannot be used with an expression or sub object";
                Err(Error::new(31271, text))
            }
            RawBsonRef::Document(spec) => self.sub_document(parent, name, spec),
            RawBsonRef::Boolean(_)
            | RawBsonRef::Int32(_)
            | RawBsonRef::Int64(_)
            | RawBsonRef::Double(_)
            | RawBsonRef::Decimal128(_) => match is_truthy(value) {
                true => self.inclusion(parent, name),
                false if is_positional => Err(Error::new(31395, "positional projection cannot be used with exclusion")),
                false => self.exclusion(parent, name),
            },
            _ if is_positional => Err(Error::new(31308, "positional projection cannot be used with a literal")),
            _ => self.literal(parent, name, value),
        }
    }

    fn inclusion(&mut self, parent: &[CString], name: &str) -> Result<()> {
        if let Some(path) = name.strip_suffix(".$") {
            self.positional(parent, name, path)?;
        } else {
            self.insert(parent, name, Action::Keep)?;
        }
        if parent.is_empty() && name == "_id" {
            self.id = Id::Included;
            return Ok(());
        }
        match self.kind {
            Some(Kind::Exclusion) => {
                let text = format!("Cannot do inclusion on field {name} in exclusion projection");
                Err(Error::new(31253, text))
            }
            _ => {
                self.kind = Some(Kind::Inclusion);
                Ok(())
            }
        }
    }

    fn positional(&mut self, parent: &[CString], name: &str, path: &str) -> Result<()> {
        if self.seen.positional {
            let text = "Cannot specify more than one positional projection per query.";
            return Err(Error::new(31276, text));
        }
        if self.seen.element_match {
            return Err(Error::new(31256, "Cannot specify positional operator and $elemMatch."));
        }
        if path.is_empty() {
            return Err(Error::new(5392900, format!("Projection on field {name} is invalid")));
        }
        self.seen.positional = true;
        self.insert(parent, path, Action::Positional)
    }

    fn exclusion(&mut self, parent: &[CString], name: &str) -> Result<()> {
        self.insert(parent, name, Action::Drop)?;
        if parent.is_empty() && name == "_id" {
            self.id = Id::Excluded;
            return Ok(());
        }
        match self.kind {
            Some(Kind::Inclusion) => {
                let text = format!("Cannot do exclusion on field {name} in inclusion projection");
                Err(Error::new(31254, text))
            }
            _ => {
                self.kind = Some(Kind::Exclusion);
                Ok(())
            }
        }
    }

    fn literal(&mut self, parent: &[CString], name: &str, value: RawBsonRef<'_>) -> Result<()> {
        let expression = Expression::parse(value, self.scope)?;
        self.insert(parent, name, Action::Compute(expression))?;
        if self.kind == Some(Kind::Exclusion) {
            let shown = text::render(value);
            let text = format!("Cannot use an expression {name}: {shown} in an exclusion projection");
            return Err(Error::new(31310, text));
        }
        self.kind = Some(Kind::Inclusion);
        Ok(())
    }

    /// Parses an operator, or the names below a field.
    fn sub_document(&mut self, parent: &[CString], name: &str, spec: &RawDocument) -> Result<()> {
        let mut elements = spec.iter();
        let Some((operator, operand)) = elements.next().transpose()? else {
            let text = "An empty sub-projection is not a valid value. Found empty object at path";
            return Err(Error::new(51270, text));
        };
        if elements.next().is_none() && operator.as_str().starts_with('$') {
            return self.operator(parent, name, spec, operator.as_str(), operand);
        }
        let path = join_path(parent, name)?;
        for element in spec {
            let (name, value) = element?;
            self.element(&path, name.as_str(), value)?;
        }
        Ok(())
    }

    fn operator(
        &mut self,
        parent: &[CString],
        name: &str,
        spec: &RawDocument,
        operator: &str,
        operand: RawBsonRef<'_>,
    ) -> Result<()> {
        match (operator, self.language) {
            ("$slice", Language::Find) => return self.slice(parent, name, spec, operand),
            ("$elemMatch", Language::Find) => return self.element_match(parent, name, spec),
            ("$elemMatch", Language::Stage) => {
                let text = "Cannot use $elemMatch in this context";
                return Err(Error::new(Code::INVALID_PIPELINE_OPERATOR, text));
            }
            _ if !expression::is_operator(operator) => {
                return Err(Error::new(31325, format!("Unknown expression {operator}")));
            }
            _ => {}
        }
        self.expression(parent, name, spec, operator == "$meta")
    }

    fn expression(&mut self, parent: &[CString], name: &str, spec: &RawDocument, is_meta: bool) -> Result<()> {
        if self.kind == Some(Kind::Exclusion) && !is_meta {
            let text = "Cannot use expression other than $meta in exclusion projection";
            return Err(Error::new(31252, text));
        }
        if !is_meta {
            self.kind = Some(Kind::Inclusion);
        }
        self.seen.meta |= is_meta;
        let expression = Expression::parse(RawBsonRef::Document(spec), self.scope)?;
        self.insert(parent, name, Action::Compute(expression))
    }

    /// `$slice` is first that of `find`, then the expression of that name.
    fn slice(&mut self, parent: &[CString], name: &str, spec: &RawDocument, operand: RawBsonRef<'_>) -> Result<()> {
        let find_error = match Slice::parse(operand) {
            Ok(slice) => {
                self.seen.slice = true;
                return self.insert(parent, name, Action::Slice(slice));
            }
            Err(error) => error,
        };
        self.expression(parent, name, spec, false).map_err(|mut error| {
            let shown = text::render(RawBsonRef::Document(spec));
            error.message = format!(
                "Invalid $slice syntax. The given syntax {shown} did not match the find() syntax because :: Location{}: {} :: The given \
                 syntax did not match the expression $slice syntax. :: caused by :: {}",
                find_error.code.0, find_error.message, error.message
            );
            error
        })
    }

    fn element_match(&mut self, parent: &[CString], name: &str, spec: &RawDocument) -> Result<()> {
        if self.seen.positional {
            return Err(Error::new(31255, "Cannot specify positional operator and $elemMatch."));
        }
        if !parent.is_empty() || name.contains('.') {
            return Err(Error::new(31275, "Cannot use $elemMatch projection on a nested field."));
        }
        let field = parse_name(name)?;
        let condition = ElementMatch::parse(&field, spec, self.scope)?;
        self.seen.element_match = true;
        self.insert(parent, name, Action::ElementMatch(Box::new(condition)))
    }

    fn insert(&mut self, parent: &[CString], name: &str, action: Action) -> Result<()> {
        self.root.insert(&join_path(parent, name)?, action)
    }

    fn finish(mut self) -> Result<Projection> {
        let kind = self.kind.unwrap_or_else(|| self.default_kind());
        match (kind, self.id) {
            (Kind::Inclusion, Id::Unnamed) => self.root.insert(&[parse_name("_id")?], Action::Keep)?,
            (Kind::Inclusion, Id::Excluded) | (Kind::Exclusion, Id::Included) => self.root.remove("_id"),
            _ => {}
        }
        Ok(Projection {
            kind,
            has_positional: self.root.has_positional(),
            root: self.root,
        })
    }

    /// The kind of a specification that names at most `_id` and operators that go with both kinds.
    fn default_kind(&self) -> Kind {
        let is_find = self.language == Language::Find;
        match self.id {
            Id::Included => Kind::Inclusion,
            _ if self.seen.slice => Kind::Exclusion,
            _ if self.seen.element_match => Kind::Inclusion,
            _ if self.seen.meta && !is_find => Kind::Inclusion,
            _ => Kind::Exclusion,
        }
    }
}

/// Returns the path of a name below a parent.
///
/// # Errors
/// Those of [`FieldPath::parse`]; 15 beyond [`MAX_DEPTH`] names.
fn join_path(parent: &[CString], name: &str) -> Result<Vec<CString>> {
    let path = FieldPath::parse(name)?;
    if parent.len() + path.names().len() > MAX_DEPTH {
        return Err(Error::new(Code::OVERFLOW, "FieldPath is too long"));
    }
    Ok([parent, path.names()].concat())
}
