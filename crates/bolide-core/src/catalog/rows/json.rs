//! How values of the core are written inside rows: each module here is used in `#[serde(with = "…")]`. The types themselves do not know how they are
//! stored.

use std::sync::Arc;

use bolide_model::UnixSeconds;
use bolide_model::container::ContainerProperties;
use bolide_model::encryption_key::EncryptionKeyProperties;
use bolide_model::epk::{Epk, EpkRange};
use bolide_model::partition_key::PartitionKey;
use bolide_model::ttl::{Floors, Policy};
use bolide_storage::PartitionId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalog::permissions::{PermissionMode, PermissionProperties};
use crate::container::{CollectionDefinition, PolicyPeriod, ScriptDraft, TriggerFires};

use super::collection::StoredCollection;
use super::property_indexes::StoredIndexes;
use crate::format::etag::Etag;
use crate::index::PropertyIndexes;
use crate::partition::Placement;
use crate::throughput::{OfferType, Pacing, PacingSettings, Throughput};

/// Defines a module that stores `$value` as `$stored`. `$from` returns `None` for a stored value that is invalid.
macro_rules! stored {
    ($name:ident: $value:ty as $stored:ty, $to:expr, $from:expr) => {
        pub(super) mod $name {
            use serde::de::Error as _;
            use serde::{Deserialize, Deserializer, Serialize, Serializer};

            #[allow(unused_imports, reason = "which of them a value needs differs")]
            use super::*;

            pub fn serialize<S: Serializer>(value: &$value, serializer: S) -> Result<S::Ok, S::Error> {
                let to: fn(&$value) -> $stored = $to;
                to(value).serialize(serializer)
            }

            pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$value, D::Error> {
                let from: fn($stored) -> Option<$value> = $from;
                from(<$stored>::deserialize(deserializer)?)
                    .ok_or_else(|| D::Error::custom(concat!("this is no value of the kind ", stringify!($name))))
            }
        }
    };
}

// 128 bits do not fit a JSON number.
stored!(etag: Etag as String,
    |etag| format!("{:032x}", etag.0),
    |text| u128::from_str_radix(&text, 16).ok().map(Etag));

stored!(seconds: UnixSeconds as i64, |seconds| seconds.0, |number| Some(UnixSeconds(number)));

stored!(optional_seconds: Option<UnixSeconds> as Option<i64>,
    |seconds| seconds.map(|seconds| seconds.0),
    |number| Some(number.map(UnixSeconds)));

stored!(throughput: Option<Throughput> as Option<StoredThroughput>,
    |throughput| throughput.map(StoredThroughput::from),
    |stored| Some(stored.map(Throughput::from)));

stored!(offer_type: OfferType as Option<String>,
    |kind| Some(kind.name().to_owned()),
    |name| name.map_or(Some(OfferType::default()), |name| OfferType::parse(&name)));

stored!(container_properties: Arc<ContainerProperties> as Value,
    |properties| Value::Object(properties.to_json()),
    |value| ContainerProperties::from_json(&value).ok().map(Arc::new));

stored!(encryption_key_properties: Arc<EncryptionKeyProperties> as Value,
    |properties| Value::Object(properties.to_json()),
    |value| EncryptionKeyProperties::from_json(&value).ok().map(Arc::new));

stored!(floors: Floors as (i64, i64),
    |floors| (floors.inherited, floors.own),
    |(inherited, own)| Some(Floors { inherited, own }));

stored!(stretches: Vec<PolicyPeriod> as Vec<(i64, Option<i64>)>,
    |stretches| stretches.iter().map(|stretch| (stretch.start.0, stretch.policy.to_number())).collect(),
    |stored| stored.into_iter().map(stretch_of).collect());

stored!(pacing: PacingSettings as StoredPacing, StoredPacing::of, StoredPacing::settings);

stored!(placements: Vec<Placement> as Vec<StoredRange>,
    |placements| placements.iter().map(StoredRange::of).collect(),
    |ranges| ranges.into_iter().map(StoredRange::placement).collect());

stored!(grant: Arc<PermissionProperties> as StoredGrant,
    |grant| StoredGrant::of(grant),
    |stored| stored.grant().map(Arc::new));

stored!(collection: Option<Arc<CollectionDefinition>> as Option<StoredCollection>,
|collection| collection.as_deref().map(StoredCollection::of),
|stored| match stored {
    Some(stored) => stored.definition().map(|definition| Some(Arc::new(definition))),
    None => Some(None),
});

stored!(property_indexes: Arc<PropertyIndexes> as StoredIndexes,
    |indexes| StoredIndexes::of(indexes),
    |stored| stored.indexes().map(Arc::new));

stored!(script: ScriptDraft as StoredScript, StoredScript::of, StoredScript::draft);

fn stretch_of((start, number): (i64, Option<i64>)) -> Option<PolicyPeriod> {
    Some(PolicyPeriod {
        start: UnixSeconds(start),
        policy: Policy::from_number(number.map(|seconds| seconds as f64)).ok()?,
    })
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum StoredThroughput {
    Manual {
        ru: u32,
    },
    Autoscale {
        #[serde(rename = "maxRu")]
        max_ru: u32,
        increment: Option<u32>,
    },
}

impl From<Throughput> for StoredThroughput {
    fn from(throughput: Throughput) -> StoredThroughput {
        match throughput {
            Throughput::Manual { ru } => StoredThroughput::Manual { ru },
            Throughput::Autoscale {
                max_ru,
                increment_percent: increment,
            } => StoredThroughput::Autoscale { max_ru, increment },
        }
    }
}

impl From<StoredThroughput> for Throughput {
    fn from(stored: StoredThroughput) -> Throughput {
        match stored {
            StoredThroughput::Manual { ru } => Throughput::Manual { ru },
            StoredThroughput::Autoscale { max_ru, increment } => Throughput::Autoscale {
                max_ru,
                increment_percent: increment,
            },
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredPacing {
    mode: String,
    ru: Option<f64>,
    delete_ru: Option<f64>,
    #[serde(default)]
    count_only_load: bool,
}

impl StoredPacing {
    fn of(settings: &PacingSettings) -> StoredPacing {
        let (mode, ru) = match settings.pacing {
            Pacing::Provisioned { ru } => ("provisioned", Some(ru)),
            Pacing::Autoscale { max_ru } => ("autoscale", Some(max_ru)),
            Pacing::Serverless => ("serverless", None),
            Pacing::Unlimited => ("unlimited", None),
        };
        StoredPacing {
            mode: mode.to_owned(),
            ru,
            delete_ru: settings.delete_ru,
            count_only_load: settings.count_only_load,
        }
    }

    fn settings(self) -> Option<PacingSettings> {
        let pacing = match self.mode.as_str() {
            "provisioned" => Pacing::Provisioned { ru: self.ru? },
            "autoscale" => Pacing::Autoscale { max_ru: self.ru? },
            "serverless" => Pacing::Serverless,
            "unlimited" => Pacing::Unlimited,
            _ => return None,
        };
        Some(PacingSettings {
            pacing,
            delete_ru: self.delete_ru,
            count_only_load: self.count_only_load,
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredRange {
    id: u32,
    partition: u64,
    min: String,
    max: String,
    parents: Vec<u32>,
}

impl StoredRange {
    fn of(placement: &Placement) -> StoredRange {
        StoredRange {
            id: placement.range,
            partition: placement.id.0,
            min: placement.epk.min.to_hex(),
            max: placement.epk.max.to_hex(),
            parents: placement.parents.clone(),
        }
    }

    fn placement(self) -> Option<Placement> {
        Some(Placement {
            id: PartitionId(self.partition),
            range: self.id,
            epk: EpkRange {
                min: Epk::from_hex(&self.min).ok()?,
                max: Epk::from_hex(&self.max).ok()?,
            },
            parents: self.parents,
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredGrant {
    id: String,
    /// As the client wrote it.
    mode: String,
    resource: String,
    partition_key: Option<String>,
}

impl StoredGrant {
    fn of(grant: &PermissionProperties) -> StoredGrant {
        let PermissionProperties {
            id,
            mode: _,
            mode_text,
            resource,
            partition_key,
        } = grant;
        StoredGrant {
            id: id.clone(),
            mode: mode_text.clone(),
            resource: resource.clone(),
            partition_key: partition_key.as_ref().map(PartitionKey::to_header_json),
        }
    }

    fn grant(self) -> Option<PermissionProperties> {
        let key = self.partition_key.as_deref().map(PartitionKey::from_header);
        Some(PermissionProperties {
            id: self.id,
            mode: PermissionMode::parse(&self.mode)?,
            mode_text: self.mode,
            resource: self.resource,
            partition_key: key.transpose().ok()?,
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredScript {
    id: String,
    body: String,
    /// For a trigger: time and operation, as the client wrote them.
    fires: Option<(String, String)>,
}

impl StoredScript {
    fn of(draft: &ScriptDraft) -> StoredScript {
        let spelled = draft.fires.as_ref().map(TriggerFires::spelled);
        StoredScript {
            id: draft.id.clone(),
            body: draft.body.to_string(),
            fires: spelled.map(|[time, operation]| (time.to_owned(), operation.to_owned())),
        }
    }

    fn draft(self) -> Option<ScriptDraft> {
        let fires = self
            .fires
            .map(|(time, operation)| TriggerFires::parse(&time, &operation));
        Some(ScriptDraft {
            id: self.id,
            body: self.body.into(),
            fires: fires.transpose().ok()?,
        })
    }
}
