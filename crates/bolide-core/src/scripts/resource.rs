//! Scripts as resources.

use std::sync::Arc;

use bolide_model::rid::ChildRid;
use bolide_model::{Result, UnixSeconds};

use super::Conduct;
use crate::account::{Account, RequestContext};
use crate::catalog::Catalog;
use crate::container::Container;
use crate::format::etag::Etag;

/// What kind of script.
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
    /// What people call it.
    pub fn noun(self) -> &'static str {
        match self {
            ScriptKind::StoredProcedure => "stored procedure",
            ScriptKind::Trigger => "trigger",
            ScriptKind::UserDefinedFunction => "user-defined function",
        }
    }
}

/// When a trigger may run, relative to the write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerTime {
    /// Before: it may change what is written.
    Pre,
    /// After, in the same transaction.
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

/// Which writes a trigger may be named in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerOperation {
    /// Any.
    All,
    /// A create.
    Create,
    /// A replace or a patch, in the service's older word.
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

/// When a trigger runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerFires {
    /// Before or after the write.
    pub time: TriggerTime,
    /// Which writes.
    pub operation: TriggerOperation,
    /// Time and operation as the client spelled them: clients compare what comes back.
    spelled: [Arc<str>; 2],
}

impl TriggerFires {
    /// Reads both as a client spells them, in any case. `Err` has the one that is unknown: 0 the time, 1 the operation.
    ///
    /// # Errors
    /// See above.
    pub fn parse(time: &str, operation: &str) -> Result<TriggerFires, usize> {
        let spelled = [time.into(), operation.into()];
        Ok(TriggerFires {
            time: TriggerTime::parse(time).ok_or(0_usize)?,
            operation: TriggerOperation::parse(operation).ok_or(1_usize)?,
            spelled,
        })
    }

    /// Time and operation, as the client spelled them.
    pub fn spelled(&self) -> [&str; 2] {
        let [time, operation] = &self.spelled;
        [time, operation]
    }
}

/// A script as a client sends it. The source is compiled when it first runs, as the service does.
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
    /// What it is.
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
    /// Whether its runs keep to their limits.
    pub(crate) conduct: Conduct,
}

/// Names a script within its container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptName {
    /// By its id.
    Id(String),
    /// By the number in its resource id.
    Rid(u64),
}

/// Scripts as resources.
impl Account {
    /// Creates a script; with `is_upsert`, or replaces the one of its id. Tells whether it was created.
    ///
    /// # Errors
    /// `Conflict` if there is one of this id; `BadRequest` for a bad id; `Forbidden` if there are too many.
    pub async fn create_script(
        &self,
        _ctx: &RequestContext,
        container: &Arc<Container>,
        kind: ScriptKind,
        draft: ScriptDraft,
        is_upsert: bool,
    ) -> Result<(Arc<Script>, bool)> {
        let container = container.clone();
        let create =
            |catalog: Arc<Catalog>| async move { catalog.create_script(&container, kind, draft, is_upsert).await };
        self.catalog().carry_out(create).await
    }

    /// The scripts of a kind, in the order of their creation.
    pub fn list_scripts(&self, container: &Container, kind: ScriptKind) -> Vec<Arc<Script>> {
        container.scripts().of(kind).cloned().collect()
    }

    /// The script of this name.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn script(&self, container: &Container, kind: ScriptKind, name: &ScriptName) -> Result<Arc<Script>> {
        container.scripts().get(kind, name).cloned()
    }

    /// Replaces a script; another id renames it.
    ///
    /// # Errors
    /// `NotFound`; `PreconditionFailed` if it is another version; `Conflict` if another has the new id; `BadRequest` for a bad id.
    pub async fn replace_script(
        &self,
        _ctx: &RequestContext,
        container: &Arc<Container>,
        kind: ScriptKind,
        name: &ScriptName,
        draft: ScriptDraft,
        if_match: Option<&str>,
    ) -> Result<Arc<Script>> {
        let (container, name, if_match) = (container.clone(), name.clone(), if_match.map(str::to_owned));
        let replace = |catalog: Arc<Catalog>| async move {
            let if_match = if_match.as_deref();
            catalog.replace_script(&container, kind, &name, draft, if_match).await
        };
        self.catalog().carry_out(replace).await
    }

    /// Deletes a script.
    ///
    /// # Errors
    /// `NotFound`; `PreconditionFailed` if it is another version.
    pub async fn delete_script(
        &self,
        _ctx: &RequestContext,
        container: &Arc<Container>,
        kind: ScriptKind,
        name: &ScriptName,
        if_match: Option<&str>,
    ) -> Result<()> {
        let (container, name, if_match) = (container.clone(), name.clone(), if_match.map(str::to_owned));
        let delete = |catalog: Arc<Catalog>| async move {
            catalog
                .delete_script(&container, kind, &name, if_match.as_deref())
                .await
        };
        self.catalog().carry_out(delete).await
    }
}
