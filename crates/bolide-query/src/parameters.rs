//! Query parameters (cosmos-sql §19).

use sha2::{Digest, Sha256};

use crate::memory::ALLOCATION_BYTES;
use crate::value::{Value, append_same_key, parse_json};

/// Named values; names include the `@` and are case-sensitive.
#[derive(Debug, Clone, Default)]
pub struct Parameters {
    list: Vec<(String, Value<'static>)>,
}

impl Parameters {
    /// No parameters.
    pub fn none() -> Parameters {
        Parameters::default()
    }

    /// Adds a value; it replaces an earlier one of the same name.
    pub fn with(mut self, name: impl Into<String>, value: &serde_json::Value) -> Parameters {
        self.list.push((name.into(), value.into()));
        self
    }

    /// Adds a value given as JSON text; `None` if it is not JSON.
    pub fn with_text(mut self, name: impl Into<String>, json: &str) -> Option<Parameters> {
        self.list.push((name.into(), parse_json(json)?));
        Some(self)
    }

    /// Reads the list of a query body, `[{"name":"@p","value":…}]`; `None` if it has another shape. A missing value is undefined.
    pub fn from_json(list: &serde_json::Value) -> Option<Parameters> {
        if list.is_null() {
            return Some(Parameters::default());
        }
        let mut out = Parameters::default();
        for entry in list.as_array()? {
            let name = entry.get("name")?.as_str()?;
            out.list.push((
                name.to_owned(),
                entry.get("value").map_or(Value::Undefined, Value::from),
            ));
        }
        Some(out)
    }

    /// Their memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let entries = self.list.iter();
        let bytes = entries.map(|(name, value)| name.len() + ALLOCATION_BYTES + value.written_out_bytes(usize::MAX));
        bytes.sum()
    }

    /// Adds names and values to a hash.
    pub(crate) fn add_to(&self, hasher: &mut Sha256) {
        let mut bytes = Vec::new();
        for (name, value) in &self.list {
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(0);
            append_same_key(value, &mut bytes);
            hasher.update(&bytes);
            bytes.clear();
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value<'static>> {
        self.list
            .iter()
            .rev()
            .find(|(own, _)| own == name)
            .map(|(_, value)| value)
    }
}
