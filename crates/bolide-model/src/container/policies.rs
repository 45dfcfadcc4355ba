//! Smaller policies of a container: conflicts, geometry, computed properties, the change feed, client encryption.
//!
//! Source: cosmos-rest §4.2, cosmos-sql §19.

use serde_json::{Value, json};

use super::input::{Input, has_duplicates, invalid, word};
use crate::document::SYSTEM_PROPERTIES;
use crate::error::Result;
use crate::limits::COMPUTED_PROPERTIES;
use crate::path::PropertyPath;

/// How conflicting writes of several regions would be resolved; with one region there are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictResolution {
    /// How conflicts are resolved.
    pub mode: ConflictResolutionMode,
    /// For last writer wins: the property whose higher value wins.
    pub path: String,
    /// For custom: the stored procedure that resolves conflicts.
    pub procedure: String,
}

/// How a conflict between two writes is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictResolutionMode {
    /// The higher value at a path.
    LastWriterWins,
    /// A stored procedure, or the application through the conflict feed.
    Custom,
}

/// How coordinates are interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Geospatial {
    /// Longitude and latitude on the globe.
    #[default]
    Geography,
    /// x and y on a plane.
    Geometry,
}

/// A property that queries see as if it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputedProperty {
    /// The name at the root of the item.
    pub name: String,
    /// `SELECT VALUE … FROM c`; checked by the query language.
    pub query: String,
}

/// Whether the change feed keeps all versions and deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeFeedPolicy {
    /// Retention in minutes; 0 for none.
    pub retention_minutes: u32,
}

/// The properties that clients encrypt. The server stores and returns the policy; it cannot read the encrypted values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientEncryptionPolicy {
    /// One entry per property.
    pub paths: Vec<ClientEncryptionPath>,
    /// 1, or 2 where the id or the partition key may be encrypted.
    pub format_version: u8,
}

/// How a client encrypts one property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientEncryptionPath {
    /// The property at the root of the item.
    pub path: PropertyPath,
    /// The id of the client encryption key.
    pub key_id: String,
    /// Whether equal values give equal ciphertexts.
    pub encryption_type: EncryptionType,
    /// Always [`ENCRYPTION_ALGORITHM`].
    pub algorithm: String,
}

/// Whether equal values give equal ciphertexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncryptionType {
    /// Yes, so queries can compare for equality.
    Deterministic,
    /// No.
    Randomized,
}

/// The algorithm that client encryption uses.
pub const ENCRYPTION_ALGORITHM: &str = "AEAD_AES_256_CBC_HMAC_SHA256";

const CONFLICT_MODES: &[(&str, ConflictResolutionMode)] = &[
    ("LastWriterWins", ConflictResolutionMode::LastWriterWins),
    ("Custom", ConflictResolutionMode::Custom),
];

const GEOSPATIAL_TYPES: &[(&str, Geospatial)] =
    &[("Geography", Geospatial::Geography), ("Geometry", Geospatial::Geometry)];

const ENCRYPTION_TYPES: &[(&str, EncryptionType)] = &[
    ("Deterministic", EncryptionType::Deterministic),
    ("Randomized", EncryptionType::Randomized),
];

impl Default for ConflictResolution {
    fn default() -> ConflictResolution {
        ConflictResolution {
            mode: ConflictResolutionMode::LastWriterWins,
            path: "/_ts".to_owned(),
            procedure: String::new(),
        }
    }
}

impl ConflictResolution {
    pub(super) fn from_input(input: &Input<'_>) -> Result<ConflictResolution> {
        let mode = input
            .choice("mode", CONFLICT_MODES)?
            .unwrap_or(ConflictResolutionMode::LastWriterWins);
        let path = match (mode, input.string("conflictResolutionPath")?) {
            (ConflictResolutionMode::LastWriterWins, None | Some("")) => "/_ts",
            (_, path) => path.unwrap_or_default(),
        };
        let procedure = input.string("conflictResolutionProcedure")?.unwrap_or_default();
        Ok(ConflictResolution {
            mode,
            path: path.to_owned(),
            procedure: procedure.to_owned(),
        })
    }

    pub(super) fn to_json(&self) -> Value {
        let mode = word(CONFLICT_MODES, self.mode);
        json!({"mode": mode, "conflictResolutionPath": self.path, "conflictResolutionProcedure": self.procedure})
    }
}

impl Geospatial {
    pub(super) fn from_input(input: &Input<'_>) -> Result<Geospatial> {
        Ok(input.choice("type", GEOSPATIAL_TYPES)?.unwrap_or_default())
    }

    pub(super) fn to_json(self) -> Value {
        json!({"type": word(GEOSPATIAL_TYPES, self)})
    }
}

impl ComputedProperty {
    pub(super) fn list_from_input(input: &Input<'_>) -> Result<Vec<ComputedProperty>> {
        const NAME: &str = "computedProperties";
        let properties = input
            .objects(NAME)?
            .iter()
            .map(ComputedProperty::from_input)
            .collect::<Result<Vec<_>>>()?;
        if properties.len() > COMPUTED_PROPERTIES {
            let count = properties.len();
            return Err(invalid(
                NAME,
                &format!("a list of at most {COMPUTED_PROPERTIES} properties; it has {count}"),
            ));
        }
        let names: Vec<&str> = properties.iter().map(|property| property.name.as_str()).collect();
        if has_duplicates(&names) {
            return Err(invalid(NAME, "a list of properties with different names"));
        }
        Ok(properties)
    }

    fn from_input(input: &Input<'_>) -> Result<ComputedProperty> {
        let name = input.require("name", input.string("name")?)?;
        if name.is_empty() || name == "id" || SYSTEM_PROPERTIES.contains(&name) {
            return Err(invalid(
                &input.name_of("name"),
                "neither empty nor the name of a system property",
            ));
        }
        let query = input.require("query", input.string("query")?)?;
        if query.trim().is_empty() {
            return Err(invalid(&input.name_of("query"), "a query"));
        }
        Ok(ComputedProperty {
            name: name.to_owned(),
            query: query.to_owned(),
        })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"name": self.name, "query": self.query})
    }
}

impl ChangeFeedPolicy {
    pub(super) fn from_input(input: &Input<'_>) -> Result<ChangeFeedPolicy> {
        let minutes = input.require("retentionDuration", input.integer("retentionDuration")?)?;
        match u32::try_from(minutes) {
            Ok(retention_minutes) => Ok(ChangeFeedPolicy { retention_minutes }),
            Err(_) => Err(invalid(
                &input.name_of("retentionDuration"),
                "a number of minutes, 0 or more",
            )),
        }
    }

    pub(super) fn to_json(self) -> Value {
        json!({"retentionDuration": self.retention_minutes})
    }
}

impl ClientEncryptionPolicy {
    pub(super) fn from_input(input: &Input<'_>) -> Result<ClientEncryptionPolicy> {
        let paths = input.objects("includedPaths")?;
        let paths = paths
            .iter()
            .map(ClientEncryptionPath::from_input)
            .collect::<Result<Vec<_>>>()?;
        let names: Vec<&PropertyPath> = paths.iter().map(|path| &path.path).collect();
        if has_duplicates(&names) {
            return Err(invalid(&input.name_of("includedPaths"), "a list of different paths"));
        }
        let format_version = match input.integer("policyFormatVersion")? {
            None | Some(1) => 1,
            Some(2) => 2,
            Some(_) => return Err(invalid(&input.name_of("policyFormatVersion"), "1 or 2")),
        };
        Ok(ClientEncryptionPolicy { paths, format_version })
    }

    pub(super) fn to_json(&self) -> Value {
        let paths: Vec<Value> = self.paths.iter().map(ClientEncryptionPath::to_json).collect();
        json!({"includedPaths": paths, "policyFormatVersion": self.format_version})
    }
}

impl ClientEncryptionPath {
    fn from_input(input: &Input<'_>) -> Result<ClientEncryptionPath> {
        let path = input.path("path")?;
        if path.names().len() != 1 {
            return Err(invalid(&input.name_of("path"), "the path of a property at the root"));
        }
        let encryption_type = input.choice("encryptionType", ENCRYPTION_TYPES)?;
        let algorithm = input.require("encryptionAlgorithm", input.string("encryptionAlgorithm")?)?;
        if algorithm != ENCRYPTION_ALGORITHM {
            return Err(invalid(&input.name_of("encryptionAlgorithm"), ENCRYPTION_ALGORITHM));
        }
        Ok(ClientEncryptionPath {
            path,
            key_id: input
                .require("clientEncryptionKeyId", input.string("clientEncryptionKeyId")?)?
                .to_owned(),
            encryption_type: input.require("encryptionType", encryption_type)?,
            algorithm: algorithm.to_owned(),
        })
    }

    fn to_json(&self) -> Value {
        json!({
            "path": self.path.as_str(),
            "clientEncryptionKeyId": self.key_id,
            "encryptionType": word(ENCRYPTION_TYPES, self.encryption_type),
            "encryptionAlgorithm": self.algorithm,
        })
    }
}
