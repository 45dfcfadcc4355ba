//! Deleting all items of a partition key at once (cosmos-rest §5.6).

use std::sync::Arc;

use bolide_model::partition_key::PartitionKey;
use bolide_model::{Error, ErrorKind, RequestUnits, charge};

use super::write::{Logical, Written, epk_of_key};
use crate::account::{Account, RequestContext};
use crate::answer::Answered;
use crate::container::Container;
use crate::partition::drops::{Dropped, MOST, MOST_OF_ONE};
use crate::partition::round::{Round, Step, Stop};

impl Account {
    /// Deletes all items of a partition key. They are gone for every request that begins after the answer, and are removed in the
    /// background, which survives restarts; the all-versions feed shows each as a delete when it is removed.
    ///
    /// # Errors
    /// - `PartitionKeyMismatch`: the key has too few or too many components.
    /// - `Forbidden`: too many keys wait for the removal of their items, or this one too often.
    pub async fn delete_all_of_key(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        key: &PartitionKey,
    ) -> Answered<()> {
        let visit = container.enter().await?;
        let epk = epk_of_key(&visit.state, key)?;
        let partition = visit.state.layout.partition_of(&epk)?.clone();
        let answer = self
            .write(ctx, container, &visit, epk, |items, round| items.drop_all(round))
            .await;
        partition.expect_due(i64::MIN);
        answer
    }
}

impl Logical {
    fn drop_all(&self, round: &mut Round<'_>) -> Step<Written<()>> {
        if round.state.drops.len() >= MOST {
            return Err(Stop::Refused(Error::new(
                ErrorKind::Forbidden,
                format!(
                    "{MOST} partition keys wait for the removal of their items in this partition key range, and there may be no more. \
                     Retry later."
                ),
            )));
        }
        let (epk, horizon) = (self.epk_bytes(), self.horizon(round));
        if round.state.drops.count_of(&epk) >= MOST_OF_ONE {
            return Err(Stop::Refused(Error::new(
                ErrorKind::Forbidden,
                format!(
                    "The partition key was deleted {MOST_OF_ONE} times, and the removal of its items is not finished. Retry later."
                ),
            )));
        }
        let lsn = round.next_lsn();
        round.state.drops.push(Dropped {
            from: epk.clone(),
            epk,
            upto: lsn,
            horizon,
        });
        Ok(Written {
            value: (),
            lsn,
            charge: charge::write(0),
            owed: RequestUnits::ZERO,
        })
    }
}
