//! Documents: how a JSON document is read, changed and written.
//!
//! [`Document::parse`] checks and normalizes, once, everything that later readers rely on:
//!
//! ```text
//!   text        UTF-8 JSON, an object at the root, at most 128 levels of objects and arrays, at most 2 MiB
//!   names       each once in an object: the last value wins, in the place of the first
//!   numbers     whole ones below 2^53 have no fraction or exponent, and -0 is 0; other whole ones keep their digits up to
//!               64 bits; everything else is a finite double
//!   root        without `_rid`, `_self`, `_etag`, `_attachments`, `_ts`, `_lsn`, which the server adds to responses
//! ```
//!
//! Members keep the order in which the client wrote them.

mod ingest;
mod patch;

use serde_json::{Map, Value};

pub(crate) use ingest::parse_json;
pub use ingest::{number, parse_json_body};
pub use patch::{Operation, Patch, Pointer};

use crate::error::{Error, Reason, Result, excerpt};
use crate::limits::{ITEM_BYTES, NESTING};
use crate::names::validate_item_id;
use crate::partition_key::{Component, PartitionKey, PartitionKeyDefinition, PropertyPath};
use crate::ttl::{Own, invalid_ttl};

/// Members of an item's root that only the server writes; values from clients are dropped (cosmos-rest §3.1, TTL-209).
pub const SYSTEM_PROPERTIES: [&str; 6] = ["_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"];

/// A user's document, without system properties.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    members: Map<String, Value>,
}

impl Document {
    /// Reads a request body or stored text.
    ///
    /// # Errors
    /// - `TooLarge`: more than [`ITEM_BYTES`] bytes.
    /// - `BadRequest`: not UTF-8, not JSON, a number beyond doubles, too deep, or not an object; the message says where.
    pub fn parse(body: &[u8]) -> Result<Document> {
        check_size(body.len())?;
        ingest::parse_body(body, NESTING).and_then(Document::from_members_of)
    }

    /// Reads an item as responses and exports show it: its system properties do not count towards its size.
    ///
    /// # Errors
    /// As [`Document::parse`].
    pub fn parse_shown(text: &[u8]) -> Result<Document> {
        let document = ingest::parse_body(text, NESTING).and_then(Document::from_members_of)?;
        // Normalized numbers can be several times as long.
        if text.len() > ITEM_BYTES / 8 {
            document.to_stored_text()?;
        }
        Ok(document)
    }

    /// Takes a part of a larger body, such as a batch's, that was read by [`parse_json_body`].
    ///
    /// # Errors
    /// `BadRequest`: too deep, or not an object.
    pub fn from_value(value: Value) -> Result<Document> {
        ingest::check_nesting(&value, NESTING)?;
        Document::from_members_of(value)
    }

    fn from_members_of(value: Value) -> Result<Document> {
        match value {
            Value::Object(mut members) => {
                drop_system_properties(&mut members);
                Ok(Document { members })
            }
            other => Err(Error::bad_request(format!(
                "An item must be a JSON object, and this is {}.",
                ingest::kind(&other)
            ))),
        }
    }

    /// The members of the root.
    pub fn value(&self) -> &Map<String, Value> {
        &self.members
    }

    /// The members of the root, by value.
    pub fn into_value(self) -> Map<String, Value> {
        self.members
    }

    /// The id of the item.
    ///
    /// # Errors
    /// `BadRequest`: missing, not a string, empty, too long, `.` or `..`. The server never generates ids.
    pub fn id(&self) -> Result<&str> {
        match self.members.get("id") {
            None => Err(Error::bad_request(
                "The input content is invalid because the required properties - 'id; ' - are missing.",
            )),
            Some(Value::String(id)) => validate_item_id(id).map(|()| id.as_str()),
            Some(other) => Err(Error::bad_request(format!(
                "The input content is invalid: 'id' must be a string, and this is {}.",
                ingest::kind(other)
            ))),
        }
    }

    /// The item's own ttl, from the root property spelled exactly `ttl` (TTL-217, TTL-219).
    ///
    /// It is checked whether TTL is on or off (TTL-216).
    ///
    /// # Errors
    /// `BadRequest`: the property exists with a value other than −1 and 1…2147483647, null included (TTL-215).
    pub fn own_ttl(&self) -> Result<Own> {
        let Some(value) = self.members.get("ttl") else {
            return Ok(Own::Absent);
        };
        match value.as_f64().and_then(Own::from_number) {
            Some(own) => Ok(own),
            None => Err(invalid_ttl("ttl", &excerpt(&value.to_string()))),
        }
    }

    /// The partition key of the document under `definition`.
    pub fn partition_key(&self, definition: &PartitionKeyDefinition) -> PartitionKey {
        PartitionKey::extract_from(definition, &self.members)
    }

    /// The values that a unique key over `paths` compares.
    ///
    /// A missing value counts as null, so two items without the property are in conflict; so does an object or array. Numbers compare as doubles.
    /// Source: cosmos-rest §§0.5, 4.2.
    pub fn unique_key_values(&self, paths: &[PropertyPath]) -> Vec<Component> {
        let value = |path: &PropertyPath| match Component::of(path.lookup_in(&self.members)) {
            Component::Undefined => Component::Null,
            component => component,
        };
        paths.iter().map(value).collect()
    }

    /// The document after `patch`; this one does not change.
    ///
    /// # Errors
    /// `BadRequest`: an operation does not apply, or the result is too deep. The caller must check the patch's condition.
    pub fn patched(&self, patch: &Patch, definition: &PartitionKeyDefinition) -> Result<Document> {
        let mut members = self.members.clone();
        patch.apply(&mut members, definition)?;
        Document::from_value(Value::Object(members))
    }

    /// Compact JSON. Reading it again gives an equal document.
    pub fn to_text(&self) -> String {
        serde_json::to_string(&self.members).expect("names are strings and numbers finite")
    }

    /// [`Document::to_text`], if it is within the size limit.
    ///
    /// # Errors
    /// `TooLarge`: more than [`ITEM_BYTES`] bytes; a patch, or normalized numbers, can make a body within the limit this large.
    pub fn to_stored_text(&self) -> Result<String> {
        let text = self.to_text();
        check_size(text.len())?;
        Ok(text)
    }
}

fn check_size(bytes: usize) -> Result<()> {
    if bytes <= ITEM_BYTES {
        return Ok(());
    }
    Err(Reason::ItemTooLarge {
        bytes,
        limit: ITEM_BYTES,
    }
    .into())
}

fn drop_system_properties(members: &mut Map<String, Value>) {
    if SYSTEM_PROPERTIES.iter().any(|name| members.contains_key(*name)) {
        members.retain(|name, _| !SYSTEM_PROPERTIES.contains(&name.as_str()));
    }
}

#[cfg(test)]
mod tests;
