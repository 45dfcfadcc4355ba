use bolide_storage::ReadResponse;

use super::*;

/// A page that ended early was taken for all there is up to a later end.
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
