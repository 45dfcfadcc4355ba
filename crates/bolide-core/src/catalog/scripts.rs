//! Stored procedures, triggers and user-defined functions as resources of a container.

use std::collections::BTreeMap;
use std::sync::Arc;

use bolide_model::names::validate_resource_id;
use bolide_model::rid::{ChildKind, ChildRid, ContainerRid};
use bolide_model::{Error, ErrorKind, Result};

use super::budget::Definition;
use super::records::{ScriptRow, script_key};
use super::{Catalog, Moment, check_etag};
use crate::container::Container;
use crate::scripts::{Script, ScriptDraft, ScriptKind, ScriptName};

/// Most scripts of one kind in a container. The service's limits are lower and can be raised (cosmos-rest §3.6).
const SCRIPTS: usize = 500;
/// Most bytes of all scripts of a container together: they stay in memory.
const SCRIPT_BYTES: usize = 16 * 1024 * 1024;

/// The scripts of a container, in the order of their creation within each kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scripts {
    by_number: BTreeMap<(ScriptKind, u64), Arc<Script>>,
}

impl Scripts {
    /// The scripts of one kind.
    pub fn of(&self, kind: ScriptKind) -> impl Iterator<Item = &Arc<Script>> {
        self.by_number
            .range((kind, 0)..=(kind, u64::MAX))
            .map(|(_, script)| script)
    }

    /// The script with this id.
    pub fn by_id(&self, kind: ScriptKind, id: &str) -> Option<&Arc<Script>> {
        self.of(kind).find(|script| script.id == id)
    }

    /// The script of this name.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn get(&self, kind: ScriptKind, name: &ScriptName) -> Result<&Arc<Script>> {
        let found = match name {
            ScriptName::Id(id) => self.by_id(kind, id),
            ScriptName::Rid(number) => self.by_number.get(&(kind, *number)),
        };
        found.ok_or_else(|| {
            let name = match name {
                ScriptName::Id(id) => id.clone(),
                ScriptName::Rid(number) => number.to_string(),
            };
            Error::not_found(format!("Resource Not Found: there is no {} '{name}'.", kind.noun()))
        })
    }

    pub fn insert(&mut self, script: Arc<Script>) {
        self.by_number.insert((script.kind, script.rid.number), script);
    }

    fn remove(&mut self, script: &Script) {
        self.by_number.remove(&(script.kind, script.rid.number));
    }

    /// Checks that a script fits beside the others, in place of the one it replaces if it replaces one.
    fn check_room(&self, (kind, number): (ScriptKind, Option<u64>), bytes: usize) -> Result<()> {
        let others = self
            .by_number
            .iter()
            .filter(|((of_kind, of_number), _)| (*of_kind, Some(*of_number)) != (kind, number));
        let others: usize = others.map(|(_, script)| script.body.len()).sum();
        if others + bytes <= SCRIPT_BYTES {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::TooLarge,
            format!(
                "the scripts of a container take at most {SCRIPT_BYTES} bytes together. others={others} bytes={bytes}"
            ),
        ))
    }

    /// Every script of every kind.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Script>> {
        self.by_number.values()
    }
}

impl Catalog {
    /// Creates a script, or replaces the one of this id if `is_upsert`. Tells whether it was created.
    pub async fn create_script(
        &self,
        container: &Arc<Container>,
        kind: ScriptKind,
        draft: ScriptDraft,
        is_upsert: bool,
    ) -> Result<(Arc<Script>, bool)> {
        check(kind, &draft)?;
        let scripts = container.scripts();
        match scripts.by_id(kind, &draft.id) {
            Some(existing) if is_upsert => {
                let number = existing.rid.number;
                let script = self.commit_script(container, kind, Some(number), draft).await?;
                Ok((script, false))
            }
            Some(_) => Err(already_there(kind, &draft.id)),
            None if scripts.of(kind).count() >= SCRIPTS => Err(Error::new(
                ErrorKind::Forbidden,
                format!(
                    "a container has at most {SCRIPTS} resources of the kind {}",
                    kind.noun()
                ),
            )),
            None => Ok((self.commit_script(container, kind, None, draft).await?, true)),
        }
    }

    pub async fn replace_script(
        &self,
        container: &Arc<Container>,
        kind: ScriptKind,
        name: &ScriptName,
        draft: ScriptDraft,
        if_match: Option<&str>,
    ) -> Result<Arc<Script>> {
        check(kind, &draft)?;
        let scripts = container.scripts();
        let existing = scripts.get(kind, name)?;
        check_etag(existing.etag, if_match)?;
        if draft.id != existing.id && scripts.by_id(kind, &draft.id).is_some() {
            return Err(already_there(kind, &draft.id));
        }
        self.commit_script(container, kind, Some(existing.rid.number), draft)
            .await
    }

    pub async fn delete_script(
        &self,
        container: &Arc<Container>,
        kind: ScriptKind,
        name: &ScriptName,
        if_match: Option<&str>,
    ) -> Result<()> {
        let scripts = container.scripts();
        let existing = scripts.get(kind, name)?.clone();
        check_etag(existing.etag, if_match)?;
        let key = script_key(existing.rid);
        self.commit(move |round| {
            Moment::begin(round);
            round.delete(key.clone());
            Ok(())
        })
        .await?;
        container.change_scripts(|scripts| scripts.remove(&existing));
        Ok(())
    }

    /// Commits a script's row; a new one is numbered by its commit, so that no number comes twice.
    async fn commit_script(
        &self,
        container: &Arc<Container>,
        kind: ScriptKind,
        number: Option<u64>,
        draft: ScriptDraft,
    ) -> Result<Arc<Script>> {
        // No change of the catalog goes on beside this one.
        if container.state().is_deleted {
            return Err(Error::not_found("the container was deleted"));
        }
        container.scripts().check_room((kind, number), draft.body.len())?;
        let rid = container.rid();
        let script = self
            .commit(move |round| {
                let moment = Moment::begin(round);
                let row = ScriptRow {
                    draft: draft.clone(),
                    etag: moment.etag(),
                    last_modified: moment.now,
                };
                let script = row.into_script(
                    ChildRid::new(rid, child_kind(kind), number.unwrap_or(moment.lsn.0)),
                    kind,
                );
                round.define(script_key(script.rid), Definition::Script(&ScriptRow::of(&script)));
                Ok(Arc::new(script))
            })
            .await?;
        container.change_scripts(|scripts| scripts.insert(script.clone()));
        Ok(script)
    }
}

/// Script rows as they are read at the start: container by container.
pub(super) type ScriptRows = Vec<(ChildRid, ScriptRow)>;

/// Gives a container the scripts that were read for it.
pub(super) fn restore(container: &Container, rows: &ScriptRows) {
    let mine = rows.iter().filter(|(rid, _)| rid.container == container.rid());
    container.change_scripts(|scripts| {
        for (rid, row) in mine {
            if let Some(kind) = script_kind(rid.kind) {
                scripts.insert(Arc::new(row.clone().into_script(*rid, kind)));
            }
        }
    });
}

/// Reads the key of a script's row, without its prefix: `container rid ‖ script rid`'s second half.
pub(super) fn rid_of_key(bytes: &[u8]) -> Option<ChildRid> {
    let (container, rest) = bytes.split_first_chunk::<8>()?;
    let (kind, number) = rest.split_first()?;
    let kind = match kind {
        b'P' => ChildKind::StoredProcedure,
        b'T' => ChildKind::Trigger,
        b'F' => ChildKind::UserDefinedFunction,
        _ => return None,
    };
    Some(ChildRid::new(
        ContainerRid::from_bytes(*container)?,
        kind,
        u64::from_be_bytes(number.try_into().ok()?),
    ))
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
    Error::conflict(format!(
        "Resource with specified id, name, or unique index already exists: {} '{id}'.",
        kind.noun()
    ))
}
