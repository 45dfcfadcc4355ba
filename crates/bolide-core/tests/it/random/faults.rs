//! Faults of the engine: what an error leaves undecided, and how the outcome is found out.
//!
//! `Unavailable` and `StorageFull` guarantee that nothing happened. After `Timeout` a write has happened or not, and may still happen until
//! another commit in its partition.

use bolide_core::{ItemRead, ItemTarget, ReadItem};
use bolide_model::{Error, ErrorKind};

use super::runner::{Runner, Stepped, Stop};
use crate::model::{Plan, Write};
use crate::test_container::key;

/// Returns whether an error is about the engine, not about the request.
pub fn is_fault(error: &Error) -> bool {
    matches!(
        error.kind,
        ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::StorageFull
    )
}

impl Runner {
    /// Finds out whether a write that ended in an engine error happened, and if so applies it to the model.
    pub(super) async fn settle_write(
        &mut self,
        write: &Write,
        plan: Result<Plan, Vec<ErrorKind>>,
        error: &Error,
    ) -> Stepped {
        if error.kind != ErrorKind::Timeout {
            return Err(Stop::Fault);
        }
        let plan = match plan {
            Ok(plan) => plan,
            // Its commit was sent to find out whether the item, or one with its unique key, is there, and can change nothing because it is.
            Err(kinds)
                if matches!(write, Write::Create(_) | Write::Upsert(..))
                    && (kinds.contains(&ErrorKind::Conflict) || kinds.contains(&ErrorKind::UniqueKeyConflict)) =>
            {
                return Err(Stop::Fault);
            }
            Err(kinds) => return Err(format!("{write:?}: got {error:?}, want one of {kinds:?}").into()),
        };
        self.be_calm(true);
        let (pk, id) = write.name();
        let fence = Write::Create(self.fence_doc(pk));
        let end_of_fence = Write::Delete(pk, "fence", None);
        let ctx = self.begin().await?;
        let fenced = self.send(&ctx, fence.clone()).await;
        let fenced = fenced.map_err(|refusal| format!("fence: {refusal:?}"))?.value;
        let unfenced = self.send(&ctx, end_of_fence.clone()).await;
        unfenced.map_err(|refusal| format!("end of fence: {refusal:?}"))?;

        let read = ReadItem {
            target: ItemTarget::Id(id.into()),
            partition_key: key(pk),
            if_none_match: None,
        };
        let before = self.model.live(pk, id).map(|version| version.etag.clone());
        match self
            .account()
            .read_item(&ctx, self.container(), &read)
            .await
            .map(|answer| answer.value)
        {
            Ok(ItemRead::Found(item)) if Some(item.etag().to_string()) != before => self.stored(write, plan, &item)?,
            Ok(_) => {}
            Err(_) if plan.version.is_none() => self.model.carry_out(plan, "", ""),
            Err(_) => {}
        }
        for (write, written) in [(fence, fenced), (end_of_fence, None)] {
            let plan = self.model.plan(&write).map_err(|kinds| format!("fence: {kinds:?}"))?;
            self.written(&write, plan, written.as_ref())?;
        }
        self.be_calm(false);
        Err(Stop::Fault)
    }
}
