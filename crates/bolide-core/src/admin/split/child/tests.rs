use bolide_model::UnixSeconds;
use bolide_model::epk::EpkRange;
use bolide_model::time::Clock;
use bolide_model::ttl::{Class, Stamp};
use bolide_storage::memory::MemoryEngine;
use bolide_storage::{PartitionId, Scan, Space};

use super::*;
use crate::format::etag::Etag;
use crate::format::keys::{DIGEST_BYTES, LogPosition, UniqueKey};
use crate::format::record::{Content, Parts};

async fn child() -> Child {
    let clock = Arc::new(Clock::virtual_at(UnixMillis(0)));
    let placement = Placement {
        id: PartitionId(7),
        range: 1,
        epk: EpkRange::all(),
        parents: vec![0],
    };
    let engine = Arc::new(MemoryEngine::new(clock));
    Child::create(engine, Arc::default(), placement, UnixMillis(0))
        .await
        .expect("a partition")
}

/// The version at `lsn` of the `number`-th item, with a unique value and a ttl of its own.
fn item(number: u64, lsn: u64, id: &str, unique: u8, document: &[u8]) -> (Key, Record) {
    let record = Record::new(&Parts {
        version: LogPosition { lsn: Lsn(lsn), seq: 0 },
        last_modified: UnixSeconds(100),
        stamp: Stamp {
            class: Class::Own,
            base: UnixSeconds(160),
        },
        etag: Etag(1),
        number,
        id: id.as_bytes(),
        deadlines: &[],
        unique: &[UniqueKey {
            index: 0,
            digest: [unique; DIGEST_BYTES],
        }],
        content: Content::Json,
        document,
    });
    (keys::item(&Epk::from_bytes(b"E".to_vec()), number), record)
}

/// All rows, as they are committed.
async fn rows(child: &mut Child) -> BTreeMap<Key, Bytes> {
    child.flush().await.expect("a commit");
    let request = ReadRequest {
        scans: Space::ALL.map(Scan::whole).to_vec(),
        ..ReadRequest::default()
    };
    let reply = child.engine.read(child.placement.id, request).await.expect("rows");
    let pages = Space::ALL.into_iter().zip(reply.pages);
    let rows = pages.flat_map(|(space, page)| {
        page.rows
            .into_iter()
            .map(move |(key, value)| (Key::new(space, key), value))
    });
    rows.collect()
}

/// The rows of some items by the list of entries.
fn rows_of(items: &[&(Key, Record)]) -> BTreeMap<Key, Bytes> {
    let mut rows = BTreeMap::new();
    for (key, record) in items {
        rows.insert(key.clone(), record.bytes().clone());
        rows.extend(
            entries::of(&PropertyIndexes::default(), &key.bytes, record)
                .map(|entry| (entry.key.clone(), entry.value())),
        );
    }
    rows
}

#[tokio::test]
async fn an_item_comes_and_leaves_with_all_of_its_entries() {
    for is_committed in [false, true] {
        let mut child = child().await;
        let (a, b) = (item(1, 1, "a", 1, b"{}"), item(2, 2, "b", 2, b"{}"));
        for (key, record) in [&a, &b] {
            child.add_item(key.clone(), record);
        }
        if is_committed {
            assert_eq!(rows(&mut child).await, rows_of(&[&a, &b]));
        }
        assert_eq!((child.stored.items, child.stored.bytes), (2, 4));
        // The third it does not have.
        let gone = [a.0.clone(), item(3, 3, "c", 3, b"{}").0];
        child.remove_items(&gone).await.expect("the parent's rows");
        assert_eq!(rows(&mut child).await, rows_of(&[&b]));
        assert_eq!((child.stored.items, child.stored.bytes), (1, 2));
    }
}

/// The parent's items are read at different moments: one that took another's id may come before the other has left.
#[tokio::test]
async fn what_another_item_has_taken_over_stays_when_the_first_one_leaves() {
    for is_committed in [false, true] {
        let mut child = child().await;
        let (before, after) = (item(1, 1, "a", 1, b"{}"), item(2, 2, "a", 1, b"{}"));
        for (key, record) in [&before, &after] {
            child.add_item(key.clone(), record);
        }
        if is_committed {
            child.flush().await.expect("a commit");
        }
        child
            .remove_items(std::slice::from_ref(&before.0))
            .await
            .expect("the parent's rows");
        assert_eq!(rows(&mut child).await, rows_of(&[&after]));
    }
}

/// Rows that are too many for one commit go in several, and every look at what the child has sees those that wait and those that are stored.
#[tokio::test]
async fn commits_are_no_larger_than_they_may_be() {
    let mut child = child().await;
    let document = vec![b' '; 2_000];
    let items: Vec<(Key, Record)> = (0..400u64).map(|n| item(n, n, &n.to_string(), 1, &document)).collect();
    for (key, record) in &items {
        child.add_item(key.clone(), record);
    }
    // Of those with one unique value, the last holds it.
    let (waiting, bytes) = (child.waiting.len(), child.waiting_bytes);
    assert_eq!(waiting, 400 * 4 + 1);
    let exact = child
        .waiting
        .iter()
        .map(|(key, value)| key.bytes.len() + value.as_ref().map_or(0, Bytes::len));
    assert_eq!(bytes, exact.sum::<usize>());
    let first = child.next_rows();
    let first_bytes: usize = first.values().flatten().map(Bytes::len).sum();
    assert!(first.len() <= COMMIT_ROWS && first_bytes <= COMMIT_BYTES + 3_000);
    assert_eq!(child.waiting.len(), waiting - first.len());
    child.waiting.extend(first);
    child.waiting_bytes = bytes;
    child.commit_if_full().await.expect("commits");
    assert!(child.commits >= 4, "{} commits", child.commits);
    assert!(child.waiting.len() < COMMIT_ROWS && child.waiting_bytes < COMMIT_BYTES);
    let (even, odd): (Vec<_>, Vec<_>) = items.iter().partition(|(_, record)| record.number() % 2 == 0);
    let keys: Vec<Key> = even.iter().map(|(key, _)| key.clone()).collect();
    child.remove_items(&keys).await.expect("what it has");
    assert_eq!(rows(&mut child).await, rows_of(&odd));
    assert_eq!(child.waiting_bytes, 0);
}
