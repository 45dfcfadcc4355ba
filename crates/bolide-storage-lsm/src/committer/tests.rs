//! Claims about closing and reopening a failed store, and about joint commits in a group.

use bolide_model::Lsn;
use bolide_model::time::Clock;
use bolide_storage::{
    Batch, CommitToken, Edition, Head, HoldError, JointOutcome, Key, Outcome, Put, ReadRequest, Space,
};
use bytes::Bytes;
use tokio::sync::oneshot;

use super::*;
use crate::layout::Kind;
use crate::view::HomeView;

pub(super) const PARTITION: PartitionId = PartitionId(1);
pub(super) const NOW: UnixMillis = UnixMillis(1_700_000_000_000);
const HOUR: Duration = Duration::from_secs(3600);

/// A committer that has carried out one commit.
pub(super) fn written(dir: &std::path::Path, durability: Durability) -> Committer {
    let options = LsmOptions {
        durability,
        ..LsmOptions::default()
    };
    let clock = Arc::new(Clock::virtual_at(NOW));
    let mut committer = Committer::open(dir, clock, options, Arc::default()).unwrap();
    let (reply, mut created) = oneshot::channel();
    let head = Head::first(NOW);
    committer.write(vec![Write::Create {
        partition: PARTITION,
        head,
        reply,
    }]);
    assert_eq!(created.try_recv(), Ok(Ok(())));
    let put = Put {
        key: Key::new(Space::Item, Bytes::from_static(b"key")),
        value: Bytes::from_static(b"value"),
    };
    let committed = commit(&mut committer, 0, vec![put]);
    assert!(matches!(committed, Ok(Outcome::Done(_))), "{committed:?}");
    committer
}

pub(super) fn batch(base: u64, puts: Vec<Put>) -> Batch {
    Batch {
        base: Lsn(base),
        next: Lsn(base + 1),
        stamp: NOW,
        edition: Edition::FIRST,
        token: CommitToken(u128::from(base) + 1),
        puts,
        deletes: vec![],
        new_keys: Vec::new(),
        may_block: true,
    }
}

fn commit(committer: &mut Committer, base: u64, puts: Vec<Put>) -> Result<Outcome, EngineError> {
    let (reply, mut replied) = oneshot::channel();
    committer.write(vec![Write::Commit {
        partition: PARTITION,
        batch: batch(base, puts),
        reply,
    }]);
    replied.try_recv().expect("every write is replied")
}

/// Bytes that do not compress: the journal compresses values.
fn megabyte(seed: u64) -> Vec<u8> {
    let mut state = seed + 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(next).take((1 << 20) / 8).flatten().collect()
}

/// Commits rows of a megabyte each, and returns the next number.
fn commit_megabytes(committer: &mut Committer, base: u64, count: u64) -> u64 {
    for base in base..base + count {
        let put = Put {
            key: Key::new(Space::Item, Bytes::copy_from_slice(&base.to_be_bytes())),
            value: Bytes::from(megabyte(base)),
        };
        let committed = commit(committer, base, vec![put]);
        assert!(matches!(committed, Ok(Outcome::Done(_))), "{committed:?}");
    }
    base + count
}

fn bytes_of_journals(dir: &std::path::Path) -> Vec<u64> {
    let files = std::fs::read_dir(dir.join("store"))
        .unwrap()
        .map(|entry| entry.unwrap());
    let journals = files.filter(|file| file.path().extension().is_some_and(|extension| extension == "jnl"));
    journals.map(|journal| journal.metadata().unwrap().len()).collect()
}

/// The values of the committed rows, by their keys, as a store that is opened has them.
fn stored(dir: &std::path::Path, keys: std::ops::Range<u64>) -> Vec<usize> {
    let views = Arc::new(Views::default());
    let clock = Arc::new(Clock::virtual_at(NOW));
    let committer = Committer::open(dir, clock, LsmOptions::default(), views.clone()).unwrap();
    let gets = keys.map(|key| Key::new(Space::Item, Bytes::copy_from_slice(&key.to_be_bytes())));
    let request = ReadRequest::of_keys(gets.collect());
    let found = views.read(PARTITION, &request).unwrap().gets;
    drop(committer);
    found.iter().map(|value| value.as_ref().map_or(0, Bytes::len)).collect()
}

/// Earlier, the journal stayed as it was, and the next open read up to 64 MB of rows that were in tables.
#[test]
fn a_close_after_many_writes_leaves_no_journal_to_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut committer = written(dir.path(), Durability::Sync);
    let next = commit_megabytes(&mut committer, 1, 6);
    assert_eq!(committer.close(), Ok(()));
    assert_eq!(bytes_of_journals(dir.path()), [0]);
    drop(committer);
    assert_eq!(stored(dir.path(), 1..next), [1 << 20; 6]);
    // A store that was opened with an empty journal is written and closed like any other.
    let clock = Arc::new(Clock::virtual_at(NOW));
    let mut committer = Committer::open(dir.path(), clock, LsmOptions::default(), Arc::default()).unwrap();
    let end = commit_megabytes(&mut committer, next, 1);
    drop(committer);
    assert_eq!(stored(dir.path(), 1..end), [1 << 20; 7]);
}

#[test]
fn a_close_after_few_writes_leaves_them_in_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let mut committer = written(dir.path(), Durability::Sync);
    assert_eq!(commit_megabytes(&mut committer, 1, 1), 2);
    assert_eq!(committer.close(), Ok(()));
    drop(committer);
    assert_ne!(bytes_of_journals(dir.path()), [0]);
    assert_eq!(stored(dir.path(), 1..2), [1 << 20]);
}

/// The rows are in tables already, so the memtables are small, but the journal still has them.
#[test]
fn a_close_empties_a_long_journal_whose_rows_are_in_tables() {
    let dir = tempfile::tempdir().unwrap();
    let mut committer = written(dir.path(), Durability::Sync);
    let next = commit_megabytes(&mut committer, 1, 6);
    let store = committer.store.clone().unwrap();
    let deadline = committer.monotonic.now() + HOUR;
    assert!(store.write_out_all(&committer.monotonic, deadline).unwrap());
    drop(store);
    assert_eq!(committer.close(), Ok(()));
    assert_eq!(bytes_of_journals(dir.path()), [0]);
    drop(committer);
    assert_eq!(stored(dir.path(), 1..next), [1 << 20; 6]);
}

#[test]
fn a_close_changes_nothing_in_a_directory_that_took_the_place_of_its_own() {
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dir = home.path().join("data");
    let mut committer = written(&dir, Durability::Sync);
    commit_megabytes(&mut committer, 1, 6);
    let mut second = written(&other.path().join("data"), Durability::Sync);
    let next = commit_megabytes(&mut second, 1, 1);
    assert_eq!(second.close(), Ok(()));
    drop(second);
    std::fs::rename(&dir, home.path().join("moved")).unwrap();
    std::fs::rename(other.path().join("data"), &dir).unwrap();
    // Whether the close succeeds or not.
    let _ = committer.close();
    drop(committer);
    assert_eq!(stored(&dir, 1..next), [1 << 20]);
}

/// Earlier, the server stopped with status 1 on a full disk, although no data was missing.
#[test]
fn a_store_that_failed_closes_in_order_if_everything_acknowledged_is_durable() {
    let dir = tempfile::tempdir().unwrap();
    let mut committer = written(dir.path(), Durability::Sync);
    committer.fail("the disk is full");
    assert_eq!(committer.close(), Ok(()));
}

#[test]
fn a_store_that_failed_with_writes_not_yet_durable_says_so_at_close() {
    let dir = tempfile::tempdir().unwrap();
    for (n, durability) in [Durability::Interval(HOUR), Durability::Buffered]
        .into_iter()
        .enumerate()
    {
        let mut committer = written(&dir.path().join(n.to_string()), durability);
        committer.fail("the disk is full");
        let Err(EngineError::Unavailable(why)) = committer.close() else {
            panic!("{durability:?}: it closed")
        };
        assert!(
            why.contains("the disk is full") && why.contains("may be missing"),
            "{why}"
        );
    }
}

#[test]
fn a_store_whose_files_are_gone_reports_it_at_close() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("data");
    let mut committer = written(&dir, Durability::Sync);
    std::fs::rename(&dir, parent.path().join("elsewhere")).unwrap();
    committer.check_files();
    assert!(matches!(committer.close(), Err(EngineError::Unavailable(_))));
}

/// A table that is started without space makes the store fail, and is not needed at close.
#[test]
fn a_store_without_space_is_closed_without_writing_tables() {
    let dir = tempfile::tempdir().unwrap();
    let mut committer = written(dir.path(), Durability::Sync);
    committer.options.free_space = crate::FreeSpace::by(|_| Ok(0));
    let store = committer.store.clone().unwrap();
    let large = vec![7; 8 << 20];
    store.space(Space::Item).insert(b"large", large).unwrap();
    assert_eq!(committer.close(), Ok(()));
    assert_eq!(store.space(Space::Item).table_count(), 0);
}

/// Earlier, the committer waited in the store for merges that never came, and blocked every write and the shutdown.
#[test]
fn writes_are_refused_where_tables_become_too_many_because_merges_fail() {
    let dir = tempfile::tempdir().unwrap();
    let mut committer = written(dir.path(), Durability::Sync);
    let store = committer.store.clone().unwrap();
    let space = store.space(Space::Item);
    while space.l0_table_count() < 25 {
        space.insert(b"a", b"").unwrap();
        space.insert(b"z", b"").unwrap();
        space.rotate_memtable_and_wait().unwrap();
    }
    let failed = Space::ALL.map(|space| (space == Space::Item).then(|| "a table is damaged".to_owned()));
    committer.compactor.note_failures(failed);
    let refused = commit(&mut committer, 1, vec![]);
    assert!(
        matches!(&refused, Ok(Outcome::Refused(why)) if why.contains("a table is damaged")),
        "{refused:?}"
    );
    assert_eq!(committer.close(), Ok(()));
}

/// Format 2 had head rows without an edition and is otherwise the same.
#[test]
fn a_store_of_format_2_is_opened_at_the_first_edition_and_becomes_one_of_format_3() {
    let dir = tempfile::tempdir().unwrap();
    let mut committer = written(dir.path(), Durability::Sync);
    assert_eq!(committer.close(), Ok(()));
    drop(committer);
    let format = dir.path().join("FORMAT");
    let made = std::fs::read_to_string(&format).unwrap();
    std::fs::write(&format, made.replace("format 3", "format 2")).unwrap();
    let store = Store::open(&dir.path().join("store"), &LsmOptions::default()).unwrap();
    let row = store
        .space(Space::Meta)
        .get(Kind::Head.key(PARTITION))
        .unwrap()
        .unwrap();
    let older = row.strip_suffix(&Edition::FIRST.0.to_be_bytes()).unwrap();
    assert_eq!(older.len(), 40);
    store
        .space(Space::Meta)
        .insert(Kind::Head.key(PARTITION), older)
        .unwrap();
    drop(store);

    let clock = Arc::new(Clock::virtual_at(NOW));
    let mut committer = Committer::open(dir.path(), clock, LsmOptions::default(), Arc::default()).unwrap();
    assert_eq!(std::fs::read_to_string(&format).unwrap(), made);
    let head = batch(0, vec![]).head();
    assert_eq!(
        committer.resolve(PARTITION, &batch(0, vec![]).ticket()),
        Ok(Resolved::Done(head))
    );
    assert_eq!(head.edition, Edition::FIRST);
    let committed = commit(&mut committer, 1, vec![]);
    assert_eq!(committed, Ok(Outcome::Done(batch(1, vec![]).head())));
}

/// A store cannot be opened again while anybody reads it, and a held snapshot may be read for a minute.
#[test]
fn held_snapshots_have_expired_after_a_failed_store_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut committer = written(dir.path(), Durability::Sync);
    let views = committer.views.clone();
    let hold = views.hold(PARTITION.home(), UnixMillis(i64::MAX), NOW).unwrap();
    let read = |view: &HomeView| view.read(PARTITION, &ReadRequest::default()).unwrap().head.lsn;
    assert_eq!(read(&hold.snapshot(NOW).unwrap()), Lsn(1));
    committer.fail("the disk is full");
    assert_eq!(read(&hold.snapshot(NOW).unwrap()), Lsn(1), "reads go on");
    assert_eq!(committer.try_reopen(), Ok(()));
    assert_eq!(hold.snapshot(NOW).err(), Some(HoldError::Expired));
    let again = views.hold(PARTITION.home(), UnixMillis(i64::MAX), NOW).unwrap();
    assert_eq!(read(&again.snapshot(NOW).unwrap()), Lsn(1));
}

/// Compaction keeps what the oldest reader may read: first the held snapshot, later the newest one.
#[test]
fn a_held_snapshot_is_the_oldest_reader_until_it_is_dropped_or_expires() {
    let dir = tempfile::tempdir().unwrap();
    let mut committer = written(dir.path(), Durability::Sync);
    let views = committer.views.clone();
    let held_at = views.oldest();
    let dropped = views.hold(PARTITION.home(), UnixMillis(i64::MAX), NOW).unwrap();
    let expired = views.hold(PARTITION.home(), UnixMillis(NOW.0 + 1), NOW).unwrap();
    for base in 1..200 {
        assert!(matches!(commit(&mut committer, base, vec![]), Ok(Outcome::Done(_))));
        assert_eq!(views.oldest(), held_at);
    }
    assert!(
        views.snapshots() < 140,
        "those in between are forgotten. snapshots={}",
        views.snapshots()
    );
    drop(dropped);
    assert_eq!(views.oldest(), held_at);
    views.expire(UnixMillis(NOW.0 + 1));
    assert!(views.oldest() > held_at);
    assert_eq!(expired.snapshot(NOW).err(), Some(HoldError::Expired));
}

/// Several batches of one group, including a joint commit: each is checked on the heads after those before it.
#[test]
fn a_joint_commit_is_judged_in_its_place_of_the_group() {
    let dir = tempfile::tempdir().unwrap();
    let mut committer = written(dir.path(), Durability::Sync);
    let other = PartitionId::in_home(PARTITION.home(), 9).unwrap();
    let (created, _) = oneshot::channel();
    let (lone, mut lone_answer) = oneshot::channel();
    let (joint, mut joint_answer) = oneshot::channel();
    let (late, mut late_answer) = oneshot::channel();
    let together = |bases: [u64; 2]| [(PARTITION, batch(bases[0], vec![])), (other, batch(bases[1], vec![]))].to_vec();
    committer.write(vec![
        Write::Create {
            partition: other,
            head: Head::first(NOW),
            reply: created,
        },
        Write::Commit {
            partition: PARTITION,
            batch: batch(1, vec![]),
            reply: lone,
        },
        Write::CommitTogether {
            batches: together([2, 0]),
            reply: joint,
        },
        Write::CommitTogether {
            batches: together([3, 0]),
            reply: late,
        },
    ]);
    assert!(matches!(lone_answer.try_recv(), Ok(Ok(Outcome::Done(_)))));
    let done = JointOutcome::done(&together([2, 0]));
    assert_eq!(joint_answer.try_recv(), Ok(Ok(done)));
    assert_eq!(late_answer.try_recv(), Ok(Ok(JointOutcome::Stale)));
    for (partition, batch) in together([2, 0]) {
        assert_eq!(
            committer.resolve(partition, &batch.ticket()),
            Ok(Resolved::Done(batch.head()))
        );
    }
}

/// If there is no space for one of its batches, none is written.
#[test]
fn a_joint_commit_needs_room_for_all_its_batches() {
    let dir = tempfile::tempdir().unwrap();
    let mut committer = written(dir.path(), Durability::Sync);
    let other = PartitionId::in_home(PARTITION.home(), 9).unwrap();
    let (reply, _) = oneshot::channel();
    committer.write(vec![Write::Create {
        partition: other,
        head: Head::first(NOW),
        reply,
    }]);
    let free = committer.space_limits(&committer.store.clone().unwrap()).reserve + 3_000;
    committer.options.free_space = crate::FreeSpace::by(move |_| Ok(free));
    let put = |bytes| Put {
        key: Key::new(Space::Item, Bytes::from_static(b"key")),
        value: vec![0; bytes].into(),
    };
    let mut commit_both = |bytes| {
        let batches = [
            (PARTITION, batch(1, vec![put(bytes)])),
            (other, batch(0, vec![put(bytes)])),
        ];
        let (reply, mut replied) = oneshot::channel();
        committer.write(vec![Write::CommitTogether {
            batches: batches.to_vec(),
            reply,
        }]);
        replied.try_recv().unwrap()
    };
    let refused = commit_both(1_000);
    assert!(
        matches!(&refused, Ok(JointOutcome::Refused(why)) if why.contains("the disk is full")),
        "{refused:?}"
    );
    assert!(matches!(commit_both(100), Ok(JointOutcome::Done(_))));
}
