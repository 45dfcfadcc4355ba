//! From BSON to the tree of an expression.

use bson::raw::CString;
use bson::{RawArray, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};

use super::build::{elements, fields};
use super::field_path::{self, FieldPath};
use super::node::{Expression, Node};
use super::operators::{self, Arguments, Named, Operator};
use super::scope::{ParseScope, Scope};
use crate::error::{Code, Error, Result};

/// Operators of MongoDB that run JavaScript or need parts of MongoDB that are not here.
const NOT_SUPPORTED: &[&str] = &["$function", "$accumulator"];

/// Parses a value at any place of an expression.
pub(super) fn operand(value: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Expression> {
    scope.deeper(|scope| {
        let node = match value {
            RawBsonRef::String(text) if text.starts_with('$') => Node::Path(FieldPath::parse(text, scope)?),
            RawBsonRef::Document(document) => object(document, scope)?,
            RawBsonRef::Array(array) => array_literal(array, scope)?,
            other => Node::Constant(other.into()),
        };
        Ok(Expression {
            node: folded(node, scope)?,
        })
    })
}

/// Computes an operation whose arguments are constants, so that it fails at parsing as in MongoDB, and costs nothing for each document.
fn folded(node: Node, scope: &ParseScope) -> Result<Node> {
    let Node::Operation(operation) = node else {
        return Ok(node);
    };
    let is_constant = operation.operator.is_deterministic() && operation.given().all(|it| it.as_constant().is_some());
    let expression = Expression {
        node: Node::Operation(operation),
    };
    if is_constant {
        let document = RawDocumentBuf::new();
        match expression.evaluate(&Scope::new(scope.context(), &document)) {
            Ok(Some(value)) => return Ok(Node::Constant(value)),
            // A missing value is no literal; the operation stays.
            Ok(None) => {}
            Err(_) if scope.defers_errors() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(expression.node)
}

/// Parses a document: an operator or a document literal.
fn object(document: &RawDocument, scope: &mut ParseScope) -> Result<Node> {
    let mut fields = fields(document);
    let Some(first) = fields.next().transpose()? else {
        return Ok(Node::Constant(RawBson::Document(document.to_owned())));
    };
    let (name, argument) = first;
    if !name.as_str().starts_with('$') {
        return object_literal(document, scope);
    }
    if fields.next().is_some() {
        let shown = crate::value::text::render(RawBsonRef::Document(document));
        return Err(Error::new(
            15983,
            format!("An object representing an expression must have exactly one field: {shown}"),
        ));
    }
    operator(name.as_str(), argument, scope)
}

fn operator(name: &str, argument: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Node> {
    if NOT_SUPPORTED.contains(&name) {
        return Err(Error::new(Code::NOT_IMPLEMENTED, format!("{name} is not supported")));
    }
    let Some(operator) = operators::find(name) else {
        let problem = format!("Unrecognized expression '{name}'");
        return Err(Error::new(Code::INVALID_PIPELINE_OPERATOR, problem));
    };
    let arguments = match operator.arguments {
        Arguments::Own(parse) => return parse(operator, argument, scope),
        Arguments::Named(named) => self::named(operator.name, named, argument, scope)?,
        Arguments::Any | Arguments::AtLeast(..) | Arguments::Exactly(_) | Arguments::Between(..) => {
            positional(operator, argument, scope)?
        }
    };
    Ok(operators::operation(operator, arguments))
}

/// Parses arguments by position, and checks their number.
pub(super) fn positional(
    operator: &Operator,
    argument: RawBsonRef<'_>,
    scope: &mut ParseScope,
) -> Result<Vec<Option<Expression>>> {
    let arguments = match argument {
        RawBsonRef::Array(array) => elements(array)
            .map(|element| Ok(Some(operand(element?, scope)?)))
            .collect::<Result<Vec<_>>>()?,
        single => vec![Some(operand(single, scope)?)],
    };
    check_count(operator.name, operator.arguments, arguments.len())?;
    Ok(arguments)
}

/// Parses so many arguments by position.
pub(super) fn exactly(
    count: usize,
    operator: &Operator,
    argument: RawBsonRef<'_>,
    scope: &mut ParseScope,
) -> Result<Vec<Option<Expression>>> {
    let arguments = positional(operator, argument, scope)?;
    check_count(operator.name, Arguments::Exactly(count), arguments.len())?;
    Ok(arguments)
}

fn check_count(name: &str, form: Arguments, count: usize) -> Result<()> {
    match form {
        Arguments::Exactly(wanted) if count != wanted => Err(Error::new(
            16020,
            format!("Expression {name} takes exactly {wanted} arguments. {count} were passed in."),
        )),
        Arguments::Between(least, most) if count < least || count > most => Err(Error::new(
            28667,
            format!(
                "Expression {name} takes at least {least} arguments, and at most {most}, but {count} were passed in."
            ),
        )),
        Arguments::AtLeast(least, code) if count < least => {
            let wanted = if least == 2 { "two" } else { "more" };
            Err(Error::new(
                code,
                format!("{name} needs at least {wanted} arguments, had: {count}"),
            ))
        }
        _ => Ok(()),
    }
}

/// Parses a document of named arguments.
pub(super) fn named(
    name: &str,
    named: &Named,
    argument: RawBsonRef<'_>,
    scope: &mut ParseScope,
) -> Result<Vec<Option<Expression>>> {
    let values = named_values(name, named, argument)?;
    let parse = |value: Option<RawBsonRef<'_>>| value.map(|value| operand(value, scope)).transpose();
    values.into_iter().map(parse).collect()
}

/// Takes apart a document of named arguments, in the order of their table.
pub(super) fn named_values<'v>(
    name: &str,
    named: &Named,
    argument: RawBsonRef<'v>,
) -> Result<Vec<Option<RawBsonRef<'v>>>> {
    let RawBsonRef::Document(document) = argument else {
        let found = crate::value::types::name(argument);
        return Err(Error::new(
            named.not_object,
            format!("{name} only supports an object as its argument, found: {found}"),
        ));
    };
    let mut values = vec![None; named.parameters.len()];
    for field in fields(document) {
        let (key, value) = field?;
        let position = named.parameters.iter().position(|(known, _)| *known == key.as_str());
        match position.and_then(|position| values.get_mut(position)) {
            Some(slot) => *slot = Some(value),
            None => {
                return Err(Error::new(
                    named.unknown,
                    format!("Unrecognized argument to {name}: {key}"),
                ));
            }
        }
    }
    for (value, (parameter, required)) in values.iter().zip(named.parameters) {
        if let (None, Some(code)) = (value, required) {
            return Err(Error::new(*code, format!("Missing '{parameter}' parameter to {name}")));
        }
    }
    Ok(values)
}

/// A document whose fields are expressions; a constant if all of them are.
fn object_literal(document: &RawDocument, scope: &mut ParseScope) -> Result<Node> {
    let mut literal: Vec<(CString, Expression)> = Vec::new();
    let mut names = std::collections::HashSet::new();
    for field in fields(document) {
        let (name, value) = field?;
        field_path::check_name(name.as_str())?;
        if !names.insert(name.as_str()) {
            let shown = crate::value::text::render(RawBsonRef::Document(document));
            return Err(Error::new(
                16406,
                format!("duplicate field name specified in object literal: {shown}"),
            ));
        }
        literal.push((name.to_owned(), operand(value, scope)?));
    }
    if literal.iter().all(|(_, value)| value.as_constant().is_some()) {
        let constants = literal
            .iter()
            .filter_map(|(name, value)| Some((name, value.as_constant()?)));
        return Ok(Node::Constant(RawBson::Document(constants.collect())));
    }
    Ok(Node::Document(literal))
}

/// An array whose elements are expressions; a constant if all of them are.
fn array_literal(array: &RawArray, scope: &mut ParseScope) -> Result<Node> {
    let literal = elements(array)
        .map(|element| operand(element?, scope))
        .collect::<Result<Vec<_>>>()?;
    if literal.iter().all(|element| element.as_constant().is_some()) {
        let constants = literal.iter().filter_map(Expression::as_constant);
        return Ok(Node::Constant(RawBson::Array(constants.collect())));
    }
    Ok(Node::Array(literal))
}
