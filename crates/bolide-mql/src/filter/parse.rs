//! The parser of filters: conditions on whole documents.

mod field;
pub(super) mod operands;

use std::sync::Arc;

use bson::raw::RawRegexRef;
use bson::{RawArray, RawBsonRef, RawDocument, rawdoc};

use super::comparison::{Comparison, Operator};
use super::node::{Field, Node};
use super::pattern::Pattern;
use super::predicate::Predicate;
use super::schema;
use super::text;
use crate::error::{Code, Error, Result};
use crate::expression::{Expression, ParseScope};
use crate::path::Path;
use crate::text_search::TextQuery;
use crate::value::number::Number;

pub use field::is_path_operator;

/// Conditions may be nested this deeply, as in MongoDB.
pub const DEPTH_LIMIT: usize = 100;

/// Where the parser is.
#[derive(Debug, Clone, Copy)]
struct Place<'p> {
    /// The variables that `$expr` may use.
    scope: &'p ParseScope,
    depth: usize,
    /// Inside `$elemMatch`, where conditions are on elements and not on the document.
    in_element: bool,
}

impl Place<'_> {
    fn deeper(self) -> Result<Self> {
        if self.depth >= DEPTH_LIMIT {
            return Err(Error::bad_value("exceeded maximum query tree depth"));
        }
        Ok(Place {
            depth: self.depth + 1,
            ..self
        })
    }
}

/// Parses a filter.
pub(super) fn filter(document: &RawDocument, scope: &ParseScope) -> Result<Node> {
    let place = Place {
        scope,
        depth: 0,
        in_element: false,
    };
    conditions(document, place)
}

/// Parses the conditions of a document, all of which must hold.
fn conditions(document: &RawDocument, place: Place<'_>) -> Result<Node> {
    let mut nodes = Vec::new();
    for element in document {
        let (name, value) = element.map_err(Error::malformed)?;
        let name = name.as_str();
        match name.strip_prefix('$') {
            Some(operator) => nodes.extend(document_operator(operator, value, place)?),
            None => field_condition(name, value, place, &mut nodes)?,
        }
    }
    Ok(all_of(nodes))
}

/// Returns a node that holds if all of the nodes do.
fn all_of(mut nodes: Vec<Node>) -> Node {
    match nodes.pop() {
        Some(only) if nodes.is_empty() => only,
        last => {
            nodes.extend(last);
            Node::And(nodes)
        }
    }
}

/// Parses the condition on a field: operators, a regular expression, or a value to equal.
fn field_condition(name: &str, value: RawBsonRef<'_>, place: Place<'_>, nodes: &mut Vec<Node>) -> Result<()> {
    let path = Path::parse(name)?;
    match value {
        RawBsonRef::Document(operators) if is_operator_document(operators, RequiredOfDbRef::Both)? => {
            field::operators(&path, operators, place, nodes)
        }
        value => {
            nodes.push(on_path(path, value_predicate(value)?));
            Ok(())
        }
    }
}

/// Parses a value that is no operators: it is to be equalled, or a regular expression to be found.
fn value_predicate(value: RawBsonRef<'_>) -> Result<Predicate> {
    match value {
        RawBsonRef::RegularExpression(regex) => regex_predicate(regex),
        RawBsonRef::Undefined => Err(Error::bad_value("cannot compare to undefined")),
        value => Ok(Predicate::Comparison(Comparison::new(Operator::Equal, value))),
    }
}

/// Compiles a regular expression of BSON.
fn compile(regex: RawRegexRef<'_>) -> Result<Pattern> {
    Pattern::compile(regex.pattern.as_str(), regex.options.as_str())
}

fn regex_predicate(regex: RawRegexRef<'_>) -> Result<Predicate> {
    Ok(Predicate::Regex(Box::new(compile(regex)?)))
}

fn on_path(path: Path, predicate: Predicate) -> Node {
    Node::Field(Box::new(Field { path, predicate }))
}

/// Names of operators on whole documents, without `$`. `$ref`, `$id` and `$db` are the fields of a DBRef.
const DOCUMENT_OPERATORS: [&str; 14] = [
    "alwaysFalse",
    "alwaysTrue",
    "and",
    "comment",
    "db",
    "expr",
    "id",
    "jsonSchema",
    "nor",
    "or",
    "ref",
    "sampleRate",
    "text",
    "where",
];

/// Parses an operator on the whole document; `None` for one without effect.
fn document_operator(operator: &str, value: RawBsonRef<'_>, place: Place<'_>) -> Result<Option<Node>> {
    match operator {
        "and" => branches("$and", value, place).map(|nodes| Some(Node::And(nodes))),
        "or" => branches("$or", value, place).map(|nodes| Some(Node::Or(nodes))),
        "nor" => branches("$nor", value, place).map(|nodes| Some(Node::Nor(nodes))),
        "comment" => Ok(None),
        operator => document_predicate(operator, value, place).map(Some),
    }
}

/// Parses an operator on the whole document that has no conditions inside.
fn document_predicate(operator: &str, value: RawBsonRef<'_>, place: Place<'_>) -> Result<Node> {
    match operator {
        "alwaysTrue" | "alwaysFalse" => constant(operator, value),
        "ref" | "id" | "db" => {
            let predicate = Predicate::Comparison(Comparison::new(Operator::Equal, value));
            Ok(on_path(Path::parse(&format!("${operator}"))?, predicate))
        }
        "expr" | "text" | "sampleRate" if place.in_element => Err(Error::bad_value(format!(
            "${operator} can only be applied to the top-level document"
        ))),
        "where" => Err(Error::bad_value(
            "$where is not supported: this server does not run JavaScript in queries",
        )),
        "jsonSchema" => match value {
            RawBsonRef::Document(document) => Ok(Node::Schema(Box::new(schema::parse(document)?))),
            _ => Err(Error::new(Code::TYPE_MISMATCH, "$jsonSchema must be an object")),
        },
        "expr" => {
            let expression = Expression::parse(value, &mut place.scope.clone())?;
            Ok(Node::Expression(Arc::new(expression)))
        }
        "sampleRate" => sample_rate(value),
        "text" => {
            let query = TextQuery::parse(value)?;
            match place.scope.context().text {
                Some(_) => Ok(Node::Text(Arc::new(query))),
                None => Err(text::no_index()),
            }
        }
        _ => Err(Error::bad_value(format!(
            "unknown top level operator: ${operator}. If you have a field name that starts with a '$' symbol, consider using $getField or $setField."
        ))),
    }
}

/// Parses the array of `$and`, `$or` or `$nor`.
fn branches(operator: &str, value: RawBsonRef<'_>, place: Place<'_>) -> Result<Vec<Node>> {
    let RawBsonRef::Array(array) = value else {
        return Err(Error::bad_value(format!("{operator} must be an array")));
    };
    if array.is_empty() {
        return Err(Error::bad_value("$and/$or/$nor must be a nonempty array"));
    }
    let place = place.deeper()?;
    let mut nodes = Vec::new();
    for branch in array {
        match branch.map_err(Error::malformed)? {
            RawBsonRef::Document(document) => nodes.push(conditions(document, place)?),
            _ => return Err(Error::bad_value("$or/$and/$nor entries need to be full objects")),
        }
    }
    Ok(nodes)
}

fn constant(operator: &str, value: RawBsonRef<'_>) -> Result<Node> {
    let named = operands::Named {
        name: &format!("${operator}"),
        value,
    };
    if named.whole()? == 1 {
        return Ok(Node::Constant(operator == "alwaysTrue"));
    }
    let text = format!("${operator} must be an integer value of 1");
    Err(Error::new(Code::FAILED_TO_PARSE, text))
}

/// Parses `$sampleRate`: a document matches with this probability.
fn sample_rate(value: RawBsonRef<'_>) -> Result<Node> {
    let Some(number) = Number::of(value) else {
        return Err(Error::bad_value("argument to $sampleRate must be numeric"));
    };
    let rate = number.to_f64();
    if !(0.0..=1.0).contains(&rate) {
        return Err(Error::bad_value("numeric argument to $sampleRate must be in [0, 1]"));
    }
    let condition = rawdoc! {"$lt": [{"$rand": {}}, rate]};
    let expression = Expression::parse(RawBsonRef::Document(&condition), &mut ParseScope::default())?;
    Ok(Node::Expression(Arc::new(expression)))
}

/// Which fields make a document with `$` a DBRef, and so a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequiredOfDbRef {
    /// `$ref` and `$id`.
    Both,
    /// One of `$ref`, `$id` and `$db`.
    Any,
}

/// Tells whether a document has operators: its first name begins with `$`, and it is no DBRef.
fn is_operator_document(document: &RawDocument, required: RequiredOfDbRef) -> Result<bool> {
    let mut is_operator = false;
    let [mut has_ref, mut has_id, mut has_db] = [false; 3];
    for (index, element) in document.iter_elements().enumerate() {
        let element = element.map_err(Error::malformed)?;
        let name = element.key().as_str();
        if index == 0 {
            is_operator = name.starts_with('$');
        }
        if !is_operator {
            return Ok(false);
        }
        has_ref |= name == "$ref";
        has_id |= name == "$id";
        has_db |= name == "$db";
    }
    let is_db_ref = match required {
        RequiredOfDbRef::Both => has_ref && has_id,
        RequiredOfDbRef::Any => has_ref || has_id || has_db,
    };
    Ok(is_operator && !is_db_ref)
}

/// Tells whether the first field of a document is an operator on whole documents.
fn begins_with_document_operator(document: &RawDocument) -> bool {
    let first = document.iter_elements().next().and_then(Result::ok);
    let operator = first.and_then(|element| element.key().as_str().strip_prefix('$'));
    operator.is_some_and(|operator| DOCUMENT_OPERATORS.contains(&operator))
}

/// Returns the elements of an operand that must be an array.
fn array<'v>(operator: &str, value: RawBsonRef<'v>) -> Result<&'v RawArray> {
    match value {
        RawBsonRef::Array(array) => Ok(array),
        _ => Err(Error::bad_value(format!("{operator} needs an array"))),
    }
}

/// Tells whether a value is a number of any type.
fn is_number(value: RawBsonRef<'_>) -> bool {
    Number::of(value).is_some()
}
