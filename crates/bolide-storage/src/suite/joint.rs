//! Claims about joint commits.

use std::sync::Arc;

use bolide_model::Lsn;
use bytes::Bytes;

use super::test_engine::{START, key, put};
use super::{EngineFixture, TestEngine};
use crate::{
    Batch, EngineError, Head, HoldError, HomeId, JointOutcome, PartitionId, RESOLVABLE_COMMITS, ReadRequest, Resolved,
    Space,
};

/// The home that most claims use.
pub(super) const SHARED_HOME: HomeId = HomeId(3);

/// Partitions of [`SHARED_HOME`]; one of them has the home's own number.
pub(super) fn shared_partitions() -> [PartitionId; 3] {
    [10, 3, 12].map(|number| PartitionId::in_home(SHARED_HOME, number).expect("home 0 is another one"))
}

/// An engine with the partitions of [`shared_partitions`].
pub(super) async fn with_shared_home(fixture: &dyn EngineFixture) -> TestEngine {
    let engine = TestEngine::new(fixture);
    for partition in shared_partitions() {
        engine.create(partition).await;
    }
    engine
}

impl TestEngine {
    /// A batch for each partition on its current head, which puts `value` at the key "a" and deletes "b".
    pub(super) async fn joint_batches(&self, partitions: &[PartitionId], value: &str) -> Vec<(PartitionId, Batch)> {
        let mut batches = Vec::new();
        for partition in partitions {
            let base = self.head(*partition).await.lsn;
            let puts = vec![put(Space::Item, b"a", value)];
            let deletes = vec![key(Space::Item, b"b")];
            batches.push((*partition, self.batch(base, puts, deletes)));
        }
        batches
    }

    /// The value at the key "a", and the head.
    async fn value(&self, partition: PartitionId) -> (Option<Bytes>, Head) {
        let request = ReadRequest::of_keys(vec![key(Space::Item, b"a")]);
        let mut response = self.read(partition, request).await;
        (response.gets.remove(0), response.head)
    }
}

/// Each partition has its rows, its head and its edition. One batch alone and an empty list are valid joint commits.
pub async fn joint_commit_is_done_in_all_its_partitions(fixture: &dyn EngineFixture) {
    let engine = with_shared_home(fixture).await;
    let partitions = shared_partitions();
    for (n, partition) in partitions.into_iter().enumerate() {
        // Makes their heads differ.
        for _ in 0..n {
            engine
                .commit_next(partition, vec![put(Space::Item, b"b", "1")], vec![])
                .await;
        }
    }
    for count in [3, 1, 2] {
        let value = count.to_string();
        let batches = engine.joint_batches(&partitions[..count], &value).await;
        let heads: Vec<Head> = batches.iter().map(|(_, batch)| batch.head()).collect();
        assert_eq!(
            engine.commit_together(batches).await,
            Ok(JointOutcome::Done(heads.clone()))
        );
        for (partition, head) in partitions.into_iter().zip(heads) {
            assert_eq!(engine.value(partition).await, (Some(Bytes::from(value.clone())), head));
            assert_eq!(engine.get(partition, key(Space::Item, b"b")).await, None);
        }
    }
    assert_eq!(engine.commit_together(vec![]).await, Ok(JointOutcome::Done(vec![])));
}

/// One batch with an old base makes the whole commit stale, wherever it stands in the list.
pub async fn joint_commit_with_an_old_head_is_stale_and_changes_nothing(fixture: &dyn EngineFixture) {
    let engine = with_shared_home(fixture).await;
    let partitions = shared_partitions();
    for partition in partitions {
        engine
            .commit_next(partition, vec![put(Space::Item, b"a", "old")], vec![])
            .await;
    }
    for stale in 0..partitions.len() {
        let mut batches = engine.joint_batches(&partitions, "new").await;
        batches[stale].1 = engine.batch(Lsn(0), vec![put(Space::Item, b"a", "new")], vec![]);
        assert_eq!(engine.commit_together(batches).await, Ok(JointOutcome::Stale));
        for partition in partitions {
            let (value, head) = engine.value(partition).await;
            assert_eq!((value, head.lsn), (Some(Bytes::from("old")), Lsn(1)));
        }
    }
}

/// Partitions of two homes, one partition twice, or one invalid batch: the commit is refused with a text.
pub async fn unfit_joint_commit_is_refused_and_changes_nothing(fixture: &dyn EngineFixture) {
    let engine = with_shared_home(fixture).await;
    let partitions = shared_partitions();
    let elsewhere = PartitionId::in_own_home(20);
    engine.create(elsewhere).await;
    let fit = engine.joint_batches(&partitions, "new").await;
    let mut of_two_homes = fit.clone();
    of_two_homes.extend(engine.joint_batches(&[elsewhere], "new").await);
    let mut of_one_twice = fit.clone();
    of_one_twice.extend(engine.joint_batches(&partitions[..1], "new").await);
    let mut backwards = fit;
    backwards[1].1.next = backwards[1].1.base;
    for (what, batches) in [
        ("two homes", of_two_homes),
        ("one partition twice", of_one_twice),
        ("backwards", backwards),
    ] {
        let outcome = engine.commit_together(batches).await;
        assert!(matches!(outcome, Ok(JointOutcome::Refused(_))), "{what}: {outcome:?}");
    }
    for partition in partitions.into_iter().chain([elsewhere]) {
        let (value, head) = engine.value(partition).await;
        assert_eq!((value, head.lsn), (None, Lsn(0)));
    }
}

/// The error names the partition that was removed; the others do not change.
pub async fn joint_commit_without_a_partition_names_it_and_changes_nothing(fixture: &dyn EngineFixture) {
    let engine = with_shared_home(fixture).await;
    let partitions = shared_partitions();
    let batches = engine.joint_batches(&partitions, "new").await;
    engine.remove(partitions[1]).await;
    let missing = Err(EngineError::NoPartition(partitions[1]));
    assert_eq!(engine.commit_together(batches).await, missing);
    for partition in [partitions[0], partitions[2]] {
        assert_eq!(engine.value(partition).await.0, None);
    }
}

/// The ticket of each partition resolves the whole commit.
pub async fn any_ticket_of_a_joint_commit_resolves_all(fixture: &dyn EngineFixture) {
    let engine = with_shared_home(fixture).await;
    let partitions = shared_partitions();
    for round in 0..20 {
        let batches = engine.joint_batches(&partitions, &round.to_string()).await;
        let outcome = engine.engine.commit_together(batches.clone()).await;
        let mut done = Vec::new();
        for (partition, batch) in &batches {
            match engine.resolve(*partition, batch.ticket()).await {
                Ok(Resolved::Done(head)) => done.push(head),
                Ok(Resolved::NotDone) => {}
                Err(error) => panic!("{error}"),
            }
        }
        let JointOutcome::Done(heads) = JointOutcome::done(&batches) else {
            panic!("done is done")
        };
        assert!(done.is_empty() || done == heads, "{outcome:?} {done:?}");
        assert_eq!(
            outcome == Ok(JointOutcome::Done(heads)),
            !done.is_empty() && is_known(&outcome)
        );
        for (partition, batch) in &batches {
            let expected = if done.is_empty() { batch.base } else { batch.next };
            assert_eq!(engine.head(*partition).await.lsn, expected);
        }
    }
}

fn is_known(outcome: &Result<JointOutcome, EngineError>) -> bool {
    !matches!(outcome, Ok(JointOutcome::Unknown(_)))
}

/// Accounts in three partitions of a home, with money moving between them: no transfer is lost, and every held snapshot shows the same sum.
pub async fn joint_commits_lose_no_transfer_and_no_hold_sees_half_of_one(fixture: &dyn EngineFixture) {
    const WRITERS: usize = 4;
    let engine = Arc::new(TestEngine::new(fixture));
    for home in (1..6).map(|n| HomeId(100 * n)) {
        let accounts = [1, 2, 3].map(|n| PartitionId::in_home(home, home.0 + n).expect("home 0 is another one"));
        for account in accounts {
            engine.create(account).await;
        }
        // No account has more commits than the engine must be able to resolve.
        let writers =
            (0..WRITERS).map(|at| tokio::spawn(transfer(engine.clone(), accounts, at, RESOLVABLE_COMMITS / WRITERS)));
        let mut tasks: Vec<_> = writers.collect();
        tasks.push(tokio::spawn(add_up(engine.clone(), home, accounts)));
        for task in tasks {
            task.await.expect("every transfer is done, and every sum is right");
        }
    }
}

/// Moves one unit from an account to the next, `times` times.
async fn transfer(engine: Arc<TestEngine>, accounts: [PartitionId; 3], at: usize, times: usize) {
    let mut done = 0;
    while done < times {
        let (from, to) = (accounts[(at + done) % 3], accounts[(at + done + 1) % 3]);
        let mut batches = Vec::new();
        for (account, by) in [(from, -1), (to, 1)] {
            let (value, head) = engine.value(account).await;
            let balance = balance(value.as_ref()) + by;
            let puts = vec![put(Space::Item, b"a", balance.to_string())];
            batches.push((account, engine.batch(head.lsn, puts, vec![])));
        }
        match engine.commit_together(batches).await {
            Ok(JointOutcome::Done(_)) => done += 1,
            Ok(JointOutcome::Stale) => tokio::task::yield_now().await,
            other => panic!("{other:?}"),
        }
    }
}

/// Checks the sum until all transfers are done.
async fn add_up(engine: Arc<TestEngine>, home: HomeId, accounts: [PartitionId; 3]) {
    loop {
        if let Some((sum, commits)) = sum(&engine, home, accounts).await {
            assert_eq!(sum, 0, "half of a transfer shows");
            if commits == 2 * RESOLVABLE_COMMITS as u64 {
                return;
            }
        }
        tokio::task::yield_now().await;
    }
}

/// The sum of all accounts in one held snapshot, and the number of their commits; `None` if the snapshot expired meanwhile.
async fn sum(engine: &TestEngine, home: HomeId, accounts: [PartitionId; 3]) -> Option<(i64, u64)> {
    let held = engine.hold(home).await;
    let (mut sum, mut commits) = (0, 0);
    for account in accounts {
        let request = ReadRequest::of_keys(vec![key(Space::Item, b"a")]);
        match engine.read_held(held.as_ref(), account, request).await {
            Ok(response) => {
                sum += balance(response.gets[0].as_ref());
                commits += response.head.lsn.0;
            }
            Err(HoldError::Expired) => return None,
            Err(error) => panic!("{error}"),
        }
    }
    Some((sum, commits))
}

fn balance(value: Option<&Bytes>) -> i64 {
    value.map_or(0, |text| String::from_utf8_lossy(text).parse().expect("a number"))
}

/// Rows, heads and tickets of a joint commit survive a restart, in all its partitions.
pub async fn joint_commit_survives_a_restart(fixture: &dyn EngineFixture) {
    if !fixture.is_durable() {
        return;
    }
    let engine = with_shared_home(fixture).await;
    let batches = engine.joint_batches(&shared_partitions(), "1").await;
    assert_eq!(
        engine.commit_together(batches.clone()).await,
        Ok(JointOutcome::done(&batches))
    );
    let engine = engine.restart(fixture, START).await;
    for (partition, batch) in batches {
        assert_eq!(engine.value(partition).await, (Some(Bytes::from("1")), batch.head()));
        assert_eq!(
            engine.resolve(partition, batch.ticket()).await,
            Ok(Resolved::Done(batch.head()))
        );
    }
}
