//! The rows of the catalog, in partition 0.
//!
//! ```text
//!   Meta  'A'                   account: counters and switches
//!         'D' ‖ database rid    a database
//!         'C' ‖ container rid   a container: definition, settings of expiry, ranges
//!         'U' ‖ user rid        a user of a database
//!         'P' ‖ permission rid  a permission of a user
//!         'R' ‖ container rid ‖ kind(1) ‖ number(8)   a script: 'P' stored procedure, 'T' trigger, 'F' user-defined function
//!         'K' ‖ key rid         a client encryption key of a database
//!         'X' ‖ partition id    a partition that is to be removed
//! ```
//!
//! Values are JSON: they are few, change rarely, and people may want to look at them.

use std::sync::Arc;

use bolide_model::container::ContainerProperties;
use bolide_model::encryption_key::EncryptionKeyProperties;
use bolide_model::epk::{Epk, EpkRange};
use bolide_model::partition_key::PartitionKey;
use bolide_model::rid::{ChildKind, ChildRid, ContainerRid, DatabaseRid, EncryptionKeyRid, PermissionRid, UserRid};
use bolide_model::ttl::{Floors, Policy, Settings};
use bolide_model::{Error, ErrorKind, Result, UnixSeconds};
use bolide_storage::{Key, PartitionId, Space};
use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Value, json};

use super::permissions::{PermissionMode, PermissionProperties};
use crate::container::Stretch;
use crate::format::etag::Etag;
use crate::partition::Placement;
use crate::scripts::{Conduct, Script, ScriptDraft, ScriptKind, TriggerFires};
use crate::throughput::{OfferType, Pacing, PacingSettings, Throughput};

pub(super) const DATABASE: u8 = b'D';
pub(super) const CONTAINER: u8 = b'C';
pub(super) const USER: u8 = b'U';
pub(super) const ENCRYPTION_KEY: u8 = b'K';
pub(super) const PERMISSION: u8 = b'P';
pub(super) const SCRIPT: u8 = b'R';
pub(super) const DROPPED: u8 = b'X';

/// Counters and switches of the account.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AccountRow {
    pub next_database: u32,
    pub next_offer: u32,
    pub next_partition: u64,
    pub mongo_document_ttl: bool,
}

impl Default for AccountRow {
    /// Of a new account. Partition 0 is the catalog itself; per-document TTL is on (TTL-288).
    fn default() -> AccountRow {
        AccountRow {
            next_database: 1,
            next_offer: 1,
            next_partition: 1,
            mongo_document_ttl: true,
        }
    }
}

/// A database.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DatabaseRow {
    pub id: String,
    pub etag: Etag,
    pub last_modified: UnixSeconds,
    pub next_container: u32,
    pub next_user: u32,
    pub offer: Option<OfferRow>,
}

/// The offer of a database or container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OfferRow {
    pub number: u32,
    /// `None`: created without any; shown as the default.
    pub throughput: Option<Throughput>,
    pub kind: OfferType,
    pub etag: Etag,
    pub last_modified: UnixSeconds,
}

/// A client encryption key of a database.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EncryptionKeyRow {
    pub properties: Arc<EncryptionKeyProperties>,
    pub created: UnixSeconds,
    pub etag: Etag,
    pub last_modified: UnixSeconds,
}

/// A user of a database.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UserRow {
    pub id: String,
    pub etag: Etag,
    pub last_modified: UnixSeconds,
    pub next_permission: u64,
}

/// A permission of a user.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PermissionRow {
    pub grant: Arc<PermissionProperties>,
    pub etag: Etag,
    pub last_modified: UnixSeconds,
}

/// A container.
#[derive(Debug, Clone)]
pub(crate) struct ContainerRow {
    pub properties: ContainerProperties,
    pub etag: Etag,
    pub last_modified: UnixSeconds,
    pub settings: Settings,
    pub history: Vec<Stretch>,
    pub offer: Option<OfferRow>,
    pub pacing: PacingSettings,
    /// See [`ContainerState::keeps_all_versions`](crate::container::ContainerState::keeps_all_versions).
    pub keeps_all_versions: bool,
    pub layout_version: u64,
    pub next_range: u32,
    pub placements: Vec<Placement>,
}

pub(super) fn account_key() -> Key {
    Key::new(Space::Meta, Bytes::from_static(b"A"))
}

pub(super) fn database_key(rid: DatabaseRid) -> Key {
    prefixed(DATABASE, &rid.bytes())
}

pub(super) fn container_key(rid: ContainerRid) -> Key {
    prefixed(CONTAINER, &rid.bytes())
}

pub(super) fn user_key(rid: UserRid) -> Key {
    prefixed(USER, &rid.bytes())
}

pub(super) fn permission_key(rid: PermissionRid) -> Key {
    prefixed(PERMISSION, &rid.bytes())
}

pub(super) fn script_key(rid: ChildRid) -> Key {
    let kind = match rid.kind {
        ChildKind::Trigger => b'T',
        ChildKind::UserDefinedFunction => b'F',
        _ => b'P',
    };
    let mut rest = rid.container.bytes().to_vec();
    rest.push(kind);
    rest.extend(rid.number.to_be_bytes());
    prefixed(SCRIPT, &rest)
}

pub(super) fn encryption_key_key(rid: EncryptionKeyRid) -> Key {
    prefixed(ENCRYPTION_KEY, &rid.bytes())
}

pub(super) fn dropped_key(partition: PartitionId) -> Key {
    prefixed(DROPPED, &partition.0.to_be_bytes())
}

fn prefixed(prefix: u8, rest: &[u8]) -> Key {
    let mut bytes = BytesMut::with_capacity(1 + rest.len());
    bytes.put_u8(prefix);
    bytes.put_slice(rest);
    Key::new(Space::Meta, bytes.freeze())
}

impl AccountRow {
    pub fn encode(&self) -> Bytes {
        to_bytes(&json!({
            "nextDatabase": self.next_database,
            "nextOffer": self.next_offer,
            "nextPartition": self.next_partition,
            "mongoDocumentTtl": self.mongo_document_ttl,
        }))
    }

    pub fn decode(bytes: &[u8]) -> Result<AccountRow> {
        let row = Row::parse(bytes)?;
        Ok(AccountRow {
            next_database: row.number("nextDatabase")?,
            next_offer: row.number("nextOffer")?,
            next_partition: row.number("nextPartition")?,
            mongo_document_ttl: row.get("mongoDocumentTtl").and_then(Value::as_bool).unwrap_or(true),
        })
    }
}

impl DatabaseRow {
    pub fn encode(&self) -> Bytes {
        to_bytes(&json!({
            "id": self.id,
            "etag": etag_to_json(self.etag),
            "ts": self.last_modified.0,
            "nextContainer": self.next_container,
            "nextUser": self.next_user,
            "offer": self.offer.map(OfferRow::to_json),
        }))
    }

    pub fn decode(bytes: &[u8]) -> Result<DatabaseRow> {
        let row = Row::parse(bytes)?;
        Ok(DatabaseRow {
            id: row.text("id")?.to_owned(),
            etag: row.etag("etag")?,
            last_modified: UnixSeconds(row.number("ts")?),
            next_container: row.number("nextContainer")?,
            // Stores from before there were users have none.
            next_user: row.get("nextUser").map_or(Ok(1), number_from)?,
            offer: row.child("offer").map(|offer| OfferRow::from_row(&offer)).transpose()?,
        })
    }
}

impl EncryptionKeyRow {
    pub fn encode(&self) -> Bytes {
        to_bytes(&json!({
            "properties": self.properties.to_json(),
            "cts": self.created.0,
            "etag": etag_to_json(self.etag),
            "ts": self.last_modified.0,
        }))
    }

    pub fn decode(bytes: &[u8]) -> Result<EncryptionKeyRow> {
        let row = Row::parse(bytes)?;
        let properties = row.get("properties").ok_or_else(damaged)?;
        Ok(EncryptionKeyRow {
            properties: Arc::new(EncryptionKeyProperties::from_json(properties).map_err(|_| damaged())?),
            // Keys of earlier versions kept only when they were last written.
            created: UnixSeconds(row.number(if row.get("cts").is_some() { "cts" } else { "ts" })?),
            etag: row.etag("etag")?,
            last_modified: UnixSeconds(row.number("ts")?),
        })
    }
}

impl UserRow {
    pub fn encode(&self) -> Bytes {
        to_bytes(&json!({
            "id": self.id,
            "etag": etag_to_json(self.etag),
            "ts": self.last_modified.0,
            "nextPermission": self.next_permission,
        }))
    }

    pub fn decode(bytes: &[u8]) -> Result<UserRow> {
        let row = Row::parse(bytes)?;
        Ok(UserRow {
            id: row.text("id")?.to_owned(),
            etag: row.etag("etag")?,
            last_modified: UnixSeconds(row.number("ts")?),
            next_permission: row.number("nextPermission")?,
        })
    }
}

impl PermissionRow {
    pub fn encode(&self) -> Bytes {
        let PermissionProperties {
            id,
            mode: _,
            mode_text,
            resource,
            partition_key,
        } = &*self.grant;
        to_bytes(&json!({
            "id": id,
            "mode": mode_text,
            "resource": resource,
            "partitionKey": partition_key.as_ref().map(PartitionKey::to_header_json),
            "etag": etag_to_json(self.etag),
            "ts": self.last_modified.0,
        }))
    }

    pub fn decode(bytes: &[u8]) -> Result<PermissionRow> {
        let row = Row::parse(bytes)?;
        let key = |value: &Value| {
            let text = value.as_str().ok_or_else(damaged)?;
            PartitionKey::from_header(text).map_err(|_| damaged())
        };
        Ok(PermissionRow {
            grant: Arc::new(PermissionProperties {
                id: row.text("id")?.to_owned(),
                mode: PermissionMode::parse(row.text("mode")?).ok_or_else(damaged)?,
                mode_text: row.text("mode")?.to_owned(),
                resource: row.text("resource")?.to_owned(),
                partition_key: row.get("partitionKey").map(key).transpose()?,
            }),
            etag: row.etag("etag")?,
            last_modified: UnixSeconds(row.number("ts")?),
        })
    }
}

impl OfferRow {
    fn to_json(self) -> Value {
        json!({
            "number": self.number,
            "throughput": self.throughput.map(throughput_to_json),
            "type": self.kind.name(),
            "etag": etag_to_json(self.etag),
            "ts": self.last_modified.0,
        })
    }

    fn from_row(row: &Row) -> Result<OfferRow> {
        Ok(OfferRow {
            number: row.number("number")?,
            throughput: row
                .child("throughput")
                .map(|throughput| throughput_from_row(&throughput))
                .transpose()?,
            // Offers of earlier versions have none.
            kind: row
                .get("type")
                .map_or(Some(OfferType::default()), |kind| OfferType::parse(kind.as_str()?))
                .ok_or_else(damaged)?,
            etag: row.etag("etag")?,
            last_modified: UnixSeconds(row.number("ts")?),
        })
    }
}

impl ContainerRow {
    pub fn encode(&self) -> Bytes {
        let stretches = self
            .history
            .iter()
            .map(|stretch| json!([stretch.start.0, stretch.policy.to_number()]));
        let ranges = self.placements.iter().map(|placement| {
            json!({
                "id": placement.range,
                "partition": placement.id.0,
                "min": placement.epk.min.to_hex(),
                "max": placement.epk.max.to_hex(),
                "parents": placement.parents,
            })
        });
        to_bytes(&json!({
            "properties": Value::Object(self.properties.to_json()),
            "etag": etag_to_json(self.etag),
            "ts": self.last_modified.0,
            "floors": [self.settings.floors.inherited, self.settings.floors.own],
            "history": stretches.collect::<Vec<_>>(),
            "offer": self.offer.map(OfferRow::to_json),
            "pacing": pacing_to_json(&self.pacing),
            "keepsAllVersions": self.keeps_all_versions,
            "layoutVersion": self.layout_version,
            "nextRange": self.next_range,
            "ranges": ranges.collect::<Vec<_>>(),
        }))
    }

    pub fn decode(bytes: &[u8]) -> Result<ContainerRow> {
        let row = Row::parse(bytes)?;
        let properties = row.get("properties").ok_or_else(damaged)?;
        let properties = ContainerProperties::from_json(properties).map_err(|_| damaged())?;
        let floors = row.array("floors")?;
        let floor = |at: usize| floors.get(at).and_then(Value::as_i64).ok_or_else(damaged);
        let floors = Floors {
            inherited: floor(0)?,
            own: floor(1)?,
        };
        Ok(ContainerRow {
            settings: Settings {
                policy: properties.policy,
                floors,
            },
            properties,
            etag: row.etag("etag")?,
            last_modified: UnixSeconds(row.number("ts")?),
            history: row
                .array("history")?
                .iter()
                .map(stretch_from_json)
                .collect::<Result<_>>()?,
            offer: row.child("offer").map(|offer| OfferRow::from_row(&offer)).transpose()?,
            pacing: pacing_from_row(&row.child("pacing").ok_or_else(damaged)?)?,
            // Rows of older builds do not say it.
            keeps_all_versions: row.get("keepsAllVersions") == Some(&Value::Bool(true)),
            layout_version: row.number("layoutVersion")?,
            next_range: row.number("nextRange")?,
            placements: row
                .array("ranges")?
                .iter()
                .map(placement_from_json)
                .collect::<Result<_>>()?,
        })
    }
}

/// A script.
#[derive(Debug, Clone)]
pub(crate) struct ScriptRow {
    pub draft: ScriptDraft,
    pub etag: Etag,
    pub last_modified: UnixSeconds,
}

impl ScriptRow {
    /// The row of a script.
    pub fn of(script: &Script) -> ScriptRow {
        ScriptRow {
            draft: ScriptDraft {
                id: script.id.clone(),
                body: script.body.clone(),
                fires: script.fires.clone(),
            },
            etag: script.etag,
            last_modified: script.last_modified,
        }
    }

    /// The script of a row.
    pub fn into_script(self, rid: ChildRid, kind: ScriptKind) -> Script {
        Script {
            kind,
            rid,
            id: self.draft.id,
            body: self.draft.body,
            fires: self.draft.fires,
            etag: self.etag,
            last_modified: self.last_modified,
            conduct: Conduct::default(),
        }
    }

    pub fn encode(&self) -> Bytes {
        let fires = self.draft.fires.as_ref().map(TriggerFires::spelled);
        to_bytes(&json!({
            "id": self.draft.id,
            "body": &*self.draft.body,
            "fires": fires,
            "etag": etag_to_json(self.etag),
            "ts": self.last_modified.0,
        }))
    }

    pub fn decode(bytes: &[u8]) -> Result<ScriptRow> {
        let row = Row::parse(bytes)?;
        let fires = row.get("fires").map(|fires| {
            let text = |at: usize| fires.get(at).and_then(Value::as_str).ok_or_else(damaged);
            TriggerFires::parse(text(0)?, text(1)?).map_err(|_| damaged())
        });
        Ok(ScriptRow {
            draft: ScriptDraft {
                id: row.text("id")?.to_owned(),
                body: row.text("body")?.into(),
                fires: fires.transpose()?,
            },
            etag: row.etag("etag")?,
            last_modified: UnixSeconds(row.number("ts")?),
        })
    }
}

fn stretch_from_json(value: &Value) -> Result<Stretch> {
    let start = value.get(0).and_then(Value::as_i64).ok_or_else(damaged)?;
    let policy = Policy::from_number(value.get(1).and_then(Value::as_f64)).map_err(|_| damaged())?;
    Ok(Stretch {
        start: UnixSeconds(start),
        policy,
    })
}

fn placement_from_json(value: &Value) -> Result<Placement> {
    let row = Row(value.clone());
    let epk = |name| row.text(name).and_then(|hex| Epk::from_hex(hex).map_err(|_| damaged()));
    let parents = row.array("parents")?.iter().map(number_from).collect::<Result<_>>()?;
    Ok(Placement {
        id: PartitionId(row.number("partition")?),
        range: row.number("id")?,
        epk: EpkRange {
            min: epk("min")?,
            max: epk("max")?,
        },
        parents,
    })
}

fn throughput_to_json(throughput: Throughput) -> Value {
    match throughput {
        Throughput::Manual { ru } => json!({ "ru": ru }),
        Throughput::Autoscale {
            max_ru,
            increment_percent,
        } => json!({ "maxRu": max_ru, "increment": increment_percent }),
    }
}

fn throughput_from_row(row: &Row) -> Result<Throughput> {
    if row.get("ru").is_some() {
        return Ok(Throughput::Manual { ru: row.number("ru")? });
    }
    Ok(Throughput::Autoscale {
        max_ru: row.number("maxRu")?,
        increment_percent: row.get("increment").map(number_from).transpose()?,
    })
}

fn pacing_to_json(settings: &PacingSettings) -> Value {
    let (mode, ru) = match settings.pacing {
        Pacing::Provisioned { ru } => ("provisioned", Some(ru)),
        Pacing::Autoscale { max_ru } => ("autoscale", Some(max_ru)),
        Pacing::Serverless => ("serverless", None),
        Pacing::Unlimited => ("unlimited", None),
    };
    json!({ "mode": mode, "ru": ru, "deleteRu": settings.delete_ru, "countOnlyLoad": settings.count_only_load })
}

fn pacing_from_row(row: &Row) -> Result<PacingSettings> {
    let ru = || row.get("ru").and_then(Value::as_f64).ok_or_else(damaged);
    let pacing = match row.text("mode")? {
        "provisioned" => Pacing::Provisioned { ru: ru()? },
        "autoscale" => Pacing::Autoscale { max_ru: ru()? },
        "serverless" => Pacing::Serverless,
        "unlimited" => Pacing::Unlimited,
        _ => return Err(damaged()),
    };
    let count_only_load = row.get("countOnlyLoad").and_then(Value::as_bool).unwrap_or(false);
    Ok(PacingSettings {
        pacing,
        delete_ru: row.get("deleteRu").and_then(Value::as_f64),
        count_only_load,
    })
}

/// 128 bits do not fit a JSON number.
fn etag_to_json(etag: Etag) -> Value {
    Value::String(format!("{:032x}", etag.0))
}

fn to_bytes(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}

fn damaged() -> Error {
    Error::new(ErrorKind::Corrupt, "a row of the catalog is damaged")
}

fn number_from<T: TryFrom<i64>>(value: &Value) -> Result<T> {
    value
        .as_i64()
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(damaged)
}

/// A stored object, read with errors instead of panics.
struct Row(Value);

impl Row {
    fn parse(bytes: &[u8]) -> Result<Row> {
        serde_json::from_slice(bytes).map(Row).map_err(|_| damaged())
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn child(&self, name: &str) -> Option<Row> {
        self.get(name).cloned().map(Row)
    }

    fn number<T: TryFrom<i64>>(&self, name: &str) -> Result<T> {
        self.get(name).ok_or_else(damaged).and_then(number_from)
    }

    fn text(&self, name: &str) -> Result<&str> {
        self.get(name).and_then(Value::as_str).ok_or_else(damaged)
    }

    fn array(&self, name: &str) -> Result<&[Value]> {
        self.get(name)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .ok_or_else(damaged)
    }

    fn etag(&self, name: &str) -> Result<Etag> {
        u128::from_str_radix(self.text(name)?, 16)
            .map(Etag)
            .map_err(|_| damaged())
    }
}
