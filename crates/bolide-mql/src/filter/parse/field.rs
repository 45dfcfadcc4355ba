//! The operators on one field.

use bson::{RawBsonRef, RawDocument};

use super::{
    Place, RequiredOfDbRef, all_of, array, begins_with_document_operator, compile, conditions, is_operator_document,
    on_path, operands, regex_predicate,
};
use crate::error::{Code, Error, Result};
use crate::filter::comparison::{Comparison, Operator};
use crate::filter::membership::Membership;
use crate::filter::node::Node;
use crate::filter::pattern::Pattern;
use crate::filter::predicate::Predicate;
use crate::geo;
use crate::path::Path;
use crate::value::is_truthy;
use crate::value::types::TypeSet;

/// Names of operators on a field, without `$`.
const PATH_OPERATORS: [&str; 27] = [
    "all",
    "bitsAllClear",
    "bitsAllSet",
    "bitsAnyClear",
    "bitsAnySet",
    "elemMatch",
    "eq",
    "exists",
    "geoIntersects",
    "geoNear",
    "geoWithin",
    "gt",
    "gte",
    "in",
    "lt",
    "lte",
    "mod",
    "ne",
    "near",
    "nearSphere",
    "nin",
    "not",
    "options",
    "regex",
    "size",
    "type",
    "within",
];

/// Tells whether a name is that of an operator on a field: `$gt`.
pub fn is_path_operator(name: &str) -> bool {
    let operator = name.strip_prefix('$');
    operator.is_some_and(|operator| PATH_OPERATORS.contains(&operator))
}

/// Parses the operators on a field; a node for each.
pub(super) fn operators(path: &Path, operators: &RawDocument, place: Place<'_>, nodes: &mut Vec<Node>) -> Result<()> {
    for element in operators {
        let (name, value) = element.map_err(Error::malformed)?;
        nodes.extend(operator(path, name.as_str(), value, operators, place)?);
    }
    Ok(())
}

/// Parses one operator; `siblings` are all operators of the field. `None` for one that belongs to another.
fn operator(
    path: &Path,
    name: &str,
    value: RawBsonRef<'_>,
    siblings: &RawDocument,
    place: Place<'_>,
) -> Result<Option<Node>> {
    match name {
        // Those with conditions inside are apart, so that nested ones take little of the stack.
        "$elemMatch" => Ok(Some(field(path, element_match(value, place)?))),
        "$all" => all(path, value, place).map(Some),
        "$not" => negation(path, value, place).map(Some),
        "$options" => options(siblings).map(|()| None),
        name if geo::is_near_option(name) && has_near(siblings) => Ok(None),
        name => flat_operator(path, name, value, siblings).map(Some),
    }
}

/// Parses an operator without conditions inside.
fn flat_operator(path: &Path, name: &str, value: RawBsonRef<'_>, siblings: &RawDocument) -> Result<Node> {
    let predicate = match name {
        "$eq" => comparison(path, Operator::Equal, value)?,
        "$lt" => comparison(path, Operator::Less, value)?,
        "$lte" => comparison(path, Operator::LessOrEqual, value)?,
        "$gt" => comparison(path, Operator::Greater, value)?,
        "$gte" => comparison(path, Operator::GreaterOrEqual, value)?,
        "$ne" if matches!(value, RawBsonRef::RegularExpression(_)) => {
            return Err(Error::bad_value("Can't have regex as arg to $ne."));
        }
        "$ne" => return Ok(not(field(path, comparison(path, Operator::Equal, value)?))),
        "$in" => membership("$in", value)?,
        "$nin" => return Ok(not(field(path, membership("$nin", value)?))),
        "$exists" if is_truthy(value) => Predicate::Exists,
        "$exists" => return Ok(not(field(path, Predicate::Exists))),
        "$type" => Predicate::Type(types(path, value)?),
        "$regex" => Predicate::Regex(Box::new(regex(siblings)?)),
        "$mod" => operands::modulo(value)?,
        "$size" => operands::size(value)?,
        "$bitsAllSet" | "$bitsAnySet" | "$bitsAllClear" | "$bitsAnyClear" => {
            operands::bits(path.as_str(), name, value)?
        }
        name if geo::is_operator(name) => Predicate::Geometry(geo::Predicate::parse(name, value, siblings)?),
        "$where" => return Err(Error::bad_value("$where cannot be applied to a field")),
        _ => return Err(Error::bad_value(format!("unknown operator: {name}"))),
    };
    Ok(field(path, predicate))
}

fn field(path: &Path, predicate: Predicate) -> Node {
    on_path(path.clone(), predicate)
}

fn not(node: Node) -> Node {
    Node::Not(Box::new(node))
}

fn comparison(path: &Path, operator: Operator, value: RawBsonRef<'_>) -> Result<Predicate> {
    match value {
        RawBsonRef::Undefined => Err(Error::bad_value("cannot compare to undefined")),
        RawBsonRef::RegularExpression(_) if operator != Operator::Equal => {
            let text = format!("Can't have RegEx as arg to predicate over field '{}'.", path.as_str());
            Err(Error::bad_value(text))
        }
        value => Ok(Predicate::Comparison(Comparison::new(operator, value))),
    }
}

fn membership(operator: &str, value: RawBsonRef<'_>) -> Result<Predicate> {
    let (mut values, mut regexes) = (Vec::new(), Vec::new());
    for item in array(operator, value)? {
        match item.map_err(Error::malformed)? {
            RawBsonRef::Document(document) if is_operator_document(document, RequiredOfDbRef::Both)? => {
                return Err(Error::bad_value("cannot nest $ under $in"));
            }
            RawBsonRef::Undefined => return Err(Error::bad_value("InMatchExpression equality cannot be undefined")),
            RawBsonRef::RegularExpression(regex) => {
                regexes.push(compile(regex)?);
            }
            value => values.push(value.into()),
        }
    }
    Ok(Predicate::Membership(Membership::new(values, regexes)))
}

fn types(path: &Path, value: RawBsonRef<'_>) -> Result<TypeSet> {
    match value {
        RawBsonRef::Array(array) if array.is_empty() => {
            let text = format!("{} must match at least one type", path.as_str());
            Err(Error::new(Code::FAILED_TO_PARSE, text))
        }
        value => TypeSet::parse(value),
    }
}

/// Parses `$regex` with the `$options` before or after it.
fn regex(siblings: &RawDocument) -> Result<Pattern> {
    let (mut pattern, mut options) = (String::new(), String::new());
    for element in siblings {
        let (name, value) = element.map_err(Error::malformed)?;
        match (name.as_str(), value) {
            ("$regex", RawBsonRef::String(text)) => text.clone_into(&mut pattern),
            ("$regex", RawBsonRef::RegularExpression(regex)) => {
                regex.pattern.as_str().clone_into(&mut pattern);
                if !regex.options.is_empty() {
                    if !options.is_empty() {
                        return Err(Error::new(51074, "options set in both $regex and $options"));
                    }
                    regex.options.as_str().clone_into(&mut options);
                }
            }
            ("$regex", _) => return Err(Error::bad_value("$regex has to be a string")),
            ("$options", RawBsonRef::String(_)) if !options.is_empty() => {
                return Err(Error::new(51075, "options set in both $regex and $options"));
            }
            ("$options", RawBsonRef::String(text)) => text.clone_into(&mut options),
            ("$options", _) => return Err(Error::bad_value("$options has to be a string")),
            _ => {}
        }
    }
    Pattern::compile(&pattern, &options)
}

fn options(siblings: &RawDocument) -> Result<()> {
    match siblings.get("$regex").map_err(Error::malformed)? {
        Some(_) => Ok(()),
        None => Err(Error::bad_value("$options needs a $regex")),
    }
}

fn element_match(value: RawBsonRef<'_>, place: Place<'_>) -> Result<Predicate> {
    let RawBsonRef::Document(document) = value else {
        return Err(Error::bad_value("$elemMatch needs an Object"));
    };
    let place = Place {
        in_element: true,
        ..place.deeper()?
    };
    let is_on_element =
        is_operator_document(document, RequiredOfDbRef::Any)? && !begins_with_document_operator(document);
    if !is_on_element {
        return Ok(Predicate::ElementFields(Box::new(conditions(document, place)?)));
    }
    let mut nodes = Vec::new();
    operators(&Path::parse("")?, document, place, &mut nodes)?;
    Ok(Predicate::ElementItself(nodes))
}

fn all(path: &Path, value: RawBsonRef<'_>, place: Place<'_>) -> Result<Node> {
    let mut nodes = Vec::new();
    let mut has_element_match = None;
    for item in array("$all", value)? {
        let item = item.map_err(Error::malformed)?;
        let first = match item {
            RawBsonRef::Document(document) => document.iter().next().transpose().map_err(Error::malformed)?,
            _ => None,
        };
        let condition = first.filter(|(name, _)| name.as_str() == "$elemMatch");
        if *has_element_match.get_or_insert(condition.is_some()) && condition.is_none() {
            return Err(Error::bad_value("$all/$elemMatch has to be consistent"));
        }
        nodes.push(match (item, condition, first) {
            (_, Some((_, condition)), _) if has_element_match == Some(true) => {
                field(path, element_match(condition, place)?)
            }
            (RawBsonRef::RegularExpression(regex), ..) => field(path, regex_predicate(regex)?),
            (_, _, Some((name, _))) if is_path_operator(name.as_str()) => {
                return Err(Error::bad_value("no $ expressions in $all"));
            }
            (item, ..) => field(path, comparison(path, Operator::Equal, item)?),
        });
    }
    Ok(if nodes.is_empty() {
        Node::Constant(false)
    } else {
        all_of(nodes)
    })
}

fn negation(path: &Path, value: RawBsonRef<'_>, place: Place<'_>) -> Result<Node> {
    match value {
        RawBsonRef::RegularExpression(regex) => Ok(not(field(path, regex_predicate(regex)?))),
        RawBsonRef::Document(document) if document.is_empty() => Err(Error::bad_value("$not cannot be empty")),
        RawBsonRef::Document(document) => {
            let mut nodes = Vec::new();
            operators(path, document, place.deeper()?, &mut nodes)?;
            Ok(not(all_of(nodes)))
        }
        _ => Err(Error::bad_value("$not needs a regex or a document")),
    }
}

fn has_near(operators: &RawDocument) -> bool {
    operators.iter().flatten().any(|(name, _)| geo::is_near(name.as_str()))
}
