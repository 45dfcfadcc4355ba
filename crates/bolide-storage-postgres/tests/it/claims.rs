//! Claims about this engine alone: what it refuses to open, and what becomes of commits while others write, connections break and rows are locked.

use std::sync::Arc;
use std::time::Duration;

use bolide_model::time::Clock;
use bolide_model::{Lsn, UnixMillis};
use bolide_storage::{
    Batch, CommitToken, Edition, Engine, EngineError, Head, HoldError, Key, Outcome, PartitionId, Put, ReadRequest,
    Resolved, Scan, Space,
};
use bolide_storage_postgres::{Init, OpenError, PostgresEngine, PostgresOptions, init};
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::poll;
use tokio_postgres::{Client, NoTls};

use super::Store;
use super::relay::Relay;

pub(super) const PARTITION: PartitionId = PartitionId(7);
pub(super) const START: UnixMillis = UnixMillis(1_700_000_000_000);

pub(super) fn clock() -> Arc<Clock> {
    Arc::new(Clock::virtual_at(START))
}

/// Two engines over one store, as two servers have them; the partition is there.
pub(super) async fn two(store: &Store) -> [PostgresEngine; 2] {
    let engines = [store.open_with(clock()).await, store.open_with(clock()).await];
    engines[0].create(PARTITION, Head::first(START)).await.unwrap();
    engines
}

pub(super) fn put(key: &str, value: &str) -> Put {
    Put {
        key: Key::new(Space::Item, key.as_bytes().to_vec()),
        value: Bytes::copy_from_slice(value.as_bytes()),
    }
}

pub(super) fn batch(base: u64, next: u64, puts: Vec<Put>) -> Batch {
    Batch {
        base: Lsn(base),
        next: Lsn(next),
        stamp: START,
        edition: Edition(0),
        token: CommitToken(u128::from(next) << 64 | u128::from(base) << 32 | puts.len() as u128),
        puts,
        deletes: vec![],
        new_keys: Vec::new(),
        may_block: false,
    }
}

/// The same, with entries that must not be there, which have a statement of their own.
fn of_new(batch: Batch) -> Batch {
    let new_keys = batch.puts.iter().map(|put| put.key.clone()).collect();
    Batch { new_keys, ..batch }
}

async fn items(engine: &PostgresEngine) -> Vec<(Bytes, Bytes)> {
    let request = ReadRequest {
        scans: vec![Scan::whole(Space::Item)],
        ..ReadRequest::default()
    };
    let mut response = engine.read(PARTITION, request).await.unwrap();
    response.pages.remove(0).rows
}

async fn head(engine: &PostgresEngine) -> u64 {
    let response = engine.read(PARTITION, ReadRequest::default()).await.unwrap();
    response.head.lsn.0
}

pub(super) async fn client(store: &Store) -> Client {
    let (client, connection) = tokio_postgres::connect(&store.database.address(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn refusal(options: &PostgresOptions) -> OpenError {
    match PostgresEngine::open(options, clock()).await {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_database_without_a_store_and_the_table_of_somebody_else_are_refused() {
    let store = Store::new();
    assert!(matches!(refusal(&store.options()).await, OpenError::NoStore));
    store.database.run("create table bolide_kv (a int)").unwrap();
    for made in [
        refusal(&store.options()).await,
        init(&store.options()).await.unwrap_err(),
    ] {
        assert!(matches!(made, OpenError::Foreign(_)), "{made}");
    }
    store
        .database
        .run("comment on table bolide_kv is 'Bolide store, format 2'")
        .unwrap();
    let newer = refusal(&store.options()).await.to_string();
    assert!(newer.contains("format 2"), "{newer}");
}

#[tokio::test]
async fn missing_rights_are_named_and_no_more_than_those_are_needed() {
    let store = Store::new();
    let opened = store.open_with(clock()).await;
    drop(opened);
    store
        .database
        .run("create role teller login; grant select, insert, update on bolide_kv to teller")
        .unwrap();
    let teller = PostgresOptions::parse(&store.database.address_of("teller")).unwrap();
    assert!(matches!(refusal(&teller).await, OpenError::Rights("delete")));
    store.database.run("grant delete on bolide_kv to teller").unwrap();
    let engine = PostgresEngine::open(&teller, clock()).await.unwrap();
    engine.create(PARTITION, Head::first(START)).await.unwrap();
    assert!(matches!(
        engine.commit(PARTITION, batch(0, 1, vec![put("a", "1")])).await,
        Ok(Outcome::Done(_))
    ));
    drop(engine);
    store.database.run("drop owned by teller; drop role teller").unwrap();
}

#[tokio::test]
async fn an_address_that_nobody_answers_and_one_that_is_none_are_refused() {
    let nobody = PostgresOptions::parse("postgres://somebody:secret@127.0.0.1:1/db").unwrap();
    let refused = refusal(&nobody).await;
    assert!(matches!(refused, OpenError::Connect(_)), "{refused}");
    assert!(
        !nobody.place().contains("secret") && nobody.place().contains("127.0.0.1:1/db"),
        "{}",
        nobody.place()
    );
    let nonsense = PostgresOptions::parse("mysql://a:secret@b").unwrap_err();
    assert!(
        matches!(nonsense, OpenError::Config(_)) && !nonsense.to_string().contains("secret"),
        "{nonsense}"
    );
}

#[tokio::test]
async fn connections_are_encrypted_if_asked_and_only_to_a_server_that_is_trusted() {
    let store = Store::new();
    drop(store.open_with(clock()).await);
    let address = format!("{}?sslmode=require", store.database.address());
    let stranger = refusal(&PostgresOptions::parse(&address).unwrap()).await.to_string();
    assert!(stranger.contains("certificate"), "{stranger}");
    let mut options = PostgresOptions::parse(&address).unwrap();
    options.trust(store.database.certificate().as_bytes()).unwrap();
    let engine = PostgresEngine::open(&options, clock()).await.unwrap();
    engine.create(PARTITION, Head::first(START)).await.unwrap();
    let clear = "select count(*) from pg_stat_ssl join pg_stat_activity using (pid)
                 where datname = current_database() and application_name = 'bolide' and not ssl";
    assert_eq!(store.database.run(clear).unwrap().trim(), "0");
    assert_eq!(
        store.database.run(&clear.replace("not ssl", "ssl")).unwrap().trim(),
        "1"
    );
    let nothing = options.trust(b"no certificate").unwrap_err();
    assert!(matches!(nothing, OpenError::Authorities(_)), "{nothing}");
    let in_clear = store
        .options()
        .trust(store.database.certificate().as_bytes())
        .unwrap_err();
    assert!(in_clear.to_string().contains("sslmode=require"), "{in_clear}");
}

#[tokio::test]
async fn a_store_is_made_once_however_many_make_it() {
    let store = Store::new();
    let options = store.options();
    let on_citus = store.database.is_on_citus();
    let made = join_all((0..4).map(|_| init(&options))).await;
    let made: Vec<Init> = made.into_iter().map(Result::unwrap).collect();
    let created = made.iter().filter(|made| **made != Init::Present);
    assert_eq!(created.collect::<Vec<_>>(), [&Init::Created { on_citus }]);
    PostgresEngine::open(&options, clock()).await.unwrap();
}

/// Whatever numbers the two would have given themselves.
#[tokio::test]
async fn of_two_commits_that_follow_the_same_one_only_one_is_done() {
    let store = Store::new();
    let [first, second] = two(&store).await;
    let [third, fourth] = [store.open_with(clock()).await, store.open_with(clock()).await];
    for engine in [&first, &second, &third, &fourth] {
        assert_eq!(head(engine).await, 0);
    }
    let done = second.commit(PARTITION, batch(0, 3, vec![put("a", "second")])).await;
    assert!(matches!(done, Ok(Outcome::Done(_))));
    let late = batch(0, 1, vec![put("a", "first"), put("b", "first")]);
    assert_eq!(first.commit(PARTITION, late.clone()).await, Ok(Outcome::Stale));
    let other_entry = of_new(batch(0, 1, vec![put("c", "third")]));
    assert_eq!(third.commit(PARTITION, other_entry).await, Ok(Outcome::Stale));
    assert_eq!(fourth.commit(PARTITION, of_new(late)).await, Ok(Outcome::Stale));
    assert_eq!(items(&first).await, [(Bytes::from("a"), Bytes::from("second"))]);
    assert_eq!(head(&first).await, 3);
    let next = first.commit(PARTITION, batch(3, 4, vec![])).await;
    assert!(matches!(next, Ok(Outcome::Done(_))));
}

#[tokio::test]
async fn a_commit_that_names_a_key_twice_is_refused_and_changes_nothing() {
    let store = Store::new();
    let [engine, _] = two(&store).await;
    let twice = batch(0, 1, vec![put("a", "1"), put("a", "2")]);
    for twice in [twice.clone(), of_new(twice)] {
        let refused = engine.commit(PARTITION, twice).await;
        assert!(matches!(refused, Ok(Outcome::Refused(_))), "{refused:?}");
    }
    assert_eq!((items(&engine).await, head(&engine).await), (vec![], 0));
}

/// Without a fence this commit would be done after it was said never to be.
#[tokio::test]
async fn a_commit_that_was_said_not_to_happen_does_not_happen_later() {
    let store = Store::new();
    let [writer, other] = two(&store).await;
    assert_eq!(head(&writer).await, 0);
    let late = batch(0, 1, vec![put("a", "late")]);
    assert_eq!(other.resolve(PARTITION, late.ticket()).await, Ok(Resolved::NotDone));
    assert_eq!(writer.commit(PARTITION, late.clone()).await, Ok(Outcome::Stale));
    assert_eq!(items(&other).await, []);
    let again = of_new(late.clone());
    assert_eq!(other.resolve(PARTITION, again.ticket()).await, Ok(Resolved::NotDone));
    assert_eq!(writer.commit(PARTITION, again).await, Ok(Outcome::Stale));
    assert_eq!(items(&other).await, []);
    // The log has not moved: decided again, it is a new attempt.
    assert!(matches!(writer.commit(PARTITION, late).await, Ok(Outcome::Done(_))));
}

/// Whether a statement waits for a row that is locked.
fn is_anyone_waiting(store: &Store) -> bool {
    let waiting = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    !store.database.run_on_all(waiting).unwrap().is_empty()
}

/// It has looked at the newest record before that changed, and writes all of its entries or none.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_that_meets_a_fence_on_its_way_is_stale_and_changes_nothing() {
    let store = Store::new();
    let [writer, other] = two(&store).await;
    let mut fencing = client(&store).await;
    let late = batch(0, 1, vec![put("a", "late"), put("b", "late")]);
    let mut some_new = late.clone();
    some_new.new_keys = vec![put("b", "").key];
    for late in [late.clone(), of_new(late), some_new] {
        assert_eq!(head(&writer).await, 0);
        let fence = fencing.transaction().await.unwrap();
        let changed = fence
            .execute(
                "update bolide_kv set v = set_byte(v, 47, get_byte(v, 47) + 1) where part = 7 and get_byte(k, 4) = 0",
                &[],
            )
            .await;
        assert_eq!(changed.unwrap(), 1);
        let mut commit = writer.commit(PARTITION, late);
        while !is_anyone_waiting(&store) {
            assert!(poll!(&mut commit).is_pending(), "it does not wait for the fence");
        }
        fence.commit().await.unwrap();
        assert_eq!(commit.await, Ok(Outcome::Stale));
        assert_eq!((items(&other).await, head(&other).await), (vec![], 0));
    }
}

/// The server ends the connection of a commit that waits for a lock: its outcome is unknown, and then known.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_connection_that_breaks_under_a_commit_leaves_it_unknown_until_it_is_resolved() {
    let store = Store::new();
    let [engine, _] = two(&store).await;
    let mut rival = client(&store).await;
    let lock = rival.transaction().await.unwrap();
    lock.execute("select from bolide_kv where part = 7 for update", &[])
        .await
        .unwrap();
    let stuck = batch(0, 1, vec![put("a", "1")]);
    let mut commit = engine.commit(PARTITION, stuck.clone());
    while !is_anyone_waiting(&store) {
        assert!(poll!(&mut commit).is_pending(), "it does not wait for the lock");
    }
    let end = "select pg_terminate_backend(pid) from pg_stat_activity
               where datname = current_database() and wait_event_type = 'Lock'";
    store.database.run_on_all(end).unwrap();
    assert_eq!(commit.await, Ok(Outcome::Unknown(stuck.ticket())));
    lock.rollback().await.unwrap();
    assert_eq!(engine.resolve(PARTITION, stuck.ticket()).await, Ok(Resolved::NotDone));
    assert!(matches!(engine.commit(PARTITION, stuck).await, Ok(Outcome::Done(_))));
}

#[tokio::test]
async fn reads_go_on_after_all_connections_were_ended() {
    let store = Store::new();
    let [engine, _] = two(&store).await;
    assert_eq!(head(&engine).await, 0);
    let ends = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    store.database.run(ends).unwrap();
    assert_eq!(head(&engine).await, 0);
}

/// An engine that waits for so long, on a server that can be held up; the partition is there.
pub(super) async fn through_a_relay(store: &Store, timeout: Duration) -> (PostgresEngine, Relay) {
    drop(store.open_with(clock()).await);
    let address = store.database.address();
    let (host, database) = address.rsplit_once('/').unwrap();
    let port = host.rsplit_once(':').unwrap().1.parse().unwrap();
    let relay = Relay::to(port).await;
    let mut options =
        PostgresOptions::parse(&format!("postgres://bolide@127.0.0.1:{}/{database}", relay.port)).unwrap();
    options.timeout = timeout;
    let engine = PostgresEngine::open(&options, Arc::new(Clock::System)).await.unwrap();
    engine.create(PARTITION, Head::first(START)).await.unwrap();
    (engine, relay)
}

/// Also those that wait for a connection while others have them all.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_request_waits_longer_than_it_may_for_a_server_that_has_stopped_to_answer() {
    let store = Store::new();
    if store.database.is_on_citus() {
        // Only the coordinator is behind the relay; the nodes go on to answer.
        return;
    }
    // Long, so that a busy machine does not matter: who waits twice waits for eight seconds.
    let timeout = Duration::from_secs(4);
    let (engine, relay) = through_a_relay(&store, timeout).await;
    relay.hold_up(true);
    let reads = (0..50).map(|_| engine.read(PARTITION, ReadRequest::default()));
    let read = tokio::time::timeout(timeout * 7 / 4, join_all(reads)).await;
    let all_failed = read.expect("in time").iter().all(Result::is_err);
    assert!(all_failed);
}

/// After the first request that waited in vain, others do not; and when the server answers again, so does the engine.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_waits_for_a_server_that_has_stopped_to_answer() {
    let store = Store::new();
    if store.database.is_on_citus() {
        // Only the coordinator is behind the relay; the nodes go on to answer.
        return;
    }
    let (engine, relay) = through_a_relay(&store, Duration::from_millis(500)).await;
    let now = engine.time().hi;
    let first = Batch {
        stamp: now,
        ..batch(0, 1, vec![put("a", "1")])
    };
    assert!(matches!(engine.commit(PARTITION, first).await, Ok(Outcome::Done(_))));

    relay.hold_up(true);
    for _ in 0..500 {
        let refused = engine.read(PARTITION, ReadRequest::default()).await.unwrap_err();
        assert!(matches!(refused, EngineError::Unavailable(_)), "{refused}");
    }
    let next = Batch {
        stamp: now,
        ..batch(1, 2, vec![put("b", "2")])
    };
    let refused = engine.commit(PARTITION, next.clone()).await.unwrap_err();
    assert!(matches!(refused, EngineError::Unavailable(_)), "{refused}");

    relay.hold_up(false);
    let mut tries = 0;
    while engine.read(PARTITION, ReadRequest::default()).await.is_err() {
        tries += 1;
        assert!(tries < 1_000, "the engine does not go on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(head(&engine).await, 1);
    assert!(matches!(engine.commit(PARTITION, next).await, Ok(Outcome::Done(_))));
}

/// Else it would call gone what is live on the first one (TTL-205).
#[tokio::test]
async fn a_second_process_does_not_begin_ahead_of_the_first() {
    let store = Store::new();
    let first = store.open_with(Arc::new(Clock::System)).await;
    let ahead = UnixMillis(first.time().hi.0 + 700);
    first.make_time_durable(ahead).await.unwrap();
    let second = store.open_with(Arc::new(Clock::System)).await;
    let (theirs, ours) = (second.time().lo, first.time().hi);
    assert!(theirs <= ours, "{theirs:?} is later than {ours:?}");
    assert!(theirs >= ahead, "nor does it begin before what is durable (TTL-203)");
}

/// The entry among the removals is what a process leaves that ended before it had deleted the rows.
#[tokio::test]
async fn a_removal_that_was_not_finished_is_finished_by_the_next_process() {
    let store = Store::new();
    let [engine, other] = two(&store).await;
    let rows = (0..2_500).map(|n| put(&format!("{n:04}"), "v")).collect();
    engine.commit(PARTITION, batch(0, 1, rows)).await.unwrap();
    drop((engine, other));
    store
        .database
        .run(r"insert into bolide_kv values (0, '\xffffffff720000000000000007', '')")
        .unwrap();
    let engine = store.open_with(clock()).await;
    let gone = engine.read(PARTITION, ReadRequest::default()).await.map(drop);
    assert_eq!(gone, Err(EngineError::NoPartition(PARTITION)));
    let left = r"select count(*) from bolide_kv where part = 7 or k = '\xffffffff720000000000000007'";
    let mut tries = 0;
    while store.database.run(left).unwrap().trim() != "0" {
        tries += 1;
        assert!(tries < 1_000, "the rows stay");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn old_commit_records_are_deleted_and_the_last_ones_are_kept() {
    let store = Store::new();
    let [engine, _] = two(&store).await;
    for lsn in 0..200u64 {
        let next = Batch {
            stamp: UnixMillis(START.0 + lsn.cast_signed() * 2_000),
            ..batch(lsn, lsn + 1, vec![])
        };
        assert!(
            matches!(engine.commit(PARTITION, next).await, Ok(Outcome::Done(_))),
            "{lsn}"
        );
    }
    let records = r"select count(*) from bolide_kv where part = 7 and k < '\x0000000701'";
    let mut tries = 0;
    loop {
        let left: u64 = store.database.run(records).unwrap().trim().parse().unwrap();
        // A minute of them, and no more than another minute that waits to be deleted.
        assert!(left > 30, "{left}");
        if left < 70 {
            break;
        }
        tries += 1;
        assert!(tries < 1_000, "{left} records");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(head(&engine).await, 200);
    engine.create(PARTITION, Head::first(START)).await.unwrap();
    assert_eq!(head(&engine).await, 200, "it is not created again");
}

/// Each needs a connection, if something was committed between them.
#[tokio::test]
async fn the_oldest_of_many_different_snapshots_ends_and_equal_ones_share() {
    let store = Store::new();
    let [engine, _] = two(&store).await;
    let mut held = Vec::new();
    for lsn in 0..10 {
        for _ in 0..3 {
            held.push((lsn, engine.hold(PARTITION.home(), UnixMillis(i64::MAX)).await.unwrap()));
        }
        engine.commit(PARTITION, batch(lsn, lsn + 1, vec![])).await.unwrap();
    }
    for (lsn, snapshot) in held {
        let read = snapshot.read(PARTITION, ReadRequest::default()).await;
        match read {
            Ok(response) => assert!(lsn >= 2 && response.head.lsn == Lsn(lsn), "{lsn}: {:?}", response.head),
            Err(error) => assert!(lsn < 2 && error == HoldError::Expired, "{lsn}: {error}"),
        }
    }
}

/// More than a connection keeps statements for.
#[tokio::test]
async fn one_connection_serves_many_homes() {
    let store = Store::new();
    store.open_with(clock()).await;
    let mut options = store.options();
    options.connections = 1;
    let engine = PostgresEngine::open(&options, clock()).await.unwrap();
    for _ in 0..2 {
        for number in 1..400 {
            let partition = PartitionId::in_own_home(number);
            engine.create(partition, Head::first(START)).await.unwrap();
            engine.read(partition, ReadRequest::default()).await.unwrap();
        }
    }
    let prepared = client(&store).await;
    let kept = prepared.query_one(
        "select count(*) from pg_stat_activity where datname = current_database()",
        &[],
    );
    let kept: i64 = kept.await.unwrap().get(0);
    assert!(kept <= 3, "{kept} connections");
}

/// The clock of the database server, on every server that uses it.
#[tokio::test]
async fn two_servers_have_the_same_time() {
    let store = Store::new();
    let [first, second] = [
        store.open_with(Arc::new(Clock::System)).await,
        store.open_with(Arc::new(Clock::System)).await,
    ];
    let watcher = client(&store).await;
    for _ in 0..20 {
        let (before, other) = (first.time(), second.time());
        let row = watcher.query_one("select (extract(epoch from clock_timestamp()) * 1000)::bigint", &[]);
        let true_time: i64 = row.await.unwrap().get(0);
        let after = first.time();
        assert!(
            before.lo.0 <= true_time && true_time <= after.hi.0,
            "{before:?} {true_time} {after:?}"
        );
        assert!(
            before.lo <= other.hi && other.lo <= after.hi,
            "{before:?} {other:?} {after:?}"
        );
    }
}
