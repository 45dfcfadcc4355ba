//! Partition keys: their definition, and their values.
//!
//! A container's [`PartitionKeyDefinition`] names one path, or up to three for a hierarchy. A [`PartitionKey`] has a value for each; a shorter one of
//! a hierarchy is a prefix, which only queries can use. [`crate::epk`] computes the position of a key.

use std::fmt::Write as _;
use std::hash::{Hash, Hasher};

use serde_json::{Map, Value, json};

use crate::document::{self, SYSTEM_PROPERTIES};
use crate::error::{Error, ErrorKind, Reason, Result, excerpt};
use crate::limits::{PARTITION_KEY_BYTES, PARTITION_KEY_PATHS};
pub use crate::path::PropertyPath;

/// The path used as the partition key of a container that has none.
const SYSTEM_PATH: &str = "/_partitionKey";

/// How partition keys become effective partition keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartitionKind {
    /// One path, hashed.
    Hash,
    /// One to three paths, each hashed.
    MultiHash,
    /// One path, in the order of its values. Only old containers.
    Range,
}

impl PartitionKind {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            PartitionKind::Hash => "Hash",
            PartitionKind::MultiHash => "MultiHash",
            PartitionKind::Range => "Range",
        }
    }

    fn parse(name: &str) -> Option<PartitionKind> {
        [PartitionKind::Hash, PartitionKind::MultiHash, PartitionKind::Range]
            .into_iter()
            .find(|kind| kind.as_str().eq_ignore_ascii_case(name))
    }

    fn most_paths(self) -> usize {
        match self {
            PartitionKind::MultiHash => PARTITION_KEY_PATHS,
            PartitionKind::Hash | PartitionKind::Range => 1,
        }
    }
}

/// The generation of the hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartitionKeyVersion {
    /// 32 bits, computed from the first 100 characters of strings: keys that share them are placed together, but remain different keys.
    V1,
    /// 128 bits.
    V2,
}

impl PartitionKeyVersion {
    /// The number on the wire.
    pub fn number(self) -> u8 {
        match self {
            PartitionKeyVersion::V1 => 1,
            PartitionKeyVersion::V2 => 2,
        }
    }
}

/// The properties that form a container's partition keys, and how they are hashed. Fixed when the container is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionKeyDefinition {
    /// From the top of the hierarchy down.
    pub paths: Vec<PropertyPath>,
    /// How keys are converted to positions.
    pub kind: PartitionKind,
    /// The generation of the hash.
    pub version: PartitionKeyVersion,
    /// Set for containers without a partition key, made before keys were required. Their items have no key, unless newer clients write one at [`SYSTEM_PATH`].
    pub is_system: bool,
    /// Whether responses include the version: a version 1 that was not sent is left out of them too.
    pub shows_version: bool,
}

impl PartitionKeyDefinition {
    /// The definition of a container without a partition key.
    pub fn system() -> PartitionKeyDefinition {
        PartitionKeyDefinition {
            paths: vec![PropertyPath::parse(SYSTEM_PATH).expect("a path")],
            kind: PartitionKind::Hash,
            version: PartitionKeyVersion::V1,
            is_system: true,
            shows_version: false,
        }
    }

    /// Reads the `partitionKey` member of a container; `Value::Null` if it is absent.
    ///
    /// The default kind is Hash; the default version is 1 for Hash, as SDKs expect, and 2 for MultiHash. `systemKey` is used only with its own path;
    /// other members are ignored.
    ///
    /// # Errors
    /// - `PartitionKeyMissing`: null.
    /// - `BadRequest`: anything else that is not a valid definition: wrong types, unknown kinds or versions, too many, duplicate or malformed paths,
    ///   paths into system properties.
    ///
    /// Source: cosmos-rest §4.2.
    pub fn from_json(value: &Value) -> Result<PartitionKeyDefinition> {
        if value.is_null() {
            return Err(Error::new(
                ErrorKind::PartitionKeyMissing,
                "The container has no partition key: 'partitionKey' must name its paths.",
            ));
        }
        let members = value
            .as_object()
            .ok_or_else(|| invalid("'partitionKey' must be an object"))?;
        let kind = read_kind(members.get("kind"))?;
        let version = members.get("version").filter(|version| !version.is_null());
        let is_version_given = version.is_some();
        let version = read_version(version, kind)?;
        let paths = read_paths(members.get("paths"), kind)?;
        let is_system = members.get("systemKey") == Some(&Value::Bool(true))
            && kind == PartitionKind::Hash
            && paths[0].as_str() == SYSTEM_PATH;
        Ok(PartitionKeyDefinition {
            paths,
            kind,
            version,
            is_system,
            shows_version: is_version_given || version != PartitionKeyVersion::V1,
        })
    }

    /// The definition as clients see it: exactly `paths`, `kind` and `version`; no version if it is 1 and was not sent, and `systemKey` if it is true.
    ///
    /// Agrees with: the Python SDK's tests, which compare the whole object (cosmos-rest §15, trap 17), the Rust SDK's, which expect no version if
    /// none was sent, and the .NET SDK's, which expect a 1 that was sent.
    pub fn to_json(&self) -> Value {
        let paths: Vec<&str> = self.paths.iter().map(PropertyPath::as_str).collect();
        let mut definition = json!({"paths": paths, "kind": self.kind.as_str()});
        if self.shows_version {
            definition["version"] = self.version.number().into();
        }
        if self.is_system {
            definition["systemKey"] = true.into();
        }
        definition
    }

    /// The key that a client means by `key`: an empty one means none, unless it is the key of all items without one.
    pub fn meant_by(&self, key: PartitionKey) -> Option<PartitionKey> {
        if key.is_empty() { self.key_of_none() } else { Some(key) }
    }

    /// The key of items without one, in a container without a partition key.
    pub fn key_of_none(&self) -> Option<PartitionKey> {
        self.is_system.then(|| PartitionKey(vec![Component::Undefined]))
    }

    /// Checks rules that apply only to new containers; those in older stores may break them.
    ///
    /// # Errors
    /// `BadRequest`: a path with an unquoted blank.
    pub fn check_new(&self) -> Result<()> {
        let blank = |path: &PropertyPath| Some((path.clone(), path.unquoted_blank()?));
        match self.paths.iter().find_map(blank) {
            None => Ok(()),
            Some((path, position)) => Err(not_a_path(path.as_str(), position)),
        }
    }

    /// Checks a key that must name one logical partition: a component for each path, within the size limit.
    ///
    /// # Errors
    /// - `PartitionKeyMismatch`: too few or too many components.
    /// - `BadRequest`: over the size limit.
    pub fn check_full(&self, key: &PartitionKey) -> Result<()> {
        if key.0.len() != self.paths.len() {
            return Err(Reason::PartitionKeyMismatch.into());
        }
        self.check_size(key)
    }

    /// Checks a key that may be a prefix, as in queries and feeds: at least one component, and all of them unless the kind is a hierarchy.
    ///
    /// # Errors
    /// As [`PartitionKeyDefinition::check_full`].
    pub fn check_prefix(&self, key: &PartitionKey) -> Result<()> {
        let is_prefix = self.kind == PartitionKind::MultiHash && (1..self.paths.len()).contains(&key.0.len());
        if is_prefix {
            self.check_size(key)
        } else {
            self.check_full(key)
        }
    }

    /// Whether a key has a component for each path, and so identifies one logical partition.
    pub fn is_full(&self, key: &PartitionKey) -> bool {
        key.0.len() == self.paths.len()
    }

    fn check_size(&self, key: &PartitionKey) -> Result<()> {
        let size = key.size();
        if size <= PARTITION_KEY_BYTES {
            return Ok(());
        }
        Err(Error::bad_request(format!(
            "The partition key is too long: it takes {size} bytes, and at most {PARTITION_KEY_BYTES} are allowed."
        )))
    }
}

fn read_kind(kind: Option<&Value>) -> Result<PartitionKind> {
    match kind {
        None | Some(Value::Null) => Ok(PartitionKind::Hash),
        Some(Value::String(name)) => PartitionKind::parse(name)
            .ok_or_else(|| invalid(&format!("unknown 'kind' of 'partitionKey': '{}'", excerpt(name)))),
        Some(_) => Err(invalid("'kind' of 'partitionKey' must be a string")),
    }
}

fn read_version(version: Option<&Value>, kind: PartitionKind) -> Result<PartitionKeyVersion> {
    let version = match version {
        None if kind == PartitionKind::MultiHash => PartitionKeyVersion::V2,
        None => PartitionKeyVersion::V1,
        // Java's SDK sends names.
        Some(version) => match (version.as_f64(), version.as_str()) {
            (Some(1.0), _) | (_, Some("V1")) => PartitionKeyVersion::V1,
            (Some(2.0), _) | (_, Some("V2")) => PartitionKeyVersion::V2,
            _ => return Err(invalid("'version' of 'partitionKey' must be 1 or 2")),
        },
    };
    if kind == PartitionKind::MultiHash && version == PartitionKeyVersion::V1 {
        return Err(invalid("'version' of 'partitionKey' must be 2 for kind MultiHash"));
    }
    Ok(version)
}

fn read_paths(paths: Option<&Value>, kind: PartitionKind) -> Result<Vec<PropertyPath>> {
    let Some(Value::Array(texts)) = paths else {
        return Err(invalid("'paths' of 'partitionKey' must be an array of strings"));
    };
    if texts.is_empty() {
        return Err(invalid("'paths' of 'partitionKey' must name at least one path"));
    }
    if texts.len() > kind.most_paths() {
        return Err(Error::bad_request(format!(
            "Too many partition key paths: {} are given, and kind {} takes at most {}.",
            texts.len(),
            kind.as_str(),
            kind.most_paths()
        )));
    }
    let mut read: Vec<PropertyPath> = Vec::with_capacity(texts.len());
    for text in texts {
        let path = read_path(text)?;
        if read.contains(&path) {
            return Err(Error::bad_request(format!(
                "The partition key path '{path}' is given twice."
            )));
        }
        read.push(path);
    }
    Ok(read)
}

fn read_path(text: &Value) -> Result<PropertyPath> {
    let text = text
        .as_str()
        .ok_or_else(|| invalid("'paths' of 'partitionKey' must be an array of strings"))?;
    let path = PropertyPath::parse(text).map_err(|error| not_a_path(text, error.position))?;
    if SYSTEM_PROPERTIES.contains(&path.names()[0].as_str()) {
        return Err(Error::bad_request(format!(
            "The partition key path '{path}' leads to a system property."
        )));
    }
    Ok(path)
}

fn not_a_path(text: &str, position: usize) -> Error {
    Error::bad_request(format!(
        "The partition key component definition path '{}' could not be accepted, failed near position '{position}'. Partition key paths \
         must contain only valid characters and not contain a trailing slash or wildcard character.",
        excerpt(text)
    ))
}

fn invalid(what: &str) -> Error {
    Error::bad_request(format!("One of the specified inputs is invalid: {what}."))
}

/// One value of a partition key.
///
/// Numbers are doubles: 1 and 1.0 are the same key, as are 0 and −0.
#[derive(Debug, Clone)]
pub enum Component {
    /// There is no value at the path, or an object or array.
    Undefined,
    /// JSON null, which differs from undefined.
    Null,
    /// A boolean.
    Bool(bool),
    /// A finite number.
    Number(f64),
    /// A string.
    String(String),
}

impl Component {
    /// The component of a value of a document.
    pub fn of(value: Option<&Value>) -> Component {
        match value {
            None | Some(Value::Array(_) | Value::Object(_)) => Component::Undefined,
            Some(Value::Null) => Component::Null,
            Some(Value::Bool(value)) => Component::Bool(*value),
            Some(Value::Number(number)) => number.as_f64().map_or(Component::Undefined, Component::Number),
            Some(Value::String(text)) => Component::String(text.clone()),
        }
    }

    /// The component as a JSON value; an empty object for undefined, as in a header.
    pub fn to_json(&self) -> Value {
        match self {
            Component::Undefined => Value::Object(Map::new()),
            Component::Null => Value::Null,
            Component::Bool(value) => Value::Bool(*value),
            Component::Number(number) => document::number(*number).map_or(Value::Null, Value::Number),
            Component::String(text) => Value::String(text.clone()),
        }
    }

    /// The bits of a number for comparing and hashing: −0 has the same as 0.
    pub(crate) fn number_bits(number: f64) -> u64 {
        if number == 0.0 { 0 } else { number.to_bits() }
    }

    fn size(&self) -> usize {
        match self {
            Component::Undefined | Component::Null | Component::Bool(_) => 1,
            Component::Number(_) => 8,
            Component::String(text) => text.len(),
        }
    }

    fn from_header(value: &Value) -> Option<Component> {
        match value {
            Value::Object(members) if members.is_empty() => Some(Component::Undefined),
            Value::Object(_) | Value::Array(_) => None,
            scalar => Some(Component::of(Some(scalar))),
        }
    }
}

impl PartialEq for Component {
    fn eq(&self, other: &Component) -> bool {
        match (self, other) {
            (Component::Undefined, Component::Undefined) | (Component::Null, Component::Null) => true,
            (Component::Bool(a), Component::Bool(b)) => a == b,
            (Component::Number(a), Component::Number(b)) => Component::number_bits(*a) == Component::number_bits(*b),
            (Component::String(a), Component::String(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Component {}

impl Hash for Component {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Component::Undefined | Component::Null => {}
            Component::Bool(value) => value.hash(state),
            Component::Number(number) => Component::number_bits(*number).hash(state),
            Component::String(text) => text.hash(state),
        }
    }
}

/// The values of a partition key, from the top of the hierarchy down. Empty means no key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PartitionKey(pub Vec<Component>);

impl PartitionKey {
    /// Reads a header: a JSON array of scalars, with `{}` for undefined.
    ///
    /// # Errors
    /// `BadRequest`: the text is not JSON, not an array, or contains an array or a non-empty object.
    ///
    /// Source: cosmos-rest §5.2.
    pub fn from_header(text: &str) -> Result<PartitionKey> {
        let value = document::parse_json(text)
            .map_err(|error| Error::bad_request(format!("Partition key {} is invalid: {error}", excerpt(text))))?;
        PartitionKey::from_json(&value).ok_or_else(|| {
            Error::bad_request(format!(
                "Partition key {} is invalid: expected a JSON array of scalars or {{}}.",
                excerpt(text)
            ))
        })
    }

    /// Reads a key as people write it: a JSON array as in a header, or other text, which is taken as a string.
    ///
    /// # Errors
    /// `BadRequest`: it begins like an array but is not an array of scalars. The message says what is expected.
    pub fn from_text(text: &str) -> Result<PartitionKey> {
        if !text.trim_start().starts_with('[') {
            return Ok(PartitionKey(vec![Component::String(text.to_owned())]));
        }
        PartitionKey::from_header(text).map_err(|error| {
            Error::bad_request(format!(
                "{error} Write a partition key as a JSON array, such as [\"ada\"] or [7, true], or a plain value for a string, such as ada."
            ))
        })
    }

    /// Reads the array of a header or body; `None` for anything but an array of scalars and empty objects.
    pub fn from_json(value: &Value) -> Option<PartitionKey> {
        value
            .as_array()?
            .iter()
            .map(Component::from_header)
            .collect::<Option<Vec<_>>>()
            .map(PartitionKey)
    }

    /// The key as a header has it: a compact JSON array in ASCII.
    pub fn to_header_json(&self) -> String {
        let values: Vec<Value> = self.0.iter().map(Component::to_json).collect();
        escape_non_ascii(&Value::Array(values).to_string())
    }

    /// The key of a document under `definition`.
    pub fn extract(definition: &PartitionKeyDefinition, document: &Value) -> PartitionKey {
        PartitionKey(
            definition
                .paths
                .iter()
                .map(|path| Component::of(path.lookup(document)))
                .collect(),
        )
    }

    /// As [`PartitionKey::extract`], for the members of a document.
    pub fn extract_from(definition: &PartitionKeyDefinition, document: &Map<String, Value>) -> PartitionKey {
        PartitionKey(
            definition
                .paths
                .iter()
                .map(|path| Component::of(path.lookup_in(document)))
                .collect(),
        )
    }

    /// Whether the key is empty: the `[]` that some clients send for requests across partitions.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of all components: a string's UTF-8, eight for a number, one for any other.
    pub fn size(&self) -> usize {
        self.0.iter().map(Component::size).sum()
    }
}

/// Header values must be printable ASCII; in JSON text only strings can contain other characters.
fn escape_non_ascii(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() && c != '\x7f' {
            escaped.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(escaped, "\\u{unit:04x}").expect("a string takes any text");
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
