//! Where the documents of a sharded collection are: the effective partition keys of the values of its shard key.
//!
//! ```text
//!   hash(16) ‖ first 16 bytes of SHA-256(the value's key)
//! ```
//!
//! Values that are equal have the same place, whatever their numeric types. The hash of null, booleans, strings and numbers is that of the same partition
//! key in a container of items, so that clients of the NoSQL API find the range of a document; values that JSON does not have are hashed by their key.
//! The tag that follows cannot be made to collide, as in [`super::logical`].

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_model::epk::Epk;
use bolide_model::partition_key::{Component, PartitionKey, PartitionKeyDefinition};
use bolide_mql::bson::raw::{CStr, CString};
use bolide_mql::bson::{RawBson, RawBsonRef, RawDocument};
use bolide_mql::path::field::FieldPath;
use bolide_mql::value::key;
use bolide_mql::value::number::Number;
use bolide_mql::{Code, Error};
use sha2::{Digest as _, Sha256};

/// Length of the tag, in bytes: that of a logical partition with one component.
const TAG_BYTES: usize = 16;
/// Prefix of every value that is digested.
const DOMAIN: &[u8] = b"bolide shard key\n";

/// The shard key of a collection: the path whose values place its documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardKey {
    path: FieldPath,
    /// The path as the name of a field.
    name: CString,
    /// As the definition of the container has it; every name is a property.
    definition: PartitionKeyDefinition,
}

impl ShardKey {
    /// Reads a path, with dots between names.
    ///
    /// # Errors
    /// `BadValue` for one that containers cannot have; those of paths.
    pub fn parse(text: &str) -> Result<ShardKey, Error> {
        let path = FieldPath::parse(text)?;
        let names: Vec<String> = path.names().iter().map(|name| format!("/{}", name.as_str())).collect();
        let json = serde_json::json!({"paths": [names.concat()], "kind": "Hash", "version": 2});
        let refused = |why: &bolide_model::Error| {
            Error::new(Code::BAD_VALUE, format!("The shard key '{text}' is invalid: {why}"))
        };
        let definition = PartitionKeyDefinition::from_json(&json).map_err(|error| refused(&error))?;
        definition.check_new().map_err(|error| refused(&error))?;
        let name = CString::try_from(path.text()).map_err(|_| Error::bad_value("a shard key has a null byte"))?;
        Ok(ShardKey { path, name, definition })
    }

    /// Returns the path, with dots between names.
    pub fn path(&self) -> String {
        self.path.text()
    }

    /// Returns the path as the name of a field.
    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// Returns the partition key that clients of the NoSQL API see.
    pub(crate) fn definition(&self) -> &PartitionKeyDefinition {
        &self.definition
    }

    /// Returns the value of a document's shard key.
    ///
    /// # Errors
    /// `ShardKeyNotFound` if the document has none; `BadValue` for an array, or one on the way to it.
    pub fn value_in<'d>(&self, document: &'d RawDocument) -> Result<RawBsonRef<'d>, Error> {
        let mut value = RawBsonRef::Document(document);
        for name in self.path.names() {
            let RawBsonRef::Document(within) = value else {
                return Err(self.missing());
            };
            value = within.get(name.as_str())?.ok_or_else(|| self.missing())?;
            if matches!(value, RawBsonRef::Array(_)) {
                let text = format!(
                    "Shard key cannot contain array values or array descendants: {}",
                    self.path()
                );
                return Err(Error::new(Code::BAD_VALUE, text));
            }
        }
        Ok(value)
    }

    /// Returns the place of a document.
    ///
    /// # Errors
    /// As [`ShardKey::value_in`].
    pub fn place_in(&self, document: &RawDocument) -> Result<Epk, Error> {
        self.value_in(document).map(|value| self.place_of(value))
    }

    /// Returns the place of the documents with a value.
    pub fn place_of(&self, value: RawBsonRef<'_>) -> Epk {
        // A filter for null finds undefined, too.
        let value = match value {
            RawBsonRef::Undefined => RawBsonRef::Null,
            value => value,
        };
        let encoded = key::of(value, None);
        let component = component_of(value).unwrap_or_else(|| Component::String(STANDARD.encode(&encoded)));
        let mut bytes = Epk::of(&self.definition, &PartitionKey(vec![component]))
            .as_bytes()
            .to_vec();
        let digest = Sha256::new().chain_update(DOMAIN).chain_update(&encoded).finalize();
        bytes.extend_from_slice(&digest[..TAG_BYTES]);
        Epk::from_bytes(bytes)
    }

    /// Returns the place of the documents with a partition key of the NoSQL API. No document lacks the shard key.
    pub(crate) fn place_of_key(&self, key: &PartitionKey) -> Epk {
        let value = match key.0.first() {
            Some(Component::Null) => RawBson::Null,
            Some(Component::Bool(value)) => RawBson::Boolean(*value),
            Some(Component::Number(value)) => RawBson::Double(*value),
            Some(Component::String(value)) => RawBson::String(value.clone()),
            Some(Component::Undefined) | None => return super::logical::of(&self.definition, key),
        };
        self.place_of(value.as_raw_bson_ref())
    }

    fn missing(&self) -> Error {
        let text = format!("The document does not contain the shard key '{}'.", self.path());
        Error::new(Code::SHARD_KEY_NOT_FOUND, text)
    }
}

/// Returns the component that JSON has for a value; `None` if it has none that is equal.
fn component_of(value: RawBsonRef<'_>) -> Option<Component> {
    match value {
        RawBsonRef::Null => Some(Component::Null),
        RawBsonRef::Boolean(value) => Some(Component::Bool(value)),
        RawBsonRef::String(text) | RawBsonRef::Symbol(text) => Some(Component::String(text.to_owned())),
        value => {
            let number = Number::of(value).filter(|number| number.is_finite())?;
            let double = number.to_f64();
            let is_same = number.compare(Number::Double(double)).is_eq();
            // Both zeros are equal.
            let double = if double == 0.0 { 0.0 } else { double };
            is_same.then_some(Component::Number(double))
        }
    }
}

#[cfg(test)]
mod tests;
