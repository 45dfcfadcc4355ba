use bolide_model::{Lsn, UnixMillis};
use bolide_storage::{Batch, CommitToken, Edition, Head};

use super::*;

const PARTITION: PartitionId = PartitionId(7);

fn commit(lsn: u64, stamp: i64) -> CommitRecord {
    CommitRecord::of(&Batch {
        base: Lsn(lsn - 1),
        next: Lsn(lsn),
        stamp: UnixMillis(stamp),
        edition: Edition(0),
        token: CommitToken(u128::from(lsn)),
        puts: vec![],
        deletes: vec![],
        new_keys: Vec::new(),
        may_block: false,
    })
}

#[test]
fn an_older_answer_does_not_replace_a_newer_one() {
    let partitions = Partitions::default();
    let first = CommitRecord::first(Head::first(UnixMillis(0)));
    for known in [commit(3, 0), commit(2, 0), first] {
        partitions.learn(PARTITION, Known::Newest(known));
    }
    assert_eq!(partitions.known(PARTITION), Some(commit(3, 0)));
    partitions.learn(PARTITION, Known::Newest(commit(3, 0).fenced()));
    partitions.learn(PARTITION, Known::Newest(commit(3, 0)));
    assert_eq!(partitions.known(PARTITION), Some(commit(3, 0).fenced()));
    partitions.forget(PARTITION);
    assert_eq!(partitions.known(PARTITION), None);
}

/// Every commit of the last minute can be resolved, and the last ones however old they are.
#[test]
fn records_are_trimmed_a_minute_after_they_were_followed_by_many() {
    let partitions = Partitions::default();
    let state = partitions.get(PARTITION);
    let mut trimmed = Vec::new();
    for lsn in 1..=1_000u64 {
        let stamp = lsn.cast_signed() * 500;
        partitions.learn(PARTITION, Known::Committed(commit(lsn, stamp)));
        if let Some(until) = state.trimmable() {
            assert!(stamp - until.head.stamp.0 >= RECORDS_KEPT_MS);
            assert!(lsn - until.head.lsn.0 >= RECORDS_KEPT);
            trimmed.push(until);
        }
        assert!(state.trimmable().is_none(), "once");
    }
    assert_eq!(trimmed.len(), 8);
    // Rare commits.
    for lsn in 1_001..1_001 + RECORDS_KEPT {
        partitions.learn(PARTITION, Known::Committed(commit(lsn, lsn.cast_signed() * 1_000_000)));
    }
    assert!(trimmed.is_sorted_by_key(|record| record.head.lsn));
}
