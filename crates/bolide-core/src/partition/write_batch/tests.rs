use bolide_model::epk::Epk;
use bolide_storage::ReadResponse;

use super::*;

/// Regression: a page of a scan with an earlier end was used as the complete result of a scan with a later end.
#[test]
fn a_scan_with_another_end_is_read_anew() {
    let scan = |to: &'static [u8]| Scan {
        space: Space::Expiry,
        from: Bytes::from_static(b"a"),
        to: Some(Bytes::from_static(to)),
        reverse: false,
        max_rows: 10,
        max_bytes: 1_000,
        keys_only: false,
    };
    let mut loaded = Loaded::default();
    let missing = Missing {
        scans: vec![scan(b"b")],
        ..Missing::default()
    };
    let page = Page {
        rows: vec![(Bytes::from_static(b"a1"), Bytes::new())],
        ..Page::default()
    };
    let response = ReadResponse {
        head: bolide_storage::Head {
            lsn: Lsn(1),
            ..bolide_storage::Head::first(UnixMillis(1))
        },
        gets: vec![],
        pages: vec![page],
    };
    loaded.take(missing, response);
    let mut batch = WriteBatch::new(UnixMillis(1), Lsn(1), PartitionState::default(), &loaded);
    assert_eq!(batch.scan_raw(&[scan(b"b")]).expect("it was read")[0].rows.len(), 1);
    assert!(matches!(batch.scan_raw(&[scan(b"c")]), Err(Stop::NeedsRead)));
}

/// An engine that checks what is new inserts it for less than what may be there.
#[test]
fn new_are_rows_under_new_numbers_and_positions_after_the_head() {
    let head = Lsn(7);
    let entry = keys::id_index(b"p", b"a");
    let [created, undone, replaced] = [1, 2, 3].map(|number| keys::item(&Epk::start(), number));
    let [before, after] = [(7, 5), (8, 0)].map(|(lsn, seq)| LogPosition { lsn: Lsn(lsn), seq });
    let decided = |takes| {
        let loaded = Loaded::default();
        let batch = WriteBatch::new(UnixMillis(1), head, PartitionState::default(), &loaded);
        let mut batch = batch.taking_entries_as_new(takes);
        if takes {
            assert!(matches!(batch.new_entry(&entry), Ok(None)));
        }
        batch.note_new_item(|| created.clone());
        batch.note_new_item(|| undone.clone());
        let put = [&entry, &created, &replaced].map(Key::clone).into_iter();
        let positions = [before, after].into_iter();
        let put = put.chain(positions.flat_map(|position| [position.key(), keys::history(position)]));
        for key in put {
            batch.put(key, Bytes::new());
        }
        let decided = batch.into_decided(head, &PartitionState::default());
        let mut new = decided.changes.expect("changes").new_keys;
        new.sort();
        new
    };
    let mut new = vec![entry.clone(), created.clone(), after.key(), keys::history(after)];
    new.sort();
    assert_eq!(decided(true), new);
    assert_eq!(decided(false), []);
}
