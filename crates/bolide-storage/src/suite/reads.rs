//! Claims about gets and scans.

use bolide_model::limits::{ITEM_BYTES, KEY_BYTES};
use bytes::Bytes;

use super::test_engine::{PARTITION, key, put};
use super::{EngineFixture, TestEngine};
use crate::{Page, PartitionId, ReadRequest, Scan, Space};

/// One result per key, in the order of the keys, absent keys included.
pub async fn gets_answer_in_the_order_they_were_asked(fixture: &dyn EngineFixture) {
    let engine = TestEngine::with_partition(fixture).await;
    engine
        .commit_next(
            PARTITION,
            vec![put(Space::Item, b"a", "1"), put(Space::Index, b"b", "")],
            vec![],
        )
        .await;
    let gets = vec![
        key(Space::Index, b"b"),
        key(Space::Item, b"missing"),
        key(Space::Item, b"a"),
        key(Space::Item, b"a"),
    ];
    let response = engine.read(PARTITION, ReadRequest::of_keys(gets)).await;
    let one = Some(Bytes::from("1"));
    assert_eq!(response.gets, [Some(Bytes::new()), None, one.clone(), one]);
}

/// The same bytes are different keys in different spaces and partitions.
pub async fn spaces_and_partitions_do_not_meet(fixture: &dyn EngineFixture) {
    let engine = TestEngine::new(fixture);
    let partitions = [0, 1, 255, 256, u64::MAX - 1].map(PartitionId);
    for partition in partitions {
        engine.create(partition).await;
        let rows = Space::ALL.map(|space| put(space, b"\xff\xff", format!("{partition:?} {space:?}")));
        engine.commit_next(partition, rows.to_vec(), vec![]).await;
    }
    for partition in partitions {
        for space in Space::ALL {
            let expected = Bytes::from(format!("{partition:?} {space:?}"));
            assert_eq!(
                engine.get(partition, key(space, b"\xff\xff")).await,
                Some(expected.clone())
            );
            let rows = engine.scan(partition, Scan::whole(space)).await.rows;
            assert_eq!(rows, [(Bytes::from_static(b"\xff\xff"), expected)]);
        }
    }
}

/// Shorter before longer, bytes as unsigned numbers; the empty key is a key.
pub async fn keys_are_ordered_bytewise(fixture: &dyn EngineFixture) {
    let engine = TestEngine::with_partition(fixture).await;
    let ordered: [&[u8]; 8] = [b"", b"\0", b"\0\0", b"\x01", b"a", b"a\0", b"b", b"\xff\xff"];
    for space in Space::ALL {
        let shuffled = [5, 2, 7, 0, 3, 6, 1, 4].map(|at: usize| put(space, ordered[at], "v"));
        engine.commit_next(PARTITION, shuffled.to_vec(), vec![]).await;
        assert_eq!(engine.keys(PARTITION, space).await, ordered);
        let mut backwards = engine
            .scan(
                PARTITION,
                Scan {
                    reverse: true,
                    ..Scan::whole(space)
                },
            )
            .await
            .rows;
        backwards.reverse();
        assert_eq!(backwards.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), ordered);
    }
}

/// `from` is included and `to` is not, in both directions; a range that ends before it begins is empty.
pub async fn scan_bounds_are_inclusive_below_and_exclusive_above(fixture: &dyn EngineFixture) {
    let engine = TestEngine::with_partition(fixture).await;
    engine
        .commit_next(
            PARTITION,
            ["a", "b", "c", "d"]
                .map(|name| put(Space::Log, name.as_bytes(), "v"))
                .to_vec(),
            vec![],
        )
        .await;
    let cases: [(&str, Option<&str>, &[&str]); 7] = [
        ("", None, &["a", "b", "c", "d"]),
        ("b", None, &["b", "c", "d"]),
        ("b", Some("d"), &["b", "c"]),
        ("aa", Some("cc"), &["b", "c"]),
        ("b", Some("b"), &[]),
        ("c", Some("b"), &[]),
        ("e", None, &[]),
    ];
    for (from, to, expected) in cases {
        for reverse in [false, true] {
            let to = to.map(Bytes::from);
            let scan = Scan {
                from: Bytes::from(from),
                to,
                reverse,
                ..Scan::whole(Space::Log)
            };
            let mut found: Vec<_> = engine
                .scan(PARTITION, scan.clone())
                .await
                .rows
                .into_iter()
                .map(|(key, _)| key)
                .collect();
            if reverse {
                found.reverse();
            }
            assert_eq!(found, expected, "{scan:?}");
        }
    }
}

/// A page ends at its row limit or its byte limit; the row that reaches the byte limit is included; a range with rows gives at least one.
pub async fn pages_hold_what_their_bounds_allow(fixture: &dyn EngineFixture) {
    let engine = TestEngine::with_partition(fixture).await;
    // Four rows of 10 bytes: a key of 1 and a value of 9.
    engine
        .commit_next(
            PARTITION,
            ["a", "b", "c", "d"]
                .map(|name| put(Space::Item, name.as_bytes(), "123456789"))
                .to_vec(),
            vec![],
        )
        .await;
    // (max rows, max bytes, keys only) => (rows, more)
    let cases = [
        ((0, 0, false), (1, true)),
        ((1, usize::MAX, false), (1, true)),
        ((3, usize::MAX, false), (3, true)),
        ((4, usize::MAX, false), (4, false)),
        ((usize::MAX, 10, false), (1, true)),
        ((usize::MAX, 11, false), (2, true)),
        ((usize::MAX, 20, false), (2, true)),
        ((usize::MAX, 39, false), (4, false)),
        ((usize::MAX, 2, true), (2, true)),
        ((2, 11, false), (2, true)),
    ];
    for ((max_rows, max_bytes, keys_only), expected) in cases {
        for reverse in [false, true] {
            let page = engine
                .scan(
                    PARTITION,
                    Scan {
                        max_rows,
                        max_bytes,
                        keys_only,
                        reverse,
                        ..Scan::whole(Space::Item)
                    },
                )
                .await;
            assert_eq!(
                (page.rows.len(), page.more),
                expected,
                "rows={max_rows} bytes={max_bytes} keys_only={keys_only}"
            );
        }
    }
}

/// Gets and scans beyond the byte limit of a request are left out, and the response says so.
pub async fn a_response_holds_what_its_bound_allows(fixture: &dyn EngineFixture) {
    let engine = TestEngine::with_partition(fixture).await;
    // Rows of 10 bytes: a key of 1 and a value of 9.
    engine
        .commit_next(
            PARTITION,
            ["a", "b", "c"]
                .map(|name| put(Space::Item, name.as_bytes(), "123456789"))
                .to_vec(),
            vec![],
        )
        .await;
    let one = |name: &'static [u8], to: &'static [u8]| Scan {
        from: Bytes::from_static(name),
        to: Some(Bytes::from_static(to)),
        ..Scan::whole(Space::Item)
    };
    // Max bytes => rows of each page, and whether more follow.
    let (made, left) = ((1, false), (0, true));
    let cases = [
        (0, [left, left, left]),
        (1, [made, left, left]),
        (10, [made, left, left]),
        (11, [made, made, left]),
        (30, [made, made, made]),
    ];
    for (max_bytes, expected) in cases {
        let request = ReadRequest {
            scans: vec![one(b"a", b"b"), one(b"b", b"c"), one(b"c", b"d")],
            max_bytes,
            ..ReadRequest::default()
        };
        let pages = engine.read(PARTITION, request).await.pages;
        let shown: Vec<_> = pages.iter().map(|page| (page.rows.len(), page.more)).collect();
        assert_eq!(shown, expected, "bytes={max_bytes}");
        let is_made = expected.map(|(_, more)| !more);
        assert!(pages.iter().map(Page::is_made).eq(is_made), "bytes={max_bytes}");
    }
    // Max bytes => number of gets in the response (the second key has no value), and whether the scan after them was made.
    let cases = [
        (0, 1, false),
        (10, 1, false),
        (11, 3, false),
        (20, 3, false),
        (21, 4, true),
    ];
    for (max_bytes, answered, is_made) in cases {
        let request = ReadRequest {
            gets: [&b"a"[..], b"none", b"b", b"none"]
                .map(|name| key(Space::Item, name))
                .to_vec(),
            scans: vec![one(b"c", b"d")],
            max_bytes,
        };
        let response = engine.read(PARTITION, request).await;
        let shown = (
            response.gets.len(),
            response.pages.iter().map(Page::is_made).collect::<Vec<_>>(),
        );
        assert_eq!(shown, (answered, vec![is_made]), "bytes={max_bytes}");
        assert_eq!(response.gets[0].as_deref(), Some(&b"123456789"[..]));
    }
}

/// Reading a scan page by page gives every row once, in both directions.
pub async fn pages_put_together_are_the_range(fixture: &dyn EngineFixture) {
    let engine = TestEngine::with_partition(fixture).await;
    let names: Vec<_> = (0..97u32).map(|n| Bytes::copy_from_slice(&n.to_be_bytes())).collect();
    engine
        .commit_next(
            PARTITION,
            names.iter().map(|name| put(Space::Expiry, name, "v")).collect(),
            vec![],
        )
        .await;
    let mut forward = Vec::new();
    let mut scan = Scan {
        max_rows: 10,
        ..Scan::whole(Space::Expiry)
    };
    loop {
        let page = engine.scan(PARTITION, scan.clone()).await;
        forward.extend(page.rows.into_iter().map(|(key, _)| key));
        if !page.more {
            break;
        }
        // Continue after the last key: the same key plus a zero byte.
        scan.from = [forward.last().expect("a page with more has rows"), &b"\0"[..]]
            .concat()
            .into();
    }
    assert_eq!(forward, names);
    let mut backward = Vec::new();
    let mut scan = Scan {
        max_rows: 10,
        reverse: true,
        ..Scan::whole(Space::Expiry)
    };
    loop {
        let page = engine.scan(PARTITION, scan.clone()).await;
        backward.extend(page.rows.into_iter().map(|(key, _)| key));
        if !page.more {
            break;
        }
        scan.to = backward.last().cloned();
    }
    backward.reverse();
    assert_eq!(backward, names);
}

/// Scans of keys only return whole keys and empty values.
pub async fn keys_only_scans_leave_values_out(fixture: &dyn EngineFixture) {
    let engine = TestEngine::with_partition(fixture).await;
    engine
        .commit_next(
            PARTITION,
            vec![put(Space::Item, b"a", "1"), put(Space::Item, b"b", "2")],
            vec![],
        )
        .await;
    for reverse in [false, true] {
        let page = engine
            .scan(
                PARTITION,
                Scan {
                    keys_only: true,
                    reverse,
                    ..Scan::whole(Space::Item)
                },
            )
            .await;
        assert_eq!(page.rows.len(), 2);
        assert!(page.rows.iter().all(|(key, value)| key.len() == 1 && value.is_empty()));
    }
}

/// The longest keys and largest values of the product are within the engine's limits.
pub async fn longest_keys_and_largest_values_come_back(fixture: &dyn EngineFixture) {
    let engine = TestEngine::with_partition(fixture).await;
    let long = vec![0xfe; KEY_BYTES];
    let large: Vec<u8> = (0..ITEM_BYTES + 4096).map(|at| (at % 251) as u8).collect();
    engine
        .commit_next(PARTITION, vec![put(Space::Item, &long, &large)], vec![])
        .await;
    assert_eq!(
        engine.get(PARTITION, key(Space::Item, &long)).await.as_deref(),
        Some(&large[..])
    );
    assert_eq!(
        engine.scan(PARTITION, Scan::whole(Space::Item)).await.rows,
        [(Bytes::from(long), Bytes::from(large))]
    );
}
