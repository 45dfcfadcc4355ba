//! Claims about commits, and about resolving them.

use bolide_model::limits::KEY_BYTES;
use bolide_model::{Lsn, UnixMillis};
use bytes::Bytes;
use futures_util::future::join_all;

use super::test_engine::{PARTITION, key, put};
use super::{EngineFixture, TestEngine};
use crate::{Batch, Edition, Outcome, RESOLVABLE_COMMITS, Resolved, Scan, Space};

/// Puts replace, deletes remove, absent keys may be deleted, and all changes become visible together.
pub async fn commit_puts_and_deletes_together(fixture: &dyn EngineFixture) {
    let engine = TestEngine::with_partition(fixture).await;
    engine
        .commit_next(
            PARTITION,
            vec![put(Space::Item, b"a", "1"), put(Space::Item, b"b", "1")],
            vec![],
        )
        .await;
    let deletes = vec![key(Space::Item, b"b"), key(Space::Item, b"never")];
    let head = engine
        .commit_next(
            PARTITION,
            vec![put(Space::Item, b"a", "2"), put(Space::Log, b"c", "2")],
            deletes,
        )
        .await;
    assert_eq!(engine.head(PARTITION).await, head);
    assert_eq!(
        engine.get(PARTITION, key(Space::Item, b"a")).await,
        Some(Bytes::from("2"))
    );
    assert_eq!(engine.keys(PARTITION, Space::Item).await, ["a"]);
    assert_eq!(engine.keys(PARTITION, Space::Log).await, ["c"]);
}

/// Each read and each resolved commit returns the edition of the newest commit, whether it stays, rises or falls.
pub async fn edition_is_what_the_newest_commit_says(fixture: &dyn EngineFixture) {
    let engine = TestEngine::with_partition(fixture).await;
    assert_eq!(engine.head(PARTITION).await.edition, Edition::FIRST);
    for edition in [7, 7, u64::MAX, 0, 3].map(Edition) {
        let base = engine.head(PARTITION).await.lsn;
        let batch = Batch {
            edition,
            ..engine.batch(base, vec![], vec![])
        };
        let (ticket, head) = (batch.ticket(), batch.head());
        assert_eq!(engine.commit(PARTITION, batch).await, Ok(Outcome::Done(head)));
        assert_eq!(head.edition, edition);
        assert_eq!(engine.head(PARTITION).await, head);
        assert_eq!(engine.resolve(PARTITION, ticket).await, Ok(Resolved::Done(head)));
    }
    let stale = Batch {
        edition: Edition(9),
        ..engine.batch(Lsn(0), vec![], vec![])
    };
    assert_eq!(engine.commit(PARTITION, stale).await, Ok(Outcome::Stale));
    assert_eq!(engine.head(PARTITION).await.edition, Edition(3));
}

/// A commit is done only if its base is the head, and neither below nor above it.
pub async fn commit_on_an_old_head_is_stale_and_changes_nothing(fixture: &dyn EngineFixture) {
    let engine = TestEngine::with_partition(fixture).await;
    let head = engine
        .commit_next(PARTITION, vec![put(Space::Item, b"a", "1")], vec![])
        .await;
    for base in [Lsn(0), Lsn(2), Lsn(u64::MAX - 1)] {
        let batch = engine.batch(base, vec![put(Space::Item, b"a", "2")], vec![]);
        assert_eq!(engine.commit(PARTITION, batch).await, Ok(Outcome::Stale), "base={base}");
    }
    assert_eq!(engine.head(PARTITION).await, head);
    assert_eq!(
        engine.get(PARTITION, key(Space::Item, b"a")).await,
        Some(Bytes::from("1"))
    );
}

/// An engine that checks new keys commits nothing if one of them is there; another one refuses the batch. A base that is not the head comes first.
pub async fn commit_with_a_new_key_that_is_there_changes_nothing(fixture: &dyn EngineFixture) {
    let engine = TestEngine::with_partition(fixture).await;
    let with_new = |base, name: &'static [u8], value: &str| {
        let puts = vec![put(Space::Item, b"both", value), put(Space::Index, name, value)];
        Batch {
            new_keys: vec![key(Space::Index, name)],
            ..engine.batch(base, puts, vec![])
        }
    };
    let first = with_new(Lsn(0), b"a", "1");
    if !engine.engine.checks_new_keys() {
        let outcome = engine.commit(PARTITION, first).await;
        assert!(matches!(outcome, Ok(Outcome::Refused(_))), "{outcome:?}");
        assert_eq!(engine.head(PARTITION).await.lsn, Lsn(0));
        return;
    }
    let head = first.head();
    assert_eq!(engine.commit(PARTITION, first).await, Ok(Outcome::Done(head)));
    let old = with_new(Lsn(0), b"a", "2");
    assert_eq!(engine.commit(PARTITION, old).await, Ok(Outcome::Stale));
    let second = with_new(head.lsn, b"a", "2");
    assert_eq!(engine.commit(PARTITION, second).await, Ok(Outcome::Exists));
    assert_eq!(engine.head(PARTITION).await, head);
    for space in [Space::Item, Space::Index] {
        let page = engine.scan(PARTITION, Scan::whole(space)).await;
        assert_eq!(page.rows.iter().map(|(_, value)| value).collect::<Vec<_>>(), ["1"]);
    }
    let not_put = Batch {
        new_keys: vec![key(Space::Index, b"b")],
        ..engine.batch(head.lsn, vec![put(Space::Index, b"c", "1")], vec![])
    };
    let outcome = engine.commit(PARTITION, not_put).await;
    assert!(matches!(outcome, Ok(Outcome::Refused(_))), "{outcome:?}");
    assert_eq!(engine.head(PARTITION).await, head);
    let head = engine
        .commit_next(PARTITION, vec![], vec![key(Space::Index, b"a")])
        .await;
    let third = with_new(head.lsn, b"a", "3");
    let head = third.head();
    assert_eq!(engine.commit(PARTITION, third).await, Ok(Outcome::Done(head)));
}

/// Who asks for the lock of a partition while another has it waits until it is dropped, and sees what was committed meanwhile. The holder's commit is done.
pub async fn locked_partition_makes_others_wait_who_ask_for_its_lock(fixture: &dyn EngineFixture) {
    let engine = TestEngine::with_partition(fixture).await;
    let value = || vec![key(Space::Item, b"k")];
    for round in 0..3 {
        let (read, lock) = engine.read_and_lock(PARTITION, value()).await;
        assert_eq!(read.head.lsn, Lsn(round));
        let Some(lock) = lock else { return };
        let mut waits = Box::pin(engine.read_and_lock(PARTITION, value()));
        let text = round.to_string();
        let batch = engine.batch(Lsn(round), vec![put(Space::Item, b"k", &text)], vec![]);
        let head = batch.head();
        let commit = async {
            // Whoever waits goes on waiting while there is no commit.
            assert_eq!(engine.head(PARTITION).await.lsn, Lsn(round));
            let outcome = engine.commit(PARTITION, batch).await;
            drop(lock);
            outcome
        };
        // The lock is asked for before the commit is sent.
        let ((read, second), outcome) = futures_util::future::join(waits.as_mut(), commit).await;
        assert_eq!(outcome, Ok(Outcome::Done(head)));
        assert_eq!(read.head, head);
        assert_eq!(read.gets, [Some(Bytes::from(text))]);
        // Dropped without a commit: the next one does not wait.
        drop(second);
    }
}

/// A batch that breaks the rules of the log or exceeds a limit is refused with a text.
pub async fn unfit_commit_is_refused_and_changes_nothing(fixture: &dyn EngineFixture) {
    let engine = TestEngine::with_partition(fixture).await;
    let head = engine.commit_next(PARTITION, vec![], vec![]).await;
    let fit = || engine.batch(head.lsn, vec![put(Space::Item, b"a", "1")], vec![]);
    let unfit = [
        Batch {
            next: head.lsn,
            ..fit()
        },
        Batch {
            stamp: UnixMillis(head.stamp.0 - 1),
            ..fit()
        },
        Batch {
            puts: vec![put(Space::Item, &vec![b'k'; KEY_BYTES + 1], "1")],
            ..fit()
        },
    ];
    for batch in unfit {
        let shown = format!("{:?} {:?}", batch.next, batch.stamp);
        assert!(
            matches!(engine.commit(PARTITION, batch).await, Ok(Outcome::Refused(_))),
            "{shown}"
        );
    }
    assert_eq!(engine.head(PARTITION).await, head);
    assert!(engine.keys(PARTITION, Space::Item).await.is_empty());
}

/// A chain of commits sent without waiting is done in order, however the engine merges them; each key has the value of the last one.
pub async fn commits_sent_at_once_happen_in_their_order(fixture: &dyn EngineFixture) {
    let engine = TestEngine::with_partition(fixture).await;
    send_chain(&engine).await;
    check_chain(&engine).await;
}

/// Commits 1 to 50 of [`PARTITION`] in one go. Commit n puts "latest", a key of its own, and deletes or puts "flag" in turn.
pub(super) async fn send_chain(engine: &TestEngine) {
    let link = |n: u64| {
        let mut puts = vec![
            put(Space::Item, b"latest", n.to_string()),
            put(Space::Log, &n.to_be_bytes(), ""),
        ];
        let flag = key(Space::Index, b"flag");
        let mut deletes = vec![];
        if n.is_multiple_of(2) {
            deletes.push(flag);
        } else {
            puts.push(put(Space::Index, b"flag", n.to_string()));
        }
        engine.batch(Lsn(n - 1), puts, deletes)
    };
    let batches: Vec<_> = (1..=50).map(link).collect();
    let outcomes = join_all(
        batches
            .iter()
            .map(|batch| engine.engine.commit(PARTITION, batch.clone())),
    )
    .await;
    // With injected faults the chain breaks somewhere. The rest is sent one by one, as the core would do it.
    for (batch, outcome) in batches.into_iter().zip(outcomes) {
        let resolved = match outcome {
            Ok(Outcome::Unknown(ticket)) => engine.resolve(PARTITION, ticket).await.expect("the partition is there"),
            Ok(Outcome::Done(head)) => Resolved::Done(head),
            _ => Resolved::NotDone,
        };
        if resolved == Resolved::NotDone {
            let head = batch.head();
            assert_eq!(engine.commit(PARTITION, batch).await, Ok(Outcome::Done(head)));
        }
    }
}

/// Checks the state after [`send_chain`].
pub(super) async fn check_chain(engine: &TestEngine) {
    assert_eq!(engine.head(PARTITION).await.lsn, Lsn(50));
    assert_eq!(
        engine.get(PARTITION, key(Space::Item, b"latest")).await,
        Some(Bytes::from("50"))
    );
    assert_eq!(engine.get(PARTITION, key(Space::Index, b"flag")).await, None);
    assert_eq!(engine.keys(PARTITION, Space::Log).await.len(), 50);
}

/// A commit that was done can be resolved for as long as the contract says, with its head.
pub async fn resolve_knows_a_commit_that_was_done(fixture: &dyn EngineFixture) {
    let engine = TestEngine::with_partition(fixture).await;
    let batch = engine.batch(Lsn(0), vec![put(Space::Item, b"a", "1")], vec![]);
    let (ticket, head) = (batch.ticket(), batch.head());
    assert_eq!(engine.commit(PARTITION, batch).await, Ok(Outcome::Done(head)));
    assert_eq!(
        engine.resolve(PARTITION, ticket.clone()).await,
        Ok(Resolved::Done(head))
    );
    for _ in 1..RESOLVABLE_COMMITS {
        engine.commit_next(PARTITION, vec![], vec![]).await;
        assert_eq!(
            engine.resolve(PARTITION, ticket.clone()).await,
            Ok(Resolved::Done(head))
        );
    }
}

/// A commit that never arrived is not done, whether its sequence number is still free or was taken by another commit.
pub async fn resolve_knows_a_commit_that_never_arrived(fixture: &dyn EngineFixture) {
    let engine = TestEngine::with_partition(fixture).await;
    let ticket = engine.batch(Lsn(0), vec![], vec![]).ticket();
    assert_eq!(engine.resolve(PARTITION, ticket.clone()).await, Ok(Resolved::NotDone));
    for _ in 0..RESOLVABLE_COMMITS {
        engine.commit_next(PARTITION, vec![], vec![]).await;
        assert_eq!(engine.resolve(PARTITION, ticket.clone()).await, Ok(Resolved::NotDone));
    }
}
