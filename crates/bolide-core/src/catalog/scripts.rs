//! Stored procedures, triggers and user-defined functions as resources of a container.

use std::sync::Arc;

use bolide_model::error::ItemOperation;
use bolide_model::names::validate_resource_id;
use bolide_model::rid::{ChildKind, ChildRid, ContainerRid};
use bolide_model::{Error, Reason, Result};
use bolide_storage::Space;

use super::Catalog;
use super::batch::{CatalogBatch, check_etag};
use super::names::{self, Name};
use super::rows::{Row, RowKey, ScriptRow, Unknown};
use crate::container::{Container, Script, ScriptDraft, ScriptKind, ScriptName};
use crate::partition::write_batch::Decision;

/// Maximum number of scripts of one kind in a container. The service's limits are lower and can be raised (cosmos-rest §3.6).
const SCRIPTS: usize = 500;
/// Maximum size in bytes of all scripts of a container together, because they stay in memory.
const SCRIPT_BYTES: usize = 16 * 1024 * 1024;

impl Catalog {
    /// Creates a script, or replaces the one with this id if `is_upsert`. Returns whether it was created.
    pub async fn create_script(
        &self,
        container: &Container,
        kind: ScriptKind,
        draft: ScriptDraft,
        is_upsert: bool,
    ) -> Result<(Arc<Script>, bool)> {
        if kind != ScriptKind::UserDefinedFunction {
            container.state().check_is_not_collection(ItemOperation::Script)?;
        }
        check(kind, &draft)?;
        let rid = container.rid();
        let (script, is_new) = self
            .commit(move |batch| {
                batch.container(rid)?;
                match find(batch, rid, kind, &draft.id)? {
                    Some(existing) if is_upsert => Ok((write(batch, existing, kind, &draft)?, false)),
                    Some(_) => Err(already_there(kind, &draft.id).into()),
                    None => {
                        // Its number is that of its commit, so that no number is used twice.
                        let new = ChildRid::new(rid, child_kind(kind), batch.commit_point().lsn.0);
                        Ok((write(batch, new, kind, &draft)?, true))
                    }
                }
            })
            .await?;
        Ok((Arc::new(script), is_new))
    }

    pub async fn replace_script(
        &self,
        container: &Container,
        kind: ScriptKind,
        name: &ScriptName,
        draft: ScriptDraft,
        if_match: Option<&str>,
    ) -> Result<Arc<Script>> {
        check(kind, &draft)?;
        let (rid, name, if_match) = (container.rid(), name.clone(), if_match.map(str::to_owned));
        let script = self
            .commit(move |batch| {
                batch.container(rid)?;
                let (existing, row) = existing(batch, rid, kind, &name)?;
                check_etag(row.etag, if_match.as_deref())?;
                if draft.id != row.draft.id && find(batch, rid, kind, &draft.id)?.is_some() {
                    return Err(already_there(kind, &draft.id).into());
                }
                write(batch, existing, kind, &draft)
            })
            .await?;
        Ok(Arc::new(script))
    }

    pub async fn delete_script(
        &self,
        container: &Container,
        kind: ScriptKind,
        name: &ScriptName,
        if_match: Option<&str>,
    ) -> Result<()> {
        let (rid, name, if_match) = (container.rid(), name.clone(), if_match.map(str::to_owned));
        self.commit(move |batch| {
            let (existing, row) = existing(batch, rid, kind, &name)?;
            check_etag(row.etag, if_match.as_deref())?;
            batch.remove(RowKey::Script(existing))
        })
        .await
    }
}

/// Finds the script with this id.
fn find(
    batch: &mut CatalogBatch<'_, '_>,
    container: ContainerRid,
    kind: ScriptKind,
    id: &str,
) -> Decision<Option<ChildRid>> {
    let any = ChildRid::new(container, child_kind(kind), 0);
    Ok(match batch.named(Name::Script(any, id))? {
        Some(RowKey::Script(rid)) => Some(rid),
        _ => None,
    })
}

/// Returns the script with this name, and its row.
fn existing(
    batch: &mut CatalogBatch<'_, '_>,
    container: ContainerRid,
    kind: ScriptKind,
    name: &ScriptName,
) -> Decision<(ChildRid, ScriptRow)> {
    let rid = match name {
        ScriptName::Id(id) => find(batch, container, kind, id)?,
        ScriptName::Rid(number) => Some(ChildRid::new(container, child_kind(kind), *number)),
    };
    let rid = rid.ok_or_else(|| kind.not_found(name))?;
    match batch.row(RowKey::Script(rid))? {
        Some(Row::Script(row)) => Ok((rid, row)),
        _ => Err(kind.not_found(name).into()),
    }
}

/// Writes a new script, or replaces one.
fn write(batch: &mut CatalogBatch<'_, '_>, rid: ChildRid, kind: ScriptKind, draft: &ScriptDraft) -> Decision<Script> {
    let key = RowKey::Script(rid);
    let before = batch.row(key)?;
    check_room(batch, rid, kind, draft.body.len())?;
    let commit_point = batch.commit_point();
    let unknown = match before {
        Some(Row::Script(before)) => before.unknown,
        _ => Unknown::default(),
    };
    let row = ScriptRow {
        draft: draft.clone(),
        etag: commit_point.etag(),
        last_modified: commit_point.now,
        unknown,
    };
    batch.replace(key, row.clone())?;
    Ok(row.into_script(rid, kind))
}

/// Checks that a script fits beside the other scripts of its container. A script that it replaces is not counted.
fn check_room(batch: &mut CatalogBatch<'_, '_>, rid: ChildRid, kind: ScriptKind, bytes: usize) -> Decision<()> {
    let (mut of_kind, mut others) = (0, 0_usize);
    for (name, value) in batch.scan(Space::Index, &names::scripts_of(rid.container))? {
        match names::target(&name, &value)? {
            RowKey::Script(other) if other != rid => {
                of_kind += usize::from(other.kind == rid.kind);
                others = others.saturating_add(names::source_bytes(&value));
            }
            _ => {}
        }
    }
    if of_kind >= SCRIPTS {
        let reason = Reason::TooManyScripts {
            resource: kind.resource(),
            limit: SCRIPTS,
        };
        return Err(reason.into());
    }
    if others.saturating_add(bytes) <= SCRIPT_BYTES {
        return Ok(());
    }
    let reason = Reason::ScriptsTooLarge {
        others,
        bytes,
        limit: SCRIPT_BYTES,
    };
    Err(reason.into())
}

/// Adds a script to its open container, or replaces it there. A script that has not changed keeps what was recorded about its runs.
pub(super) fn show(container: &Container, rid: ChildRid, row: &ScriptRow) {
    let Some(kind) = script_kind(rid.kind) else { return };
    let known = container.scripts();
    let known = known.by_number(kind, rid.number);
    if known.is_none_or(|known| known.etag != row.etag) {
        let script = Arc::new(row.clone().into_script(rid, kind));
        container.change_scripts(|scripts| scripts.insert(script));
    }
}

/// Removes a deleted script from its open container.
pub(super) fn hide(container: &Container, rid: ChildRid) {
    if let Some(kind) = script_kind(rid.kind) {
        container.change_scripts(|scripts| scripts.remove(kind, rid.number));
    }
}

fn child_kind(kind: ScriptKind) -> ChildKind {
    match kind {
        ScriptKind::StoredProcedure => ChildKind::StoredProcedure,
        ScriptKind::Trigger => ChildKind::Trigger,
        ScriptKind::UserDefinedFunction => ChildKind::UserDefinedFunction,
    }
}

fn script_kind(kind: ChildKind) -> Option<ScriptKind> {
    match kind {
        ChildKind::StoredProcedure => Some(ScriptKind::StoredProcedure),
        ChildKind::Trigger => Some(ScriptKind::Trigger),
        ChildKind::UserDefinedFunction => Some(ScriptKind::UserDefinedFunction),
        ChildKind::Conflict | ChildKind::PartitionKeyRange => None,
    }
}

fn check(kind: ScriptKind, draft: &ScriptDraft) -> Result<()> {
    validate_resource_id(&draft.id)?;
    debug_assert_eq!(draft.fires.is_some(), kind == ScriptKind::Trigger, "only triggers fire");
    Ok(())
}

fn already_there(kind: ScriptKind, id: &str) -> Error {
    Error::name_taken(kind.resource(), id)
}
