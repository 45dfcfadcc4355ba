//! Where pages end and go on, and what they show: two walks of one scope differ in nothing but where they paused.

use bolide_model::ErrorKind;
use bolide_model::epk::{Epk, EpkRange};
use bolide_storage::Space;
use serde_json::json;

use super::super::scanned_items::WALK_ROWS;
use super::*;
use crate::content::logical;
use crate::fixture::{Fixture, key};
use crate::format::record::Record;
use crate::scan::ScanScope;
use crate::throughput::Throughput;

/// A stored item of the fixture's first partition, ghosts included.
struct Stored {
    key: Bytes,
    id: String,
}

/// What is stored, in the order of keys.
async fn stored(fixture: &Fixture) -> Vec<Stored> {
    let mut stored = Vec::new();
    for partition in &fixture.state().layout.partitions {
        for (key, value) in fixture.rows(partition.id, Space::Item).await {
            let id = Record::decode(value).expect("a record").id().to_owned();
            stored.push(Stored { key, id });
        }
    }
    stored
}

fn ids_of(stored: &[Stored]) -> Vec<&str> {
    stored.iter().map(|stored| stored.id.as_str()).collect()
}

fn plenty() -> MemoryBudget {
    MemoryBudget::new(1024 * 1024 * 1024)
}

fn of_key(pk: &str) -> ScanScope {
    ScanScope {
        partition_key: Some(key(pk)),
        ..ScanScope::default()
    }
}

/// A walk that begins now.
async fn scan_slices<'f>(
    fixture: &'f Fixture,
    slices: Vec<Slice>,
    memory: &MemoryBudget,
    after: Option<&[u8]>,
) -> ItemScan<'f> {
    let now = fixture.begin().await.now;
    let (clock, state) = (Monotonic::manual(), fixture.state());
    ItemScan::new(&clock, memory, &fixture.container, &state, slices, now, after)
}

async fn scan<'f>(fixture: &'f Fixture, scope: &ScanScope) -> ItemScan<'f> {
    let slices = scope.slices(&fixture.state()).expect("a scope");
    scan_slices(fixture, slices, &plenty(), None).await
}

/// The ids of the next page; `None` at the end.
async fn next(scan: &mut ItemScan<'_>) -> Option<Vec<String>> {
    let page = scan.next_page().await.expect("a page")?;
    Some(page.items.iter().map(|scanned| scanned.item.id().to_owned()).collect())
}

/// The ids of all pages that are left.
async fn rest(scan: &mut ItemScan<'_>) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    while let Some(page) = next(scan).await {
        pages.push(page);
    }
    pages
}

/// Items in so many logical partitions, one each.
async fn spread(count: usize) -> Fixture {
    let fixture = Fixture::with(json!({"defaultTtl": -1})).await;
    for n in 0..count {
        fixture
            .upsert(json!({"id": format!("i{n:04}"), "pk": format!("p{n}")}))
            .await;
    }
    fixture
}

async fn in_several_ranges(more: serde_json::Value) -> Fixture {
    let fixture = Fixture::with_throughput(more, Some(Throughput::Manual { ru: 30_000 })).await;
    assert!(fixture.state().layout.partitions.len() > 2);
    fixture
}

/// The slices of single logical partitions, in the order of their keys.
fn slices_of_keys(fixture: &Fixture, keys: impl Iterator<Item = String>) -> Vec<Slice> {
    let slices = keys.flat_map(|pk| of_key(&pk).slices(&fixture.state()).expect("a scope"));
    let mut slices: Vec<Slice> = slices.collect();
    slices.sort_by(|a, b| a.from.cmp(&b.from));
    slices
}

#[tokio::test]
async fn pages_end_with_their_last_row_and_the_next_begins_behind_it() {
    let fixture = spread(WALK_ROWS + 5).await;
    let stored = stored(&fixture).await;
    let mut walk = scan(&fixture, &ScanScope::default()).await;
    assert_eq!(walk.next_key(), Some(Bytes::new()), "the beginning of the range");
    assert_eq!(next(&mut walk).await.expect("a page"), ids_of(&stored[..WALK_ROWS]));
    assert_eq!(walk.next_key(), Some(keys::after(&stored[WALK_ROWS - 1].key)));
    assert_eq!((walk.next_range(), walk.slices_left()), (Some(0), 1));
    assert_eq!(next(&mut walk).await.expect("a page"), ids_of(&stored[WALK_ROWS..]));
    assert_eq!(
        (walk.next_key(), walk.next_range(), walk.slices_left()),
        (None, None, 0)
    );
    assert_eq!(next(&mut walk).await, None);
}

/// A page that is full with the last item does not know yet that it is the last.
#[tokio::test]
async fn a_full_page_may_be_the_last() {
    let fixture = spread(WALK_ROWS).await;
    let mut walk = scan(&fixture, &ScanScope::default()).await;
    assert_eq!(next(&mut walk).await.map(|page| page.len()), Some(WALK_ROWS));
    assert_eq!(rest(&mut walk).await.concat(), Vec::<String>::new());
}

#[tokio::test]
async fn a_walk_goes_on_in_the_middle_of_a_partition_key() {
    let fixture = Fixture::with(json!({"defaultTtl": -1})).await;
    for n in 0..WALK_ROWS + 20 {
        fixture.upsert(json!({"id": format!("i{n:04}")})).await;
    }
    for n in 0..50 {
        fixture
            .upsert(json!({"id": format!("o{n}"), "pk": format!("q{n}")}))
            .await;
    }
    let epk = logical::of(&fixture.state().properties.partition_key, &key("p"));
    let mut stored = stored(&fixture).await;
    stored.retain(|stored| keys::epk_of_item(&stored.key) == epk.as_bytes());
    let mut whole = scan(&fixture, &of_key("p")).await;
    let pages = rest(&mut whole).await;
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [WALK_ROWS, 20]);
    assert_eq!(pages.concat(), ids_of(&stored));
    for done in [1, 700, stored.len() - 1, stored.len()] {
        let slices = of_key("p").slices(&fixture.state()).expect("a scope");
        let after = &stored[done - 1].key;
        let mut resumed = scan_slices(&fixture, slices, &plenty(), Some(after)).await;
        assert_eq!(
            rest(&mut resumed).await.concat(),
            ids_of(&stored[done..]),
            "after {done}"
        );
    }
}

/// Slices behind the one that fills a page are not read, which is not their end.
#[tokio::test]
async fn a_page_holds_no_more_bytes_than_it_may() {
    const ITEM: usize = 300_000;
    let full = WALK_BYTES.div_ceil(ITEM);
    let fixture = Fixture::with(json!({"defaultTtl": -1})).await;
    for n in 0..10 {
        let item = json!({"id": format!("i{n}"), "pk": format!("p{n}"), "text": "x".repeat(ITEM)});
        fixture.upsert(item).await;
    }
    let all = stored(&fixture).await;
    let whole = ScanScope::default().slices(&fixture.state()).expect("a scope");
    let of_keys = slices_of_keys(&fixture, (0..10).map(|n| format!("p{n}")));
    for slices in [whole, of_keys] {
        let mut walk = scan_slices(&fixture, slices, &plenty(), None).await;
        let pages = rest(&mut walk).await;
        let lengths: Vec<usize> = pages.iter().map(Vec::len).collect();
        assert_eq!(lengths, [full, 10 - full]);
        assert_eq!(pages.concat(), ids_of(&all));
    }
}

#[tokio::test]
async fn where_memory_is_short_pages_are_small_and_without_any_the_walk_stays_where_it_is() {
    let fixture = Fixture::with(json!({"defaultTtl": -1})).await;
    for n in 0..40 {
        fixture
            .upsert(json!({"id": format!("i{n:02}"), "text": "x".repeat(10_000)}))
            .await;
    }
    let all = ids_of(&stored(&fixture).await).concat();
    // For a page of `SHORT_BYTES`, and not for all items.
    let memory = MemoryBudget::new(200 * 1024);
    let slices = ScanScope::default().slices(&fixture.state()).expect("a scope");
    let mut walk = scan_slices(&fixture, slices, &memory, None).await;
    let first = walk.next_page().await.expect("a small page").expect("items");
    assert_eq!(first.items.len(), SHORT_BYTES.div_ceil(10_000), "a small page");
    assert!(
        first.memory.bytes() >= first.items.len() * 10_000,
        "what it holds is taken"
    );
    let others: Vec<MemoryShare> = std::iter::from_fn(|| memory.try_take(1024).ok()).collect();
    let place = walk.next_key();
    let refused = walk.next_page().await.map(|_| ()).map_err(|error| error.kind);
    assert!(matches!(refused, Err(ErrorKind::Throttled { .. })), "{refused:?}");
    assert_eq!(walk.next_key(), place);
    let mut seen: Vec<String> = first.items.iter().map(|scanned| scanned.item.id().to_owned()).collect();
    drop((first, others));
    seen.extend(rest(&mut walk).await.concat());
    assert_eq!(seen.concat(), all, "nothing twice, nothing left out");
    assert_eq!(memory.used_bytes(), 0, "all is given back");
}

#[tokio::test]
async fn ghosts_are_left_out_wherever_they_lie() {
    // TTL-235
    let fixture = Fixture::with(json!({"defaultTtl": 10})).await;
    // Every kind of neighbour: live, expired by the default, expired by its own ttl, deleted with its key.
    for n in 0..200 {
        let (pk, ttl) = (["p", "dropped"][usize::from(n % 4 == 3)], [-1, 10, 5, -1][n % 4]);
        fixture
            .upsert(json!({"id": format!("i{n:03}"), "pk": pk, "ttl": ttl}))
            .await;
    }
    fixture.delete_all_of_key("dropped").await;
    fixture.at(110);
    let live: Vec<String> = (0..200).step_by(4).map(|n| format!("i{n:03}")).collect();
    assert_eq!(rest(&mut scan(&fixture, &ScanScope::default()).await).await, [live]);
    assert_eq!(
        rest(&mut scan(&fixture, &of_key("dropped")).await).await.concat(),
        Vec::<String>::new()
    );
    assert_eq!(stored(&fixture).await.len(), 200, "all of them are stored");
}

#[tokio::test]
async fn a_page_of_ghosts_is_empty_and_not_the_end() {
    let fixture = Fixture::with(json!({"defaultTtl": 10})).await;
    for n in 0..WALK_ROWS {
        fixture.upsert(json!({"id": format!("i{n:04}")})).await;
    }
    fixture.upsert(json!({"id": "live", "ttl": -1})).await;
    fixture.at(110);
    let mut walk = scan(&fixture, &of_key("p")).await;
    assert_eq!(next(&mut walk).await, Some(vec![]));
    assert_eq!(next(&mut walk).await, Some(vec!["live".to_owned()]));
    assert_eq!(next(&mut walk).await, None);
}

#[tokio::test]
async fn a_walk_judges_all_of_its_pages_at_one_time_and_the_purge_waits_for_it() {
    // TTL-211
    let fixture = Fixture::with(json!({"defaultTtl": 10})).await;
    for n in 0..WALK_ROWS + 30 {
        fixture.upsert(json!({"id": format!("i{n:04}")})).await;
    }
    fixture.at(109);
    let mut walk = scan(&fixture, &of_key("p")).await;
    assert_eq!(next(&mut walk).await.map(|page| page.len()), Some(WALK_ROWS));
    fixture.at(200);
    assert_eq!(fixture.purge().await, 0, "somebody still reads at 109");
    // A page is never judged before the newest commit that it has, but for this.
    fixture.upsert(json!({"id": "later"})).await;
    assert_eq!(rest(&mut walk).await.concat().len(), 31, "as they were at 109");
    let mut later = scan(&fixture, &of_key("p")).await;
    assert_eq!(rest(&mut later).await.concat(), ["later"]);
    drop((walk, later));
    assert_eq!(fixture.purge().await, WALK_ROWS as u64 + 30);
}

/// What was removed before the walk registered was due by then, if not when its request began: nothing else of that second is shown, in whatever
/// range.
#[tokio::test]
async fn a_walk_whose_request_began_before_a_ghost_was_removed_is_judged_after_that() {
    let fixture = in_several_ranges(json!({"defaultTtl": 10})).await;
    let layout = fixture.state().layout.clone();
    let pk_in = |partition: &Partition| {
        let definition = &fixture.state().properties.partition_key;
        let is_in = |pk: &String| partition.epk.contains(&Epk::of(definition, &key(pk)));
        (0..).map(|n| format!("p{n}")).find(is_in).expect("a key of the range")
    };
    let [first, last] = [0, layout.partitions.len() - 1].map(|at| pk_in(&layout.partitions[at]));
    fixture.upsert(json!({"id": "a", "pk": first})).await;
    fixture.upsert(json!({"id": "b", "pk": last})).await;
    fixture.at(109);
    let began = fixture.begin().await.now;
    fixture.at(110);
    // Removes the ghost, in the last range only.
    fixture.upsert(json!({"id": "b", "pk": last})).await;
    let state = fixture.state();
    let slices = ScanScope::default().slices(&state).expect("a scope");
    let clock = Monotonic::manual();
    let mut walk = ItemScan::new(&clock, &plenty(), &fixture.container, &state, slices, began, None);
    assert_eq!(rest(&mut walk).await.concat(), ["b"]);
}

#[tokio::test]
async fn a_scope_over_several_ranges_is_walked_range_by_range() {
    let fixture = in_several_ranges(json!({"defaultTtl": -1})).await;
    let ranges = fixture.state().layout.partitions.len();
    for n in 0..60 {
        fixture
            .upsert(json!({"id": format!("i{n}"), "pk": format!("p{n}")}))
            .await;
    }
    let all = stored(&fixture).await;
    let mut walk = scan(&fixture, &ScanScope::default()).await;
    let mut seen = Vec::new();
    for (at, partition) in fixture.state().layout.partitions.iter().enumerate() {
        assert_eq!(
            (walk.next_range(), walk.slices_left()),
            (Some(partition.range), ranges - at)
        );
        let from = walk.next_key().expect("a range that is left");
        assert_eq!(from, partition.epk.min.as_bytes());
        let page = walk.next_page().await.expect("a page").expect("items");
        assert!(page.items.iter().all(|scanned| scanned.range == partition.range));
        seen.extend(page.items.iter().map(|scanned| scanned.item.id().to_owned()));
    }
    assert_eq!(next(&mut walk).await, None);
    assert_eq!(seen, ids_of(&all));
    let touched: Vec<(u32, Lsn)> = walk
        .touched()
        .iter()
        .map(|touched| (touched.range, touched.lsn))
        .collect();
    let heads = fixture.container.ranges().ranges;
    assert_eq!(
        touched,
        heads.iter().map(|range| (range.id, range.lsn)).collect::<Vec<_>>()
    );

    // Behind an item in the middle of the second range: nothing of the first is read again.
    let second = &fixture.state().layout.partitions[1];
    let at = all
        .iter()
        .position(|stored| &stored.key[..] > second.epk.min.as_bytes());
    let at = at.expect("items in the second range") + 1;
    let slices = ScanScope::default().slices(&fixture.state()).expect("a scope");
    let mut resumed = scan_slices(&fixture, slices, &plenty(), Some(&all[at].key)).await;
    assert_eq!(resumed.next_range(), Some(second.range));
    assert_eq!(rest(&mut resumed).await.concat(), ids_of(&all[at + 1..]));
}

/// Many single keys of few items are read as one range that leaves out what lies between; of many items, key by key. Both show the same.
#[tokio::test]
async fn many_slices_show_their_items_and_none_that_lie_between() {
    const SLICES: usize = MANY_SLICES + 6;
    for others in [0, ITEMS_PER_SLICE as usize * SLICES] {
        let fixture = spread(2 * SLICES).await;
        for n in 0..others {
            fixture
                .upsert(json!({"id": format!("o{n}"), "pk": format!("o{n}")}))
                .await;
        }
        let every_other = (0..SLICES).map(|n| format!("p{}", 2 * n));
        let slices = slices_of_keys(&fixture, every_other);
        assert_eq!(slices.len(), SLICES);
        let mut expected = Vec::new();
        for stored in stored(&fixture).await {
            if slices.iter().any(|slice| slice.contains(&stored.key)) {
                expected.push(stored.id);
            }
        }
        assert_eq!(expected.len(), SLICES);
        let mut walk = scan_slices(&fixture, slices.clone(), &plenty(), None).await;
        let pages = rest(&mut walk).await;
        assert_eq!(pages.concat(), expected, "beside {others} others");
        assert_eq!(
            pages.len() == 1,
            others == 0,
            "{} pages beside {others} others",
            pages.len()
        );
        assert_eq!(walk.touched().len(), 1);

        let middle = &slices[SLICES / 2].from;
        let after = keys::after_prefix(middle).expect("a key behind the slice");
        let mut resumed = scan_slices(&fixture, slices, &plenty(), Some(&after)).await;
        assert_eq!(rest(&mut resumed).await.concat(), expected[SLICES / 2 + 1..]);
    }
}

#[tokio::test]
async fn many_slices_of_several_ranges_are_one_page_for_each_range() {
    let fixture = in_several_ranges(json!({"defaultTtl": -1})).await;
    let ranges = fixture.state().layout.partitions.len();
    let keys = || (0..2 * MANY_SLICES * ranges).map(|n| format!("p{n}"));
    for pk in keys() {
        fixture.upsert(json!({"id": pk, "pk": pk})).await;
    }
    let slices = slices_of_keys(&fixture, keys());
    let mut walk = scan_slices(&fixture, slices, &plenty(), None).await;
    let pages = rest(&mut walk).await;
    assert_eq!((pages.len(), walk.touched().len()), (ranges, ranges));
    assert_eq!(pages.concat(), ids_of(&stored(&fixture).await));
}

/// Slices share a page: one with more items than its part of it ends the page, and goes on with the next, before the slices behind it.
#[tokio::test]
async fn a_long_slice_among_short_ones_is_walked_to_its_end_before_the_next() {
    let fixture = spread(FIRST_SLICES * 2).await;
    for n in 0..3 * WALK_ROWS / FIRST_SLICES {
        fixture.upsert(json!({"id": format!("long{n:03}"), "pk": "p7"})).await;
    }
    let slices = slices_of_keys(&fixture, (0..FIRST_SLICES * 2).map(|n| format!("p{n}")));
    let mut walk = scan_slices(&fixture, slices, &plenty(), None).await;
    let pages = rest(&mut walk).await;
    assert!(pages.len() > 2, "{} pages", pages.len());
    assert_eq!(pages.concat(), ids_of(&stored(&fixture).await));
}

/// The same where the slices are read as one range: its page ends inside of a slice, or between two.
#[tokio::test]
async fn a_range_of_many_slices_goes_on_wherever_its_page_ended() {
    let fixture = spread(MANY_SLICES).await;
    for n in 0..200 {
        fixture
            .upsert(json!({"id": format!("i{n}"), "pk": "p7", "text": "x".repeat(20_000)}))
            .await;
        fixture
            .upsert(json!({"id": format!("o{n}"), "pk": "other", "text": "x".repeat(20_000)}))
            .await;
    }
    let slices = slices_of_keys(&fixture, (0..MANY_SLICES).map(|n| format!("p{n}")));
    let mut expected = Vec::new();
    for stored in stored(&fixture).await {
        if slices.iter().any(|slice| slice.contains(&stored.key)) {
            expected.push(stored.id);
        }
    }
    assert_eq!(expected.len(), MANY_SLICES + 200);
    let mut walk = scan_slices(&fixture, slices, &plenty(), None).await;
    let pages = rest(&mut walk).await;
    assert!(pages.len() >= 400 * 20_000 / WALK_BYTES, "{} pages", pages.len());
    assert_eq!(pages.concat(), expected);
}

#[tokio::test]
async fn a_key_that_is_deleted_between_two_pages_is_gone_from_the_next_removed_or_not() {
    for is_removed in [false, true] {
        let fixture = Fixture::with(json!({"defaultTtl": -1})).await;
        for n in 0..WALK_ROWS + 40 {
            fixture.upsert(json!({"id": format!("i{n:04}")})).await;
        }
        for n in 0..40 {
            fixture
                .upsert(json!({"id": format!("o{n}"), "pk": format!("q{n}")}))
                .await;
        }
        let before = stored(&fixture).await;
        let mut walk = scan(&fixture, &ScanScope::default()).await;
        let mut seen = next(&mut walk).await.expect("a page");
        fixture.delete_all_of_key("p").await;
        // Newer than the deletion: it is there, and behind everything of its key.
        fixture.upsert(json!({"id": "new"})).await;
        if is_removed {
            fixture.purge().await;
            assert_eq!(fixture.stored_ids().await.len(), 41, "removed");
        }
        seen.extend(rest(&mut walk).await.concat());
        let is_of_key = |stored: &&Stored| stored.id.starts_with('i');
        let page_one = ids_of(&before[..WALK_ROWS]);
        let left = before[WALK_ROWS..].iter().filter(|stored| !is_of_key(stored));
        let mut expected: Vec<&str> = page_one
            .into_iter()
            .chain(left.map(|stored| stored.id.as_str()))
            .collect();
        seen.sort();
        expected.push("new");
        expected.sort();
        assert_eq!(seen, expected, "removed: {is_removed}");
    }
}

#[tokio::test]
async fn an_interval_of_effective_keys_cuts_a_scope() {
    let fixture = spread(80).await;
    let all = stored(&fixture).await;
    let epk = |at: usize| {
        let definition = &fixture.state().properties.partition_key;
        let pk = format!("p{}", all[at].id[1..].parse::<usize>().expect("a number"));
        Epk::of(definition, &key(&pk))
    };
    let scope = ScanScope {
        epk: Some(EpkRange::new(epk(10), epk(30))),
        ..ScanScope::default()
    };
    assert_eq!(
        rest(&mut scan(&fixture, &scope).await).await.concat(),
        ids_of(&all[10..30])
    );
}

#[tokio::test]
async fn the_oldest_are_kept_up_to_a_number_and_up_to_the_one_that_reaches_the_bytes() {
    let fixture = spread(12).await;
    let walked = async || {
        let mut walk = scan(&fixture, &ScanScope::default()).await;
        walk.next_page().await.expect("a page").expect("items")
    };
    let size = walked().await.items[0].memory_bytes();
    for (max, bytes, kept) in [
        (12, usize::MAX, 12),
        (5, usize::MAX, 5),
        (12, 1, 1),
        (12, 3 * size, 3),
        (12, 3 * size + 1, 4),
    ] {
        let mut items = walked().await;
        let is_all = items.keep_oldest(max, bytes);
        assert_eq!(
            (items.items.len(), is_all),
            (kept, kept == 12),
            "{max} items, {bytes} bytes"
        );
        let ids: Vec<&str> = items.items.iter().map(|scanned| scanned.item.id()).collect();
        assert!(ids.is_sorted(), "in the order of their creation: {ids:?}");
        assert_eq!(ids[0], "i0000");
        assert!(
            items.memory.bytes() < kept * size + 1024,
            "the others' memory is given back"
        );
    }
}

#[test]
fn a_range_is_noted_once_and_charged_for_all() {
    let mut touched = Vec::new();
    record_range(&mut touched, 1, Lsn(5));
    record_range(&mut touched, 2, Lsn(6));
    record_range(&mut touched, 1, Lsn(9));
    add_charge(&mut touched, 1, RequestUnits(2.0));
    add_charge(&mut touched, 1, RequestUnits(3.0));
    add_charge(&mut touched, 7, RequestUnits(4.0));
    let noted: Vec<_> = touched.iter().map(|at| (at.range, at.lsn, at.charge.0)).collect();
    assert_eq!(
        noted,
        [(1, Lsn(5), 5.0), (2, Lsn(6), 0.0)],
        "how far it had come when it was first read"
    );
}
