//! Patches of large items: made ahead of the decision, over the version that is stored then.
//!
//! A partition's worker decides for everybody who writes to the partition. Reading and writing a document of megabytes takes tens of
//! milliseconds, so it is done on a thread for queries, and the worker only looks whether the version is still the same.

use std::sync::Arc;

use bolide_model::document::Patch;
use bolide_model::epk::Epk;
use bolide_model::{Error, ErrorKind, Result};

use super::ItemTarget;
use super::condition::{DOCUMENT_BYTES, RETRY_AFTER, TIME};
use super::prepare::PreparedItem;
use super::read::find;
use crate::container::ContainerState;
use crate::content::StoredItem;
use crate::format::keys::LogPosition;
use crate::format::record::Record;
use crate::partition::write_batch::{Decision, Stop};
use crate::partition::{AsOf, Partition};
use crate::runtime::Runtime;

/// What a patch makes of one version of its item.
#[derive(Clone, Default)]
pub(crate) struct Ahead {
    made: Option<(LogPosition, Arc<PreparedItem>)>,
}

impl Ahead {
    /// What was made of a version; `None` if it is to be made where it is decided.
    ///
    /// # Errors
    /// `Unprepared` if it must be made first.
    pub fn of(&self, record: &Record) -> Decision<Option<Arc<PreparedItem>>> {
        match &self.made {
            Some((version, draft)) if *version == record.version() => Ok(Some(draft.clone())),
            _ if record.size() <= DOCUMENT_BYTES => Ok(None),
            _ => {
                let kind = ErrorKind::Throttled {
                    retry_after: RETRY_AFTER,
                };
                Err(Stop::Unprepared(Error::new(
                    kind,
                    "The item is large and changes faster than it can be patched; try again later.",
                )))
            }
        }
    }
}

impl Runtime {
    /// Makes what a patch makes of the version that is stored now, if it is too large to be patched in a worker.
    ///
    /// # Errors
    /// What applying the patch raises; `BadRequest` if it takes too long.
    pub(super) async fn patch_ahead(
        &self,
        state: &Arc<ContainerState>,
        partition: &Partition,
        (epk, target): (&Epk, &ItemTarget),
        patch: &Patch,
        ahead: &mut Ahead,
    ) -> Result<()> {
        let as_of = AsOf::Time {
            settings: &state.settings,
            now: partition.now().await?,
        };
        let (Some(record), _) = find(partition, epk, target, as_of).await? else {
            return Ok(());
        };
        if record.size() <= DOCUMENT_BYTES {
            return Ok(());
        }
        let (state, patch) = (state.clone(), patch.clone());
        let made = self.executor().run(TIME, move |_| async move {
            let draft = PreparedItem::patched(&record, &patch, &state)?;
            Ok((record.version(), Arc::new(draft)))
        });
        ahead.made = Some(made.await?);
        Ok(())
    }
}

impl PreparedItem {
    /// What a patch makes of a stored version.
    ///
    /// # Errors
    /// `BadRequest`: an operation cannot be applied, or what it makes cannot be stored.
    pub fn patched(record: &Record, patch: &Patch, state: &ContainerState) -> Result<PreparedItem> {
        let before = StoredItem::document(record)?;
        PreparedItem::new(before.patched(patch, &state.properties.partition_key)?, state)
    }
}
