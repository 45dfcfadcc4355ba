//! What an expression sees: the document, the variables, and the limits.

use bolide_model::UnixMillis;
use bson::{RawBson, RawBsonRef, RawDocument};

use super::operand::Operand;
use crate::context::Context;
use crate::error::{Code, Error, Result};

/// Deepest nesting of operators, documents and arrays in one expression, as MongoDB limits documents.
const MAX_DEPTH: usize = 200;

/// The variable that paths such as `$a` begin at.
const CURRENT: &str = "CURRENT";

/// Bytes that the values of one evaluation may hold together, as the memory limit of a stage in MongoDB (`mongo.md §13`).
pub(super) const MAX_VALUE_BYTES: usize = 100 * 1024 * 1024;

/// What is known while an expression is parsed: the names of variables, how deep it is, and the context in which constant parts are computed.
#[derive(Clone)]
pub struct ParseScope {
    context: Context,
    variables: Vec<String>,
    depth: usize,
    /// Whether an error of a constant part is left to the evaluation.
    defers_errors: bool,
}

impl Default for ParseScope {
    /// A scope without variables and collation.
    fn default() -> ParseScope {
        ParseScope::new(&Context::new(UnixMillis(0)))
    }
}

impl ParseScope {
    /// Returns a scope with the variables of the command's `let`. Constant parts are compared by the collation of the context.
    pub fn new(context: &Context) -> ParseScope {
        ParseScope {
            context: context.clone(),
            variables: context.variables.iter().map(|(name, _)| name.clone()).collect(),
            depth: 0,
            defers_errors: false,
        }
    }

    /// Leaves errors of constant parts to the evaluation: the pipeline of an update that finds nothing to update does not fail.
    #[must_use]
    pub fn deferring_errors(self) -> ParseScope {
        ParseScope {
            defers_errors: true,
            ..self
        }
    }

    pub(super) fn defers_errors(&self) -> bool {
        self.defers_errors
    }

    /// Adds a variable, by its name without `$$`; the one who evaluates must bind it with [`Scope::with_variable`].
    pub fn define(&mut self, name: impl Into<String>) {
        self.variables.push(name.into());
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    pub(super) fn is_defined(&self, name: &str) -> bool {
        self.variables.iter().any(|known| known == name)
    }

    /// Parses something in which more variables are defined.
    pub(super) fn with<T>(&mut self, names: &[String], parse: impl FnOnce(&mut ParseScope) -> Result<T>) -> Result<T> {
        let before = self.variables.len();
        self.variables.extend_from_slice(names);
        let parsed = parse(self);
        self.variables.truncate(before);
        parsed
    }

    /// Parses something one level deeper.
    pub(super) fn deeper<T>(&mut self, parse: impl FnOnce(&mut ParseScope) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::new(
                Code::OVERFLOW,
                format!("Expression exceeded the depth limit of {MAX_DEPTH} levels"),
            ));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }
}

/// What is known while an expression is evaluated. It is small, and cheap to extend.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    context: &'a Context,
    root: &'a RawDocument,
    current: Option<RawBsonRef<'a>>,
    metadata: Option<&'a RawDocument>,
    variables: Variables<'a>,
    outer: Option<&'a Scope<'a>>,
    held_bytes: usize,
}

/// The variables that one scope adds to the scopes around it.
#[derive(Clone, Copy)]
enum Variables<'a> {
    None,
    One(&'a str, Option<RawBsonRef<'a>>),
    /// Names and values, in the same order.
    Many(&'a [String], &'a [Option<Operand<'a>>]),
}

impl<'a> Variables<'a> {
    fn get(self, name: &str) -> Option<Option<RawBsonRef<'a>>> {
        match self {
            Variables::None => None,
            Variables::One(known, value) => (known == name).then_some(value),
            Variables::Many(names, values) => {
                let position = names.iter().rposition(|known| known == name)?;
                values.get(position).map(|value| value.as_ref().map(Operand::as_raw))
            }
        }
    }
}

impl<'a> Scope<'a> {
    /// Returns the scope of a document: it is `$$ROOT` and `$$CURRENT`.
    pub fn new(context: &'a Context, root: &'a RawDocument) -> Scope<'a> {
        Scope {
            context,
            root,
            current: Some(RawBsonRef::Document(root)),
            metadata: None,
            variables: Variables::None,
            outer: None,
            held_bytes: 0,
        }
    }

    /// Returns the scope with one more variable, which hides another of the same name. `CURRENT` is what paths such as `$a` begin at.
    pub fn with_variable<'b>(&'b self, name: &'b str, value: Option<RawBsonRef<'b>>) -> Scope<'b>
    where
        'a: 'b,
    {
        let mut inner: Scope<'b> = *self;
        if name == CURRENT {
            inner.current = value;
            return inner;
        }
        inner.variables = Variables::One(name, value);
        inner.outer = Some(self);
        inner
    }

    /// Returns the scope with the variables of a `$let`.
    pub(super) fn with_variables<'b>(&'b self, names: &'b [String], values: &'b [Option<Operand<'b>>]) -> Scope<'b>
    where
        'a: 'b,
    {
        let mut inner: Scope<'b> = *self;
        inner.variables = Variables::Many(names, values);
        inner.outer = Some(self);
        if let Some(current) = inner.variables.get(CURRENT) {
            inner.current = current;
        }
        inner
    }

    /// Returns the scope with the metadata of the document that `$meta` reads, by the names of `$meta`, such as `textScore`.
    pub fn with_metadata(self, metadata: &'a RawDocument) -> Scope<'a> {
        Scope {
            metadata: Some(metadata),
            ..self
        }
    }

    /// The time, variables and limits of the command.
    pub fn context(&self) -> &'a Context {
        self.context
    }

    /// The document, `$$ROOT`.
    pub fn root(&self) -> &'a RawDocument {
        self.root
    }

    /// `$$CURRENT`; `None` if it is missing.
    pub fn current(&self) -> Option<RawBsonRef<'a>> {
        self.current
    }

    pub(super) fn metadata(&self) -> Option<&'a RawDocument> {
        self.metadata
    }

    /// Returns the value of a variable by its name; the inner `None` is a missing value.
    pub(super) fn variable(&self, name: &str) -> Option<Option<RawBsonRef<'a>>> {
        let mut scope = *self;
        loop {
            if let Some(value) = scope.variables.get(name) {
                return Some(value);
            }
            match scope.outer {
                Some(outer) => scope = *outer,
                None => break,
            }
        }
        let of_command = self.context.variables.iter().rev().find(|(known, _)| known == name);
        // Those of `$lookup` may be missing, which undefined stands for.
        let value = |value: &'a RawBson| match value {
            RawBson::Undefined => None,
            value => Some(value.as_raw_bson_ref()),
        };
        of_command.map(|(_, given)| value(given))
    }

    /// Counts bytes of values that are kept until this scope ends.
    pub(super) fn hold(&mut self, bytes: usize) -> Result<()> {
        self.reserve(bytes)?;
        self.held_bytes += bytes;
        Ok(())
    }

    /// Checks that a value of this size may be made.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`: together with the values that are held it would exceed 100 MB.
    pub(super) fn reserve(&self, bytes: usize) -> Result<()> {
        if self.held_bytes.saturating_add(bytes) > MAX_VALUE_BYTES {
            return Err(Error::new(
                Code::EXCEEDED_MEMORY_LIMIT,
                format!(
                    "An expression would use too much memory and cannot spill to disk. Memory limit: {MAX_VALUE_BYTES} bytes"
                ),
            ));
        }
        Ok(())
    }

    /// Counts steps of work, such as elements of an array.
    pub(super) fn step(&self, steps: usize) -> Result<()> {
        self.context.interrupt.check(steps as u64)
    }
}

impl std::fmt::Debug for ParseScope {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ParseScope")
            .field("variables", &self.variables)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Scope<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Scope")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}
