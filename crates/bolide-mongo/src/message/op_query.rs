//! OP_QUERY: the first hello of many drivers.

use bson::RawDocument;
use bson::raw::RawBsonRef;

use super::error::MessageError;
use super::header::Header;
use super::reader::Reader;

/// The suffix of the collection name that stands for a command.
const COMMAND: &str = ".$cmd";

/// A command in the old form. Its documents are valid.
#[derive(Debug, Clone, PartialEq)]
pub struct OpQuery<'a> {
    /// The database.
    pub database: &'a str,
    /// The command.
    pub command: &'a RawDocument,
}

impl<'a> OpQuery<'a> {
    /// Reads a whole message, header included.
    ///
    /// # Errors
    /// A malformed message, or one that is not a command.
    pub fn parse(bytes: &'a [u8]) -> Result<OpQuery<'a>, MessageError> {
        let mut reader = Reader::new(bytes, Header::BYTES);
        reader.i32()?;
        let collection = reader.cstring()?;
        let database = collection.strip_suffix(COMMAND).ok_or_else(|| {
            MessageError::protocol("OP_QUERY is not supported. The client driver may require an upgrade.")
        })?;
        reader.i32()?;
        reader.i32()?;
        let query = reader.document()?;
        if !reader.is_at_end() {
            // A projection, which means nothing for a command.
            reader.document()?;
        }
        if !reader.is_at_end() {
            return Err(MessageError::protocol("the message is longer than its content"));
        }
        let query = RawDocument::from_bytes(&bytes[query]).map_err(|error| MessageError::bson(error.to_string()))?;
        Ok(OpQuery {
            database,
            command: unwrapped(query),
        })
    }
}

/// The command in `{$query: {…}, $readPreference: …}`.
fn unwrapped(query: &RawDocument) -> &RawDocument {
    ["$query", "query"]
        .into_iter()
        .find_map(|name| match first(query) {
            Some((key, RawBsonRef::Document(command))) if key == name => Some(command),
            _ => None,
        })
        .unwrap_or(query)
}

/// The first field of a document.
fn first(document: &RawDocument) -> Option<(&str, RawBsonRef<'_>)> {
    let element = document.iter_elements().next()?.ok()?;
    Some((element.key().as_str(), element.value().ok()?))
}
