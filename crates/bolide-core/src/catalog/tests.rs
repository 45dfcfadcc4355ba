use std::collections::BTreeSet;
use std::sync::Arc;

use bolide_model::UnixMillis;
use bolide_model::container::ContainerProperties;
use bolide_model::time::Clock;
use bolide_storage::memory::MemoryEngine;
use serde_json::json;

use super::Catalog;
use crate::throughput::OfferType;

/// The queue of [`Catalog::carry_out`] keeps the changes of one process in order; changes that are decided from rows are correct without it.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn changes_that_do_not_queue_lose_nothing_and_take_no_number_twice() {
    let clock = Arc::new(Clock::virtual_at(UnixMillis(100_000)));
    let engine = Arc::new(MemoryEngine::new(clock));
    let catalog = Arc::new(
        Catalog::open(engine.clone(), usize::MAX, true)
            .await
            .expect("a catalog"),
    );
    let shared = catalog.create_database("shared", None).await.expect("a database").rid;
    let changes = (0..24).map(|n| {
        let catalog = catalog.clone();
        tokio::spawn(async move {
            let definition = json!({"id": format!("c{n}"), "partitionKey": {"paths": ["/pk"], "kind": "Hash"}});
            let properties = ContainerProperties::from_json(&definition).expect("a definition");
            let offer = (None, OfferType::default());
            catalog
                .create_container(shared, properties, offer)
                .await
                .expect("a container");
            catalog
                .create_database(&format!("d{n}"), None)
                .await
                .expect("a database");
            catalog.create_user(shared, format!("u{n}")).await.expect("a user");
            catalog.take_partition_ids(2).await.expect("ids")
        })
    });
    let mut taken = BTreeSet::new();
    for change in changes.collect::<Vec<_>>() {
        let first = change.await.expect("no panic");
        assert!(taken.insert(first) && taken.insert(first + 1));
    }
    let anew = Catalog::open(engine, usize::MAX, true).await.expect("a catalog");
    for catalog in [&*catalog, &anew] {
        assert_eq!(catalog.list_databases().len(), 25);
        assert_eq!(catalog.list_users(shared).expect("users").len(), 24);
        let containers = catalog.list_containers(shared).expect("containers");
        assert_eq!(containers.len(), 24);
        let layouts = containers.iter().map(|container| container.state().layout.clone());
        let partitions = layouts
            .flat_map(|layout| layout.placements())
            .map(|placement| placement.id.0);
        let partitions: BTreeSet<u64> = partitions.collect();
        assert_eq!(partitions.len(), 24);
        assert!(partitions.is_disjoint(&taken));
        let offers: BTreeSet<_> = catalog.list_offers().into_iter().map(|offer| offer.rid).collect();
        assert_eq!(offers.len(), 24);
    }
    assert_eq!(catalog.definitions(), anew.definitions());
}
