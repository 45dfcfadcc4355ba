//! Definitions of a container's stored procedures, triggers and user-defined functions.

use std::collections::BTreeMap;
use std::sync::Arc;

use bolide_model::error::Resource;
use bolide_model::rid::ChildRid;
use bolide_model::{Error, Result, UnixSeconds};

use super::ScriptQuarantine;
use crate::format::etag::Etag;

/// The kind of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScriptKind {
    /// Executed by name, in one transaction.
    StoredProcedure,
    /// Runs before or after a write that names it.
    Trigger,
    /// Called by queries.
    UserDefinedFunction,
}

impl ScriptKind {
    /// Returns the kind of resource that errors name.
    pub(crate) fn resource(self) -> Resource {
        match self {
            ScriptKind::StoredProcedure => Resource::StoredProcedure,
            ScriptKind::Trigger => Resource::Trigger,
            ScriptKind::UserDefinedFunction => Resource::UserDefinedFunction,
        }
    }

    /// Returns the error for a name that no script of the kind has.
    pub(crate) fn not_found(self, name: &ScriptName) -> Error {
        match name {
            ScriptName::Id(id) => Error::missing(self.resource(), id),
            ScriptName::Rid(number) => Error::missing(self.resource(), number),
        }
    }
}

/// When a trigger runs, relative to the write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerTime {
    /// Before the write, which it may change.
    Pre,
    /// After the write, in the same transaction.
    Post,
}

impl TriggerTime {
    fn parse(name: &str) -> Option<TriggerTime> {
        match name {
            name if name.eq_ignore_ascii_case("Pre") => Some(TriggerTime::Pre),
            name if name.eq_ignore_ascii_case("Post") => Some(TriggerTime::Post),
            _ => None,
        }
    }
}

/// The writes that may name a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerOperation {
    /// Any write.
    All,
    /// A create.
    Create,
    /// A replace or a patch; the service's older name for `Replace`.
    Update,
    /// A delete.
    Delete,
    /// A replace or a patch.
    Replace,
    /// An upsert.
    Upsert,
}

impl TriggerOperation {
    const ALL: [TriggerOperation; 6] = [
        TriggerOperation::All,
        TriggerOperation::Create,
        TriggerOperation::Update,
        TriggerOperation::Delete,
        TriggerOperation::Replace,
        TriggerOperation::Upsert,
    ];

    fn name(self) -> &'static str {
        match self {
            TriggerOperation::All => "All",
            TriggerOperation::Create => "Create",
            TriggerOperation::Update => "Update",
            TriggerOperation::Delete => "Delete",
            TriggerOperation::Replace => "Replace",
            TriggerOperation::Upsert => "Upsert",
        }
    }

    fn parse(name: &str) -> Option<TriggerOperation> {
        TriggerOperation::ALL
            .into_iter()
            .find(|operation| operation.name().eq_ignore_ascii_case(name))
    }
}

/// When a trigger runs, and for which writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerFires {
    /// Before or after the write.
    pub time: TriggerTime,
    /// The writes that may name it.
    pub operation: TriggerOperation,
    /// Time and operation as the client spelled them, because clients compare the returned spelling.
    spelled: [Arc<str>; 2],
}

impl TriggerFires {
    /// Parses both, without regard to case.
    ///
    /// # Errors
    /// The index of the one that is unknown: 0 the time, 1 the operation.
    pub fn parse(time: &str, operation: &str) -> std::result::Result<TriggerFires, usize> {
        let spelled = [time.into(), operation.into()];
        Ok(TriggerFires {
            time: TriggerTime::parse(time).ok_or(0_usize)?,
            operation: TriggerOperation::parse(operation).ok_or(1_usize)?,
            spelled,
        })
    }

    /// Returns time and operation, as the client spelled them.
    pub fn spelled(&self) -> [&str; 2] {
        let [time, operation] = &self.spelled;
        [time, operation]
    }
}

/// A script as a client sends it. The source is compiled when the script first runs, as in the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptDraft {
    /// Its name.
    pub id: String,
    /// The source.
    pub body: Arc<str>,
    /// Set for triggers only.
    pub fires: Option<TriggerFires>,
}

/// A stored script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Its kind.
    pub kind: ScriptKind,
    /// Its resource id.
    pub rid: ChildRid,
    /// Its name.
    pub id: String,
    /// The source.
    pub body: Arc<str>,
    /// Set for triggers only.
    pub fires: Option<TriggerFires>,
    /// Its version.
    pub etag: Etag,
    /// When it was last written.
    pub last_modified: UnixSeconds,
    /// Offences of its runs against their limits.
    pub(crate) quarantine: ScriptQuarantine,
}

/// Names a script within its container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptName {
    /// By its id.
    Id(String),
    /// By the number in its resource id.
    Rid(u64),
}

/// The scripts of a container, in the order of their creation within each kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scripts {
    by_number: BTreeMap<(ScriptKind, u64), Arc<Script>>,
}

impl Scripts {
    /// Returns the scripts of one kind.
    pub fn of(&self, kind: ScriptKind) -> impl Iterator<Item = &Arc<Script>> {
        self.by_number
            .range((kind, 0)..=(kind, u64::MAX))
            .map(|(_, script)| script)
    }

    /// Returns the script with this id.
    pub fn by_id(&self, kind: ScriptKind, id: &str) -> Option<&Arc<Script>> {
        self.of(kind).find(|script| script.id == id)
    }

    /// Returns the script with this name.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn get(&self, kind: ScriptKind, name: &ScriptName) -> Result<&Arc<Script>> {
        let found = match name {
            ScriptName::Id(id) => self.by_id(kind, id),
            ScriptName::Rid(number) => self.by_number(kind, *number),
        };
        found.ok_or_else(|| kind.not_found(name))
    }

    /// Returns the script with this number.
    pub fn by_number(&self, kind: ScriptKind, number: u64) -> Option<&Arc<Script>> {
        self.by_number.get(&(kind, number))
    }

    pub fn insert(&mut self, script: Arc<Script>) {
        self.by_number.insert((script.kind, script.rid.number), script);
    }

    pub fn remove(&mut self, kind: ScriptKind, number: u64) {
        self.by_number.remove(&(kind, number));
    }
}
