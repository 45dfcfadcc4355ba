//! `$fill`: window functions for methods, `$ifNull` for values.

use std::sync::Arc;

use bson::raw::{CString, RawArrayBuf, RawBson, RawBsonRef, RawDocumentBuf, cstr};

use super::shape;
use super::window::{Function, Window};
use crate::aggregation::options::Options;
use crate::aggregation::parser::{Parsed, Parser};
use crate::aggregation::stage::Stage;
use crate::error::{Code, Error, Result};
use crate::expression::Expression;
use crate::path::field::FieldPath;
use crate::sort::Sort;

const OPTIONS: &[&str] = &["partitionBy", "partitionByFields", "sortBy", "output"];

fn failed(text: impl Into<String>) -> Error {
    Error::new(Code::FAILED_TO_PARSE, text)
}

/// Parses the stage.
pub(in crate::aggregation) fn parse(_: &'static str, spec: RawBsonRef<'_>, parser: &mut Parser) -> Result<Parsed> {
    let wrong = |found: &'static str| {
        failed(format!(
            "The $fill stage specification must be an object, found {found}"
        ))
    };
    let options = Options::parse("$fill", spec, OPTIONS, wrong)?;
    let sort_by = options
        .document("sortBy")?
        .map(Sort::parse)
        .transpose()?
        .filter(|sort| !sort.is_empty());
    let output = options.required("output")?;
    let RawBsonRef::Document(output) = output else {
        return Err(options.wrong_type("output", output, "object"));
    };
    if output.is_empty() {
        return Err(Error::new(6050203, "The output field must contain at least one field"));
    }
    let mut functions = Vec::new();
    let mut values = RawDocumentBuf::new();
    for field in output {
        let (name, filling) = field?;
        let path = FieldPath::parse(name.as_str())?;
        let RawBsonRef::Document(_) = filling else {
            return Err(Error::new(
                6050200,
                "Each fill output specification must be an object with exactly one field",
            ));
        };
        let filling = Options::parse("$fill.output", filling, &["value", "method"], |_| failed(""))?;
        match (filling.get("value")?, filling.string("method")?) {
            (Some(value), None) => values.append(name, if_null(name.as_str(), value)),
            (None, Some(method)) => {
                functions.push((path, function(method, name.as_str(), sort_by.as_ref(), parser)?));
            }
            _ => {
                let text = "Each fill output specification must be an object with exactly one field";
                return Err(Error::new(6050200, text));
            }
        }
    }
    let mut stages: Vec<Arc<dyn Stage>> = Vec::new();
    if !functions.is_empty() {
        stages.push(Arc::new(Window::new(
            parse_partition_by(&options, parser)?,
            sort_by,
            functions,
        )));
    }
    if !values.is_empty() {
        match shape::parse("$addFields", RawBsonRef::Document(&values), parser)? {
            Parsed::Stages(more) => stages.extend(more),
            _ => return Err(Error::new(Code::INTERNAL_ERROR, "$fill made no stage")),
        }
    }
    Ok(Parsed::Stages(stages))
}

/// Returns `{$ifNull: ["$field", value]}`.
fn if_null(field: &str, value: RawBsonRef<'_>) -> RawBson {
    let mut arguments = RawArrayBuf::new();
    arguments.push(format!("${field}").as_str());
    arguments.push(value);
    let mut operator = RawDocumentBuf::new();
    operator.append(cstr!("$ifNull"), RawBson::Array(arguments));
    RawBson::Document(operator)
}

fn function(method: &str, field: &str, sort: Option<&Sort>, parser: &mut Parser) -> Result<Function> {
    let path = format!("${field}");
    let input = Expression::parse(RawBsonRef::String(&path), &mut parser.scope)?;
    match (method, sort.map(Sort::keys)) {
        ("linear", Some([_])) => Ok(Function::LinearFill(input)),
        ("linear", _) => {
            let text = "$linearFill must be specified with a top level sortBy expression with exactly one element";
            Err(Error::new(605001, text))
        }
        // Without a sort order, in the order in which the documents come.
        ("locf", _) => Ok(Function::LastObserved(input)),
        _ => Err(Error::new(6050202, "Method must be either locf or linear")),
    }
}

fn parse_partition_by(options: &Options<'_>, parser: &mut Parser) -> Result<Option<Expression>> {
    let by_fields = options.get("partitionByFields")?;
    match (options.get("partitionBy")?, by_fields) {
        (Some(_), Some(_)) => {
            let text = "Maximum one of 'partitionBy' and 'partitionByFields can be specified in '$fill'";
            Err(Error::new(6050204, text))
        }
        (Some(RawBsonRef::String(path)), None) if !path.starts_with('$') => {
            Err(failed("partitionBy expression must be a path with a '$' or an object"))
        }
        (Some(expression), None) => Expression::parse(expression, &mut parser.scope).map(Some),
        (None, None) => Ok(None),
        (None, Some(RawBsonRef::Array(fields))) => {
            let mut object = RawDocumentBuf::new();
            for (index, field) in fields.into_iter().enumerate() {
                let field = field?;
                let RawBsonRef::String(path) = field else {
                    return Err(options.wrong_type("partitionByFields", field, "string"));
                };
                FieldPath::parse(path)?;
                object.append(CString::try_from(index.to_string())?, format!("${path}").as_str());
            }
            Expression::parse(RawBsonRef::Document(&object), &mut parser.scope).map(Some)
        }
        (None, Some(other)) => Err(options.wrong_type("partitionByFields", other, "array")),
    }
}
