//! Patches of large items: applied before the decision, to the version that is stored then.
//!
//! A partition's worker decides all writes of the partition. Parsing and writing a document of several megabytes takes tens of milliseconds, so this
//! is done on a query thread, and the worker only checks that the version is still the same.

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

/// The result of a patch for one version of its item.
#[derive(Clone, Default)]
pub(crate) struct Ahead {
    made: Option<(LogPosition, Arc<PreparedItem>)>,
}

impl Ahead {
    /// Returns the result for a version; `None` if the patch is to be applied during the decision.
    ///
    /// # Errors
    /// `Unprepared` if the patch must be applied before the decision.
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
    /// Applies a patch to the version that is stored now, if that is too large to be patched in a worker.
    ///
    /// # Errors
    /// The errors of applying the patch; `BadRequest` if it takes too long.
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
    /// Returns the result of a patch for a stored version.
    ///
    /// # Errors
    /// `BadRequest` if an operation cannot be applied, or if its result cannot be stored.
    pub fn patched(record: &Record, patch: &Patch, state: &ContainerState) -> Result<PreparedItem> {
        let before = StoredItem::document(record)?;
        PreparedItem::new(before.patched(patch, &state.properties.partition_key)?, state)
    }
}
