use super::*;

const PARTITION: PartitionId = PartitionId(7);

#[test]
fn spaces_of_a_partition_lie_between_its_commits_and_the_next_partition() {
    let next = PartitionId(8);
    let (first, end) = spaces(PARTITION);
    assert!(commits(PARTITION).1 <= first);
    assert!(end < commits(next).0);
    for space in Space::ALL {
        let (from, to) = scanned(PARTITION, &Scan::whole(space));
        assert!(first <= from && from < to && to <= end, "{space:?}");
        let longest = key(PARTITION, &Key::new(space, vec![0xff; 100]));
        assert!(from <= longest && longest < to, "{space:?}");
    }
    let ends: Vec<_> = Space::ALL.map(|space| scanned(PARTITION, &Scan::whole(space))).into();
    assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0));
}

#[test]
fn records_come_back_and_are_in_the_order_of_their_commits() {
    let first = CommitRecord::first(Head {
        lsn: Lsn(41),
        stamp: UnixMillis(-5),
        edition: Edition(u64::MAX),
    });
    let batch = Batch {
        base: Lsn(41),
        next: Lsn(44),
        stamp: UnixMillis(1_700_000_000_000),
        edition: Edition(3),
        token: CommitToken(u128::MAX - 1),
        puts: vec![],
        deletes: vec![],
        new_keys: Vec::new(),
        may_block: false,
    };
    let second = CommitRecord::of(&batch);
    for record in [first, second, second.fenced()] {
        assert_eq!(
            CommitRecord::read(&record.key(PARTITION), &record.value()),
            Some(record)
        );
    }
    assert!(first.key(PARTITION) < second.key(PARTITION));
    assert_eq!(second.key(PARTITION), ticket_key(PARTITION, &batch.ticket()));
    assert_ne!(second.value(), second.fenced().value());
    assert_eq!(second.key(PARTITION), second.fenced().key(PARTITION));
}

#[test]
fn damaged_records_are_seen() {
    let record = CommitRecord::first(Head::first(UnixMillis(0)));
    let (key, value) = (record.key(PARTITION), record.value());
    assert_eq!(CommitRecord::read(&key, &value[1..]), None);
    assert_eq!(CommitRecord::read(&key, &[&value[..], b"x"].concat()), None);
    assert_eq!(CommitRecord::read(&key[1..], &value), None);
}

#[test]
fn trimming_leaves_the_first_record() {
    let (from, to) = records_before(PARTITION, record_key(PARTITION, 9));
    assert!(CommitRecord::first(Head::first(UnixMillis(0))).key(PARTITION) < from);
    assert!(from < to && to < commits(PARTITION).1);
}

#[test]
fn times_are_in_their_order() {
    let times = [i64::MIN, -1, 0, 1, 1_700_000_000_000, i64::MAX].map(UnixMillis);
    assert!(times.map(time_bytes).is_sorted());
    assert_eq!(times.map(|time| time_of(&time_bytes(time))), times.map(Some));
}

#[test]
fn the_stores_own_rows_belong_to_no_partition() {
    let last = PartitionId(u64::from(u32::MAX - 1));
    assert!(is_storable(last) && !is_storable(PartitionId(u64::from(u32::MAX))));
    for own in [listed(PARTITION), removal(PARTITION), store_key("time")] {
        assert!(spaces(last).1 < own);
    }
    assert_eq!(removed(&removal(PARTITION)), Some(PARTITION));
    let within = |key: &Vec<u8>, range: Range| range.0 <= *key && *key < range.1;
    assert!(within(&listed(PARTITION), partition_list()) && within(&removal(PARTITION), removals()));
}
