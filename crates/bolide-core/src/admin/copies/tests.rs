use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bolide_model::time::{Clock, Monotonic};
use bolide_model::{Reason, Result, UnixMillis};
use bolide_storage::PartitionId;
use bolide_storage::memory::MemoryEngine;

use super::{CopiedStore, Copies, of};
use crate::catalog::Catalog;

async fn store() -> (Arc<Catalog>, Arc<Copies>) {
    let clock = Arc::new(Clock::virtual_at(UnixMillis(100_000)));
    let engine = Arc::new(MemoryEngine::new(clock));
    let catalog = Catalog::open(engine, usize::MAX, true).await.expect("a catalog");
    (Arc::new(catalog), Arc::new(Copies::new(Monotonic::system())))
}

async fn has_moved(store: &CopiedStore<'_>) -> Result<bool> {
    Ok(store.info().await?.is_some_and(|seal| seal.until.is_none()))
}

#[tokio::test]
async fn renewals_of_the_seal_are_no_changes() -> Result<()> {
    let (catalog, copies) = store().await;
    let store = of(&catalog, &copies);
    let id = store.begin().await?.id;
    store.partitions(id).await?;
    catalog.create_database("d", None).await?;
    store.seal(id).await?;
    let changed = store.changes(id, PartitionId::CATALOG).await?;
    assert!(!changed.rows.is_empty() && !changed.is_lost);
    store.renew(id).await?;
    let changed = store.changes(id, PartitionId::CATALOG).await?;
    assert!(changed.rows.is_empty() && !changed.is_lost);
    Ok(())
}

#[tokio::test]
async fn the_end_of_a_copy_goes_on_without_its_request() -> Result<()> {
    let (catalog, copies) = store().await;
    let store = of(&catalog, &copies);
    let id = store.begin().await?.id;
    store.seal(id).await?;
    {
        let mut finish = pin!(store.finish(id, false));
        let is_ready = poll_fn(|context| Poll::Ready(finish.as_mut().poll(context).is_ready())).await;
        assert!(!is_ready);
    }
    // Waits for it, and then there is nothing to end.
    assert!(store.end(id).await.is_err());
    assert!(has_moved(&store).await?);
    Ok(())
}

#[tokio::test]
async fn a_copy_that_begins_does_not_take_away_a_seal_that_is_made_permanent() -> Result<()> {
    let (catalog, copies) = store().await;
    let store = of(&catalog, &copies);
    let id = store.begin().await?.id;
    store.seal(id).await?;
    let (finished, begun) = tokio::join!(store.finish(id, false), store.begin());
    assert_eq!(finished?.len(), 1);
    let refused = begun.expect_err("the store has moved");
    assert_eq!(refused.reason(), Some(&Reason::StoreMoved));
    assert!(has_moved(&store).await?);
    store.unseal().await?;
    store.begin().await?;
    Ok(())
}
