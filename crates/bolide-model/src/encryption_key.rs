//! Client encryption keys: keys for encrypting properties, wrapped by another key that the server never sees.
//!
//! The server stores and returns them; only clients can use them. Source: the .NET SDK's `ClientEncryptionKeyProperties`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::names::validate_resource_id;

/// Members of `keyWrapMetadata`, all of them strings.
const METADATA: [&str; 4] = ["type", "name", "value", "algorithm"];

/// The definition of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncryptionKeyProperties {
    /// Its name.
    pub id: String,
    /// The encryption algorithm.
    pub algorithm: String,
    /// The wrapped key, base64.
    pub wrapped_key: String,
    /// How the key was wrapped: members with string values.
    pub wrap_metadata: Map<String, Value>,
}

impl EncryptionKeyProperties {
    /// Reads a definition as clients send it. Unknown members are dropped.
    ///
    /// # Errors
    /// `BadRequest` naming the member that is missing or of the wrong type.
    pub fn from_json(sent: &Value) -> Result<EncryptionKeyProperties> {
        let id = text(sent, "id")?;
        validate_resource_id(&id)?;
        let wrapped_key = text(sent, "wrappedDataEncryptionKey")?;
        if wrapped_key.is_empty() || STANDARD.decode(&wrapped_key).is_err() {
            return Err(invalid("wrappedDataEncryptionKey", "base64 of at least one byte"));
        }
        let metadata = sent.get("keyWrapMetadata").filter(|metadata| metadata.is_object());
        let metadata = metadata.ok_or_else(|| invalid("keyWrapMetadata", "an object"))?;
        let mut wrap_metadata = Map::new();
        for name in METADATA {
            wrap_metadata.insert(name.to_owned(), text(metadata, name)?.into());
        }
        Ok(EncryptionKeyProperties {
            id,
            algorithm: text(sent, "encryptionAlgorithm")?,
            wrapped_key,
            wrap_metadata,
        })
    }

    /// The members that clients sent, as they sent them.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("id".to_owned(), self.id.clone().into());
        members.insert("encryptionAlgorithm".to_owned(), self.algorithm.clone().into());
        members.insert("wrappedDataEncryptionKey".to_owned(), self.wrapped_key.clone().into());
        members.insert("keyWrapMetadata".to_owned(), self.wrap_metadata.clone().into());
        members
    }
}

fn text(from: &Value, name: &str) -> Result<String> {
    let text = from.get(name).and_then(Value::as_str);
    text.map(str::to_owned).ok_or_else(|| invalid(name, "a string"))
}

fn invalid(name: &str, wanted: &str) -> Error {
    Error::bad_request(format!("The client encryption key's '{name}' must be {wanted}."))
}

#[cfg(test)]
mod tests;
