//! Patches: decided like other writes. Steps that take too long for a worker are done before.

use std::sync::Arc;

use bolide_model::Error;
use bolide_model::epk::Epk;
use bolide_model::error::ItemOperation;

use super::ahead::Ahead;
use super::condition::{self, Judged};
use super::prepare::epk_of_key;
use super::write::Written;
use super::{ItemWritten, PatchItem};
use crate::container::{Container, ReadGuard};
use crate::partition::write_batch::Stop;
use crate::response::{ChargedResult, Refusal, Response};
use crate::runtime::{RequestContext, Runtime};

impl Runtime {
    /// See `Account::patch_item`.
    pub(crate) async fn patch_item(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        patch: PatchItem,
    ) -> ChargedResult<ItemWritten> {
        let guard = match &patch.patch.condition {
            Some(_) => container.enter_uninterruptible().await?,
            None => container.enter().await?,
        };
        guard.state.check_is_not_collection(ItemOperation::Write)?;
        let epk = epk_of_key(&guard.state, &patch.partition_key)?;
        let mut judged = match patch.patch.condition.as_deref() {
            Some(text) => Some(Judged::one_of(1, self.compile_condition(text).await?)),
            None => None,
        };
        let (patch, mut ahead) = (Arc::new(patch), Ahead::default());
        for _ in condition::tries() {
            let prepared = (judged.clone(), ahead.clone());
            let done = self
                .patch_once(ctx, container, &guard, epk.clone(), patch.clone(), prepared)
                .await?;
            let Patched::Unprepared { .. } = done.value else {
                return done.or_unprepared();
            };
            let partition = guard.state.layout.partition_of(&epk)?;
            if let Some(judged) = &mut judged {
                self.judge(&guard.state, container.rid(), partition, (&epk, &patch.target), judged)
                    .await?;
            }
            let place = (&epk, &patch.target);
            self.patch_ahead(&guard.state, partition, place, &patch.patch, &mut ahead)
                .await?;
        }
        let done = self
            .patch_once(ctx, container, &guard, epk, patch, (judged, ahead))
            .await?;
        done.or_unprepared()
    }

    async fn patch_once(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        guard: &ReadGuard<'_>,
        epk: Epk,
        patch: Arc<PatchItem>,
        (condition, ahead): (Option<Judged>, Ahead),
    ) -> ChargedResult<Patched> {
        self.write(ctx, container, guard, epk, move |item, batch| {
            let PatchItem {
                target,
                patch,
                if_match,
                ..
            } = &*patch;
            let prepared = (condition.as_ref(), Some(&ahead));
            match item.patch(batch, target, patch, prepared, if_match.as_deref()) {
                Err(Stop::Unprepared(error)) => Ok(Written::nothing(batch, Patched::Unprepared { error })),
                decided => Ok(decided?.map(Patched::Written)),
            }
        })
        .await
    }
}

/// The result of deciding a patch.
enum Patched {
    Written(ItemWritten),
    /// Its condition must be evaluated, or the patch applied, before the decision.
    Unprepared {
        error: Error,
    },
}

impl Response<Patched> {
    fn or_unprepared(self) -> ChargedResult<ItemWritten> {
        let Response { value, cost } = self;
        match value {
            Patched::Written(value) => Ok(Response { value, cost }),
            Patched::Unprepared { error } => Err(Refusal { error, cost }),
        }
    }
}
