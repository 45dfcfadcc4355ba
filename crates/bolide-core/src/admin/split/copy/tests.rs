use std::collections::BTreeMap;

use bolide_model::time::Monotonic;
use bolide_model::{Lsn, UnixMillis};
use bolide_storage::{Head, Key, PartitionId, Space};
use fastrand::Rng;
use serde_json::json;

use super::*;
use crate::admin::split::halves;
use crate::admin::split::running::Splits;
use crate::fixture::Fixture;
use crate::format::entries;
use crate::partition::Placement;

fn at(lsn: u64) -> Head {
    Head {
        lsn: Lsn(lsn),
        ..Head::first(UnixMillis(0))
    }
}

fn history(lsn: u64) -> Key {
    keys::history(LogPosition { lsn: Lsn(lsn), seq: 0 })
}

fn item(name: &'static str) -> Key {
    Key::new(Space::Item, name)
}

#[test]
fn what_lies_before_the_next_page_is_copied() {
    let mut items = CopyScan::of(Copied::Items);
    assert!(!items.has_copied(&item("a")));
    items.advance(at(9), Some("m".into()));
    let copied = ["a", "m", "m\0", "z"].map(|name| items.has_copied(&item(name)));
    assert_eq!(copied, [true, true, false, false]);
    for space in [Space::Index, Space::Expiry, Space::Log, Space::Meta] {
        assert!(!items.has_copied(&Key::new(space, "a")), "{space:?} is not copied");
    }
    items.advance(at(9), None);
    assert!(items.has_copied(&item("z")));
    assert!(items.next_page(1).is_none());
}

#[test]
fn pages_of_the_history_end_where_it_stood_when_they_began() {
    let mut scan = CopyScan::of(Copied::History);
    assert!(!scan.has_copied(&history(12)), "the first page will have it");
    scan.advance(at(10), Some(history(4).bytes));
    let copied = [4, 5, 10, 11, 12].map(|lsn| scan.has_copied(&history(lsn)));
    assert_eq!(copied, [true, false, false, true, true]);
    scan.advance(at(20), Some(history(8).bytes));
    let copied = [8, 9, 10, 11].map(|lsn| scan.has_copied(&history(lsn)));
    assert_eq!(copied, [true, false, false, true], "the end stays");
    // More rows follow, but none that pages have to copy.
    scan.advance(at(30), Some(history(10).bytes));
    assert!(scan.has_copied(&history(10)));
    let log = LogPosition { lsn: Lsn(1), seq: 0 };
    assert!(!scan.has_copied(&log.key()), "the log before it is not copied");
}

/// A container with everything that makes entries: ids, unique keys, a log, a queue of items with a ttl of their own, a history.
async fn container() -> Fixture {
    Fixture::with(json!({
        "defaultTtl": 100, "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}, {"paths": ["/v"]}]},
        "changeFeedPolicy": {"retentionDuration": 60},
    }))
    .await
}

/// A copy of the fixture's partition that has begun.
async fn begin(fixture: &Fixture) -> Copy {
    let (state, parent) = (fixture.state(), fixture.partition());
    let mut children = Vec::new();
    for (at, epk) in (1..).zip(halves(&state, &parent).expect("two halves")) {
        let placement = Placement {
            id: PartitionId(100 + u64::from(at)),
            range: at,
            epk,
            parents: vec![0],
        };
        let child = Child::create(fixture.engine.clone(), state.indexes.clone(), placement, UnixMillis(0)).await;
        children.push(child.expect("a partition"));
    }
    let running = Arc::new(Splits::new(Monotonic::manual())).begin().await;
    Copy::begin(parent, children, Arc::new(running)).await.expect("a copy")
}

/// All rows of a partition but its counters.
async fn rows(fixture: &Fixture, partition: PartitionId) -> BTreeMap<Key, Bytes> {
    let mut rows = BTreeMap::new();
    for space in Space::ALL.into_iter().filter(|space| *space != Space::Meta) {
        let found = fixture.rows(partition, space).await;
        rows.extend(found.into_iter().map(|(key, value)| (Key::new(space, key), value)));
    }
    rows
}

/// Each child has the items of its range, the entries that the list says of these, and nothing else but history; both together have all rows of the
/// parent, and all of its items in their counters.
async fn assert_children_are_whole(fixture: &Fixture, copy: &Copy) {
    let parent = rows(fixture, fixture.partition().id).await;
    let mut both = BTreeMap::new();
    for child in &copy.children {
        let rows = rows(fixture, child.placement.id).await;
        let (mut expected, mut stored) = (BTreeMap::new(), Amount::default());
        for (key, value) in &rows {
            match Copied::of(key) {
                Some(Copied::Items) => {
                    assert!(
                        child.contains(keys::epk_of_item(&key.bytes)),
                        "an item of the other half"
                    );
                    let record = Record::decode(value.clone()).expect("a record");
                    stored.add(record.size());
                    expected.insert(key.clone(), value.clone());
                    expected.extend(
                        entries::of(&fixture.state().indexes, &key.bytes, &record)
                            .map(|entry| (entry.key.clone(), entry.value())),
                    );
                }
                Some(Copied::History) => {
                    let item_key = HistoryEntry::decode(value).expect("an entry").item_key;
                    assert!(
                        child.contains(keys::epk_of_item(&item_key)),
                        "an event of the other half"
                    );
                    expected.insert(key.clone(), value.clone());
                }
                Some(Copied::Sessions) | None => {}
            }
        }
        assert_eq!(rows, expected, "the entries of its items");
        assert_eq!(child.stored, stored);
        both.extend(rows);
    }
    assert_eq!(both, parent);
}

async fn copy_all(copy: &mut Copy) {
    copy.copy_pages().await.expect("pages");
    copy.finish(UnixMillis(0)).await.expect("an end");
}

#[tokio::test]
async fn the_entries_of_children_are_those_that_the_list_gives_for_their_items() {
    // TTL-277: ghosts of every kind, too.
    let fixture = container().await;
    for n in 0..3 * PAGE_ROWS {
        let mut item = json!({"id": format!("i{n}"), "pk": format!("p{}", n % 50), "u": n, "v": -(n as i64)});
        if n % 3 == 0 {
            item["ttl"] = [5, -1, 1_000][n % 9 / 3].into();
        }
        fixture.upsert(item).await;
    }
    fixture.at(110);
    for n in (0..PAGE_ROWS).step_by(2) {
        fixture
            .upsert(json!({"id": format!("i{n}"), "pk": format!("p{}", n % 50), "u": n, "v": -(n as i64), "n": 1}))
            .await;
    }
    fixture.delete_all_of_key("p7").await;
    fixture.at(205);
    let parent = rows(&fixture, fixture.partition().id).await;
    for space in [Space::Item, Space::Log, Space::Expiry, Space::Index] {
        assert!(parent.keys().any(|key| key.space == space), "{space:?}");
    }
    let mut copy = begin(&fixture).await;
    copy_all(&mut copy).await;
    assert_children_are_whole(&fixture, &copy).await;
}

/// Something that users, or the purge, do to a small container: ids and unique values go from item to item all the time.
async fn disturb(fixture: &Fixture, random: &mut Rng) {
    let item = |random: &mut Rng| {
        let mut item = json!({
            "id": format!("i{}", random.u8(..12)), "pk": format!("p{}", random.u8(..8)),
            "u": random.u8(..30), "v": random.u8(..30), "n": random.u32(..),
        });
        if random.bool() {
            item["ttl"] = [2, 20, -1][random.usize(..3)].into();
        }
        item
    };
    let (pk, id) = (format!("p{}", random.u8(..8)), format!("i{}", random.u8(..12)));
    // What is refused, or finds nothing, disturbs nothing.
    let _ = match random.u8(..10) {
        0 => fixture.try_delete_all_of_key(&pk).await,
        1 => {
            fixture.purge().await;
            Ok(())
        }
        2 => {
            let now = fixture.begin().await.now;
            fixture.clock.set(UnixMillis(now.0 + 1_000 * random.i64(0..30)));
            Ok(())
        }
        3..5 => fixture.try_delete(&pk, &id).await,
        // Perhaps another id for an item that is there.
        5 => fixture.try_replace(&id, item(random)).await.map(drop),
        _ => fixture.try_upsert(item(random)).await.map(drop),
    };
}

/// Whatever is written between two pages, before the page or behind it: what is read last is what counts.
#[tokio::test]
async fn what_is_written_between_pages_leaves_the_children_whole() {
    for seed in 0..40 {
        let (fixture, mut random) = (container().await, Rng::with_seed(seed));
        for _ in 0..150 {
            disturb(&fixture, &mut random).await;
        }
        for _ in 0..20 {
            change_session(&fixture, &mut random).await;
        }
        let mut copy = begin(&fixture).await;
        for at in 0..copy.scans.len() {
            loop {
                let is_page = copy.copy_page(at, 1 + random.usize(..9)).await.expect("a page");
                for _ in 0..random.u8(..12) {
                    disturb(&fixture, &mut random).await;
                    change_session(&fixture, &mut random).await;
                }
                if random.bool() {
                    copy.catch_up().await.expect("dirty keys");
                }
                if !is_page {
                    break;
                }
            }
        }
        copy_all(&mut copy).await;
        assert_children_are_whole(&fixture, &copy).await;
        let parent = sessions(&fixture, fixture.partition().id).await;
        assert!(!parent.is_empty());
        for child in &copy.children {
            assert_eq!(sessions(&fixture, child.placement.id).await, parent);
        }
    }
}

/// A session's retryable write, or its end.
async fn change_session(fixture: &Fixture, random: &mut Rng) {
    let (session, value) = (vec![random.u8(..9)], random.u8(..));
    let is_end = random.u8(..4) == 0;
    let write = move |batch: &mut crate::partition::write_batch::WriteBatch<'_>| {
        let keys = [
            keys::session(&session),
            keys::session_use(bolide_model::UnixSeconds(5), &session),
        ];
        for key in keys {
            match is_end {
                true => batch.delete(key),
                false => batch.put(key, Bytes::copy_from_slice(&[value])),
            }
        }
        Ok(())
    };
    fixture.partition().background(write).await.expect("a commit");
}

async fn sessions(fixture: &Fixture, partition: PartitionId) -> Vec<(Bytes, Bytes)> {
    let mut rows = fixture.rows(partition, Space::Meta).await;
    rows.retain(|(key, _)| keys::is_of_sessions(&Key::new(Space::Meta, key.clone())));
    rows
}
