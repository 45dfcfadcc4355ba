//! Deletes all items of a partition key at once (cosmos-rest §5.6).

use std::sync::Arc;

use bolide_model::error::ItemOperation;
use bolide_model::partition_key::PartitionKey;
use bolide_model::{Error, ErrorKind, charge};

use super::logical_partition::LogicalPartition;
use super::prepare::epk_of_key;
use super::write::Written;
use crate::container::Container;
use crate::format::keys;
use crate::partition::tombstones::{HiddenItems, MAX, MAX_PER_KEY, PartitionKeyTombstone};
use crate::partition::write_batch::{Decision, Stop, WriteBatch};
use crate::response::ChargedResult;
use crate::runtime::{RequestContext, Runtime};

impl Runtime {
    /// See `Account::delete_all_of_key`.
    pub(crate) async fn delete_all_of_key(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        key: &PartitionKey,
    ) -> ChargedResult<()> {
        let guard = container.enter().await?;
        guard.state.check_is_not_collection(ItemOperation::Write)?;
        let epk = epk_of_key(&guard.state, key)?;
        self.write(ctx, container, &guard, epk, |items, batch| items.delete_all(batch))
            .await
    }
}

impl LogicalPartition {
    fn delete_all(&self, batch: &mut WriteBatch<'_>) -> Decision<Written<()>> {
        if batch.state.tombstones.len() >= MAX {
            return refuse(
                batch,
                format!(
                    "{MAX} partition keys wait for the removal of their items in this partition key range, and there may be no more. \
                     Retry later."
                ),
            );
        }
        let (epk, horizon) = (self.epk_bytes(), self.horizon(batch));
        if batch.state.tombstones.count_of(&epk) >= MAX_PER_KEY {
            return refuse(
                batch,
                format!(
                    "The partition key was deleted {MAX_PER_KEY} times, and the removal of its items is not finished. Retry later."
                ),
            );
        }
        let lsn = batch.next_lsn();
        batch.after.expect_expiry(i64::MIN);
        batch.state.tombstones.push(PartitionKeyTombstone {
            from: epk.clone(),
            epk,
            upto: lsn,
            horizon,
            hidden: HiddenItems::default(),
        });
        Ok(Written {
            value: (),
            lsn,
            charge: charge::write(0),
        })
    }
}

/// Refuses a deletion. Something is read for it, because another server may have removed the items meanwhile: a decision for which nothing was read is made
/// on what this server knows, which may be old.
fn refuse<T>(batch: &mut WriteBatch<'_>, why: String) -> Decision<T> {
    batch.entries(&[keys::state()])?;
    Err(Stop::Refused(Error::new(ErrorKind::Forbidden, why)))
}
