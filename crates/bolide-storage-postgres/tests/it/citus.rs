//! Claims about a Citus cluster. They say nothing where the tests' databases are not on one (`BOLIDE_CITUS_WORKERS`).

use bolide_storage::{Engine as _, Head, Outcome, PartitionId, ReadRequest};
use bolide_storage_postgres::PostgresEngine;

use super::Store;
use super::claims::{START, batch, clock, put};

/// Partitions of homes that lie on different shards.
fn partitions() -> impl Iterator<Item = PartitionId> {
    (1..=8).map(PartitionId)
}

/// Commits once to each partition, after `base` commits.
async fn commit_to_all(engine: &PostgresEngine, base: u64) {
    for partition in partitions() {
        let written = batch(base, base + 1, vec![put("a", &base.to_string())]);
        let outcome = engine.commit(partition, written).await;
        assert!(matches!(outcome, Ok(Outcome::Done(_))), "{partition}: {outcome:?}");
    }
}

async fn open(store: &Store) -> PostgresEngine {
    let engine = store.open_with(clock()).await;
    for partition in partitions() {
        engine.create(partition, Head::first(START)).await.unwrap();
    }
    engine
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_of_a_home_are_sent_to_the_node_that_has_it() {
    let store = Store::new();
    if !store.database.is_on_citus() {
        return;
    }
    let engine = open(&store).await;
    let own = "select count(*) from pg_stat_activity
               where datname = current_database() and application_name = 'bolide' and query like '%bolide_kv%'";
    // Lines: the coordinator and two workers. Until both workers are reached.
    for base in 0.. {
        commit_to_all(&engine, base).await;
        let counts = store.database.run_on_all(own).unwrap();
        let on_workers: Vec<&str> = counts.lines().skip(1).collect();
        if on_workers.iter().all(|count| *count != "0") {
            return;
        }
    }
}

/// The old node sends statements on to the new one until it is asked for again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_go_on_while_shards_move_and_none_is_lost() {
    let store = Store::new();
    if !store.database.is_on_citus() {
        return;
    }
    let engine = open(&store).await;
    commit_to_all(&engine, 0).await;
    let moves = "select citus_move_shard_placement(shardid, nodename, nodeport, other.name, other.port, 'block_writes')
        from citus_shards, lateral (
            select n.nodename as name, n.nodeport as port from pg_dist_node n
            where n.noderole = 'primary' and n.groupid > 0 and (n.nodename, n.nodeport) <> (citus_shards.nodename, citus_shards.nodeport) limit 1
        ) other
        where shardid = get_shard_id_for_distribution_column('bolide_kv', {part})";
    for (moved, partition) in (1..).zip(partitions()) {
        let moving = moves.replace("{part}", &partition.home().0.to_string());
        store.database.run(&moving).unwrap();
        commit_to_all(&engine, moved).await;
    }
    for partition in partitions() {
        let read = ReadRequest::of_keys(vec![put("a", "").key]);
        let found = engine.read(partition, read).await.unwrap();
        assert_eq!(found.gets[0].as_deref(), Some("8".as_bytes()), "{partition}");
    }
}
