//! Container definitions: what a client may send, and what it gets back.
//!
//! [`ContainerProperties::from_json`] reads a request's body, checks every member and adds the service's defaults; [`ContainerProperties::to_json`]
//! writes it in the service's order, for responses and for the catalog: reading that again gives an equal definition.
//! [`ContainerProperties::replace`] decides what may change later.
//!
//! Null counts as absent, unknown members are ignored, and a member of the wrong type or value is a `BadRequest` that names it. The queries of
//! computed properties are not parsed here. Source: cosmos-rest §§4.2, 4.3, TTL-212 to TTL-222.

mod analysis;
pub mod full_text;
mod index_path;
pub mod indexing;
mod input;
pub mod policies;
pub mod spatial;
mod unique_keys;
pub mod vector;

use serde_json::{Map, Value};

use self::full_text::FullTextPolicy;
use self::indexing::{IndexingMode, IndexingPolicy};
use self::input::{Input, invalid};
use self::policies::{ChangeFeedPolicy, ClientEncryptionPolicy, ComputedProperty, ConflictResolution, Geospatial};
pub use self::unique_keys::UniqueKey;
use self::vector::VectorEmbeddingPolicy;
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::limits::TTL_SECONDS;
use crate::names::validate_resource_id;
use crate::partition_key::PartitionKeyDefinition;
use crate::ttl::{Policy, invalid_ttl};

/// A container's definition, without system properties.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerProperties {
    /// The name that the user chose.
    pub id: String,
    /// The paths of the partition key. Cannot change.
    pub partition_key: PartitionKeyDefinition,
    /// Which paths are indexed.
    pub indexing_policy: IndexingPolicy,
    /// `defaultTtl`: when items without a ttl of their own expire.
    pub policy: Policy,
    /// For the analytical store, which we do not have: stored, without effect (TTL-223).
    pub analytical_storage_ttl: Option<i64>,
    /// Properties that must be unique within a logical partition. Cannot change.
    pub unique_keys: Vec<UniqueKey>,
    /// How conflicting writes of several regions would be resolved.
    pub conflict_resolution: ConflictResolution,
    /// How coordinates are interpreted.
    pub geospatial: Geospatial,
    /// Properties that queries compute.
    pub computed_properties: Vec<ComputedProperty>,
    /// The vectors of items.
    pub vector_embedding_policy: Option<VectorEmbeddingPolicy>,
    /// The properties with full text.
    pub full_text_policy: Option<FullTextPolicy>,
    /// Whether the change feed keeps all versions and deletes.
    pub change_feed_policy: Option<ChangeFeedPolicy>,
    /// The properties that clients encrypt. Cannot change.
    pub client_encryption_policy: Option<ClientEncryptionPolicy>,
    /// Masking for users without the right to see the data: stored, without effect, because holders of keys and tokens see everything.
    pub data_masking_policy: Option<Map<String, Value>>,
}

impl ContainerProperties {
    /// A container with only an id and a partition key, and the service's defaults for everything else.
    pub fn new(id: impl Into<String>, partition_key: PartitionKeyDefinition) -> ContainerProperties {
        ContainerProperties {
            id: id.into(),
            partition_key,
            indexing_policy: IndexingPolicy::default(),
            policy: Policy::Off,
            analytical_storage_ttl: None,
            unique_keys: Vec::new(),
            conflict_resolution: ConflictResolution::default(),
            geospatial: Geospatial::default(),
            computed_properties: Vec::new(),
            vector_embedding_policy: None,
            full_text_policy: None,
            change_feed_policy: None,
            client_encryption_policy: None,
            data_masking_policy: None,
        }
    }

    /// Reads a definition.
    ///
    /// # Errors
    /// - `PartitionKeyMissing`: no `partitionKey`.
    /// - `NotSupported`: a materialized view or a global secondary index, which could not do what it promises.
    /// - `BadRequest`: anything else that is not a valid definition; the message names the member.
    pub fn from_json(value: &Value) -> Result<ContainerProperties> {
        let input = Input::root(value)?;
        refuse_unsupported(&input)?;
        let properties = ContainerProperties {
            id: read_id(&input)?,
            partition_key: PartitionKeyDefinition::from_json(input.get("partitionKey").unwrap_or(&Value::Null))?,
            indexing_policy: read(&input, "indexingPolicy", IndexingPolicy::from_input)?.unwrap_or_default(),
            policy: read_default_ttl(&input)?,
            analytical_storage_ttl: read_analytical_ttl(&input)?,
            unique_keys: read(&input, "uniqueKeyPolicy", unique_keys::from_input)?.unwrap_or_default(),
            conflict_resolution: read(&input, "conflictResolutionPolicy", ConflictResolution::from_input)?
                .unwrap_or_default(),
            geospatial: read(&input, "geospatialConfig", Geospatial::from_input)?.unwrap_or_default(),
            computed_properties: ComputedProperty::list_from_input(&input)?,
            vector_embedding_policy: read(&input, "vectorEmbeddingPolicy", VectorEmbeddingPolicy::from_input)?,
            full_text_policy: read(&input, "fullTextPolicy", FullTextPolicy::from_input)?,
            change_feed_policy: read(&input, "changeFeedPolicy", ChangeFeedPolicy::from_input)?,
            client_encryption_policy: read(&input, "clientEncryptionPolicy", ClientEncryptionPolicy::from_input)?,
            data_masking_policy: read(&input, "dataMaskingPolicy", |policy| Ok(policy.members().clone()))?,
        };
        properties.check()?;
        Ok(properties)
    }

    /// The definition in the service's order, without system properties. Members that are switched off are left out (TTL-214).
    pub fn to_json(&self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("id".into(), self.id.as_str().into());
        members.insert("indexingPolicy".into(), self.indexing_policy.to_json());
        members.insert("partitionKey".into(), self.partition_key.to_json());
        members.insert("uniqueKeyPolicy".into(), unique_keys::to_json(&self.unique_keys));
        members.insert("conflictResolutionPolicy".into(), self.conflict_resolution.to_json());
        members.insert("geospatialConfig".into(), self.geospatial.to_json());
        let computed = (!self.computed_properties.is_empty())
            .then(|| self.computed_properties.iter().map(ComputedProperty::to_json).collect());
        let optional = [
            ("defaultTtl", self.policy.to_number().map(Value::from)),
            ("analyticalStorageTtl", self.analytical_storage_ttl.map(Value::from)),
            ("computedProperties", computed),
            (
                "vectorEmbeddingPolicy",
                self.vector_embedding_policy
                    .as_ref()
                    .map(VectorEmbeddingPolicy::to_json),
            ),
            (
                "fullTextPolicy",
                self.full_text_policy.as_ref().map(FullTextPolicy::to_json),
            ),
            (
                "changeFeedPolicy",
                self.change_feed_policy.map(ChangeFeedPolicy::to_json),
            ),
            (
                "clientEncryptionPolicy",
                self.client_encryption_policy
                    .as_ref()
                    .map(ClientEncryptionPolicy::to_json),
            ),
            ("dataMaskingPolicy", self.data_masking_policy.clone().map(Value::Object)),
        ];
        members.extend(
            optional
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?))),
        );
        members
    }

    /// The definition after a client replaces this one by `new`, which was read from `sent`.
    ///
    /// Members that are not sent are reset, except those that cannot change or cannot be switched off: the conflict resolution, the geospatial type,
    /// the client encryption policy, and the version of the partition key.
    ///
    /// # Errors
    /// - `Forbidden`: the unique keys differ, or are not sent although there are some.
    /// - `BadRequest`: the id, the partition key, the client encryption policy or an existing vector path would change.
    ///
    /// Source: cosmos-rest §4.3.
    pub fn replace(&self, new: ContainerProperties, sent: &Value) -> Result<ContainerProperties> {
        let sent = Input::root(sent)?;
        if new.id != self.id {
            return Err(unchangeable("id"));
        }
        self.check_partition_key(&new, &sent)?;
        if new.unique_keys != self.unique_keys {
            return Err(Error::new(
                ErrorKind::Forbidden,
                "The unique key policy of a container cannot be changed or left out once it is created.",
            ));
        }
        vector::check_replaced(
            (
                self.vector_embedding_policy.as_ref(),
                &self.indexing_policy.vector_indexes,
            ),
            (
                new.vector_embedding_policy.as_ref(),
                &new.indexing_policy.vector_indexes,
            ),
        )?;
        let is_sent = |member| sent.get(member).is_some();
        if new.client_encryption_policy != self.client_encryption_policy {
            // Clients look for this text. Source: .NET's suite, `ClientEncryptionPolicyTest`.
            return Err(Error::bad_request(
                "'clientEncryptionPolicy' cannot be changed as part of collection replace operation.",
            ));
        }
        Ok(ContainerProperties {
            partition_key: self.partition_key.clone(),
            conflict_resolution: if is_sent("conflictResolutionPolicy") {
                new.conflict_resolution
            } else {
                self.conflict_resolution.clone()
            },
            geospatial: if is_sent("geospatialConfig") {
                new.geospatial
            } else {
                self.geospatial
            },
            ..new
        })
    }

    /// A version that is not sent is the existing one; otherwise a client that does not know versions could replace nothing.
    fn check_partition_key(&self, new: &ContainerProperties, sent: &Input<'_>) -> Result<()> {
        let is_version_sent = sent
            .object("partitionKey")?
            .is_some_and(|definition| definition.get("version").is_some());
        let (old, new) = (&self.partition_key, &new.partition_key);
        let is_same =
            old.paths == new.paths && old.kind == new.kind && (!is_version_sent || old.version == new.version);
        if is_same {
            Ok(())
        } else {
            Err(unchangeable("partitionKey"))
        }
    }

    /// Checks rules between members.
    fn check(&self) -> Result<()> {
        let indexing = &self.indexing_policy;
        if self.policy.is_on() && indexing.mode == IndexingMode::None {
            return Err(invalid(
                "defaultTtl",
                "left out where 'indexingPolicy.indexingMode' is none",
            ));
        }
        vector::check_indexes(&indexing.vector_indexes, self.vector_embedding_policy.as_ref())?;
        full_text::check_indexes(&indexing.full_text_indexes, self.full_text_policy.as_ref())?;
        let needs_extent = self.geospatial == Geospatial::Geometry;
        if needs_extent
            && indexing
                .spatial_indexes
                .iter()
                .any(|index| index.bounding_box.is_none())
        {
            return Err(invalid(
                "indexingPolicy.spatialIndexes",
                "given a 'boundingBox' where 'geospatialConfig.type' is Geometry",
            ));
        }
        Ok(())
    }
}

fn read<'a, T>(input: &Input<'a>, member: &str, read: impl FnOnce(&Input<'a>) -> Result<T>) -> Result<Option<T>> {
    input.object(member)?.as_ref().map(read).transpose()
}

fn read_id(input: &Input<'_>) -> Result<String> {
    let Some(id) = input.string("id")? else {
        return Err(Error::bad_request(
            "The input content is invalid because the required properties - 'id; ' - are missing.",
        ));
    };
    validate_resource_id(id)?;
    Ok(id.to_owned())
}

/// TTL-213, TTL-220, TTL-222.
fn read_default_ttl(input: &Input<'_>) -> Result<Policy> {
    if input.get("ttlPropertyPath").is_some() {
        // Using `_ts` instead would keep or delete data at the wrong time.
        return Err(invalid(
            "ttlPropertyPath",
            "left out: items expire by their last write only",
        ));
    }
    match input.get("defaultTtl") {
        None => Ok(Policy::Off),
        Some(Value::Number(number)) => Policy::from_number(number.as_f64()),
        Some(other) => Err(invalid_ttl("defaultTtl", &excerpt(&other.to_string()))),
    }
}

/// TTL-223.
fn read_analytical_ttl(input: &Input<'_>) -> Result<Option<i64>> {
    let given = input.get("analyticalStorageTtl");
    match given.map(|value| (value, value.as_i64())) {
        None => Ok(None),
        Some((_, Some(seconds @ -1..=TTL_SECONDS))) => Ok(Some(seconds)),
        Some((other, _)) => Err(invalid(
            "analyticalStorageTtl",
            &format!(
                "-1, 0 or a number of seconds up to {TTL_SECONDS}; it is {}",
                excerpt(&other.to_string())
            ),
        )),
    }
}

fn refuse_unsupported(input: &Input<'_>) -> Result<()> {
    let unsupported = ["materializedViewDefinition", "globalSecondaryIndexDefinition"];
    match unsupported.into_iter().find(|member| input.get(member).is_some()) {
        None => Ok(()),
        Some(member) => Err(Error::not_supported(format!("'{member}' is not supported."))),
    }
}

fn unchangeable(member: &str) -> Error {
    Error::bad_request(format!(
        "The '{member}' of a container cannot be changed once it is created."
    ))
}

#[cfg(test)]
mod tests;
