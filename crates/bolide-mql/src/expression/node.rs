//! The tree of an expression, and its evaluation.

use std::collections::BTreeSet;

use bson::raw::CString;
use bson::{RawBson, RawBsonRef, RawDocumentBuf};
use smallvec::SmallVec;

use super::build::{ArrayBuilder, DocumentBuilder};
use super::call::{Call, Operation};
use super::field_path::FieldPath;
use super::operand::Operand;
use super::operators::Function;
use super::scope::{ParseScope, Scope};
use super::{boolean, parse};
use crate::error::Result;

/// An expression that was checked.
#[derive(Debug)]
pub struct Expression {
    pub(super) node: Node,
}

/// What an expression is.
#[derive(Debug)]
pub(super) enum Node {
    /// A literal.
    Constant(RawBson),
    /// A path such as `$a.b` or `$$x.a`, or a variable.
    Path(FieldPath),
    /// A document whose fields are expressions.
    Document(Vec<(CString, Expression)>),
    /// An array whose elements are expressions.
    Array(Vec<Expression>),
    /// An operator and its arguments.
    Operation(Box<Operation>),
}

impl Expression {
    /// Checks an expression.
    ///
    /// # Errors
    /// Those of MongoDB: `InvalidPipelineOperator` for an unknown operator, 17276 for an undefined variable, and the errors of the operator for a wrong number
    /// or form of arguments. `NotImplemented` for operators that are known and missing here. `Overflow`: nested deeper than 200 levels.
    pub fn parse(value: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Expression> {
        parse::operand(value, scope)
    }

    /// Computes the expression. `None` is a missing value.
    ///
    /// # Errors
    /// Those of the operators; `ExceededMemoryLimit` when values would exceed 100 MB; those of [`Interrupt::check`](crate::context::Interrupt::check).
    pub fn evaluate(&self, scope: &Scope<'_>) -> Result<Option<RawBson>> {
        Ok(self.operand(scope)?.map(Operand::into_owned))
    }

    /// Tells whether the value of the expression is true: not missing, null, undefined, false or zero.
    ///
    /// # Errors
    /// Those of [`evaluate`](Expression::evaluate).
    pub fn is_true(&self, scope: &Scope<'_>) -> Result<bool> {
        Ok(boolean::is_true(&self.operand(scope)?))
    }

    /// Whether the value is the same for every document.
    pub fn is_constant(&self) -> bool {
        match &self.node {
            Node::Constant(_) => true,
            Node::Path(_) => false,
            Node::Document(fields) => fields.iter().all(|(_, value)| value.is_constant()),
            Node::Array(elements) => elements.iter().all(Expression::is_constant),
            Node::Operation(operation) => {
                operation.operator.is_deterministic() && operation.given().all(Expression::is_constant)
            }
        }
    }

    /// The fields of the document that the value depends on.
    pub fn field_paths(&self) -> FieldPaths {
        let mut paths = FieldPaths::default();
        self.collect_paths(&mut paths);
        paths
    }

    fn collect_paths(&self, paths: &mut FieldPaths) {
        match &self.node {
            Node::Constant(_) => {}
            Node::Path(path) => path.collect(paths),
            Node::Document(fields) => fields.iter().for_each(|(_, value)| value.collect_paths(paths)),
            Node::Array(elements) => elements.iter().for_each(|element| element.collect_paths(paths)),
            Node::Operation(operation) => operation.given().for_each(|argument| argument.collect_paths(paths)),
        }
    }

    /// Computes the expression without copying what stands in the document, in a variable, or in the expression.
    pub(super) fn operand<'a>(&'a self, scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
        match &self.node {
            Node::Constant(value) => Ok(Some(Operand::Borrowed(value.as_raw_bson_ref()))),
            Node::Path(path) => path.evaluate(scope),
            Node::Document(fields) => {
                let document = evaluate_document(fields, scope)?;
                Ok(Some(Operand::Owned(RawBson::Document(document))))
            }
            Node::Array(elements) => Ok(Some(Operand::Owned(array(elements, scope)?))),
            Node::Operation(operation) => match operation.operator.function {
                Function::Lazy(function) => function(operation, scope),
                Function::Eager(function) => Ok(eager(operation, function, scope)?.map(Operand::Owned)),
            },
        }
    }

    pub(super) fn constant(value: impl Into<RawBson>) -> Expression {
        Expression {
            node: Node::Constant(value.into()),
        }
    }

    pub(super) fn as_constant(&self) -> Option<RawBsonRef<'_>> {
        match &self.node {
            Node::Constant(value) => Some(value.as_raw_bson_ref()),
            _ => None,
        }
    }
}

/// Computes all arguments, then the operator.
fn eager(
    operation: &Operation,
    function: fn(&Call<'_>) -> Result<Option<RawBson>>,
    scope: &Scope<'_>,
) -> Result<Option<RawBson>> {
    let mut inner = *scope;
    let mut values: SmallVec<[Option<Operand<'_>>; 3]> = SmallVec::with_capacity(operation.arguments.len());
    for argument in &operation.arguments {
        let value = match argument {
            Some(argument) => argument.operand(&inner)?,
            None => None,
        };
        inner.hold(value.as_ref().map_or(0, Operand::owned_bytes))?;
        values.push(value);
    }
    function(&Call {
        operation,
        scope: &inner,
        values: &values,
    })
}

/// Makes the array of an array literal; missing values become null.
fn array(elements: &[Expression], scope: &Scope<'_>) -> Result<RawBson> {
    let mut array = ArrayBuilder::new(scope);
    for element in elements {
        let value = element.operand(scope)?;
        array.push(value.as_ref().map_or(RawBsonRef::Null, Operand::as_raw))?;
    }
    Ok(array.finish())
}

/// Makes a document from names and expressions, as those of `$group._id` or `$project`; fields whose values are missing are left out.
///
/// # Errors
/// Those of [`Expression::evaluate`].
pub fn evaluate_document(fields: &[(CString, Expression)], scope: &Scope<'_>) -> Result<RawDocumentBuf> {
    let mut document = DocumentBuilder::new(scope);
    for (name, value) in fields {
        if let Some(value) = value.operand(scope)? {
            document.append(name, value.as_raw())?;
        }
    }
    Ok(document.finish())
}

/// What an expression reads of the document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldPaths {
    /// The dotted paths.
    pub paths: BTreeSet<String>,
    /// Whether it reads the whole document, as `$$ROOT` does.
    pub is_whole_document: bool,
}
