//! JSON request bodies other than items.

use bolide_model::document::parse_json_body;
use bolide_model::{Error, Result};
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::{Map, Value};

use super::headers;

/// A query from a client.
#[derive(Debug)]
pub(crate) struct Query {
    pub text: String,
    pub parameters: Vec<(String, Value)>,
    /// The position from which rows begin, for queries over items.
    pub resume_filter: Option<Value>,
}

impl Query {
    /// The query, for a resource that does not support resume filters.
    ///
    /// # Errors
    /// `BadRequest` if there is one.
    pub fn without_resume_filter(self) -> Result<Query> {
        match self.resume_filter {
            None => Ok(self),
            Some(_) => Err(Error::bad_request("`resumeFilter` is for queries over items only")),
        }
    }
}

/// Reads a body as a JSON object.
///
/// # Errors
/// `BadRequest` for invalid UTF-8, malformed JSON, nesting that is too deep, and any other JSON value than an object.
pub(crate) fn object(body: &Bytes) -> Result<Map<String, Value>> {
    match parse_json_body(body)? {
        Value::Object(members) => Ok(members),
        _ => Err(Error::bad_request("the body must be a JSON object")),
    }
}

/// Reads a query with its parameters (cosmos-rest §6.1). Other members are ignored: clients send some that do not change the result, such as
/// `clientQLCompatibilityLevel`.
///
/// # Errors
/// As [`object`], and if query or parameters have the wrong types.
pub(crate) fn query(body: &Bytes) -> Result<Query> {
    let mut members = object(body)?;
    let Some(Value::String(text)) = members.remove("query") else {
        return Err(Error::bad_request(
            "the body of a query must have a string member `query`",
        ));
    };
    let parameters = match members.remove("parameters") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(parameters)) => parameters.into_iter().map(parameter).collect::<Result<_>>()?,
        Some(_) => return Err(Error::bad_request("`parameters` of a query must be an array")),
    };
    Ok(Query {
        text,
        parameters,
        resume_filter: members.remove("resumeFilter").filter(|filter| !filter.is_null()),
    })
}

/// The same of a request, whose body may be the text alone: `application/sql`, as old clients in direct mode send it (rntbd.md §4.2).
///
/// # Errors
/// As [`query`], and for text that is no UTF-8.
pub(crate) fn sent_query(headers: &HeaderMap, body: &Bytes) -> Result<Query> {
    let content_type = headers::text(headers, &CONTENT_TYPE)?.unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    if !media_type.eq_ignore_ascii_case("application/sql") {
        return query(body);
    }
    let text = str::from_utf8(body).map_err(|_| Error::bad_request("the query is not UTF-8"))?;
    Ok(Query {
        text: text.to_owned(),
        parameters: Vec::new(),
        resume_filter: None,
    })
}

fn parameter(value: Value) -> Result<(String, Value)> {
    let malformed = || {
        Error::bad_request("each of `parameters` must be an object with a string member `name` and a member `value`")
    };
    let Value::Object(mut members) = value else {
        return Err(malformed());
    };
    let Some(Value::String(name)) = members.remove("name") else {
        return Err(malformed());
    };
    Ok((name, members.remove("value").unwrap_or(Value::Null)))
}

#[cfg(test)]
mod tests;
