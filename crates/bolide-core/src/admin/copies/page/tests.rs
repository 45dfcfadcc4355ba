use super::*;

fn page() -> CopyPage {
    let row = |space, key: &'static str, value: Option<&'static str>| {
        (
            Key::new(space, key.as_bytes()),
            value.map(|value| Bytes::from_static(value.as_bytes())),
        )
    };
    CopyPage {
        rows: vec![
            row(Space::Item, "a", Some("1")),
            row(Space::Log, "", Some("")),
            row(Space::Meta, "S", None),
        ],
        next: Some(Bytes::from_static(b"b")),
        left: 7,
        is_lost: true,
        has_no_partition: false,
    }
}

#[test]
fn pages_are_read_as_they_were_written() {
    for page in [page(), CopyPage::default(), CopyPage::of_no_partition()] {
        assert_eq!(CopyPage::decode(page.encode()), Ok(page));
    }
}

#[test]
fn a_page_that_is_cut_off_is_refused() {
    let bytes = page().encode();
    let whole = Ok(page());
    for end in 0..bytes.len() {
        assert_ne!(CopyPage::decode(bytes.slice(..end)), whole, "{end}");
    }
    assert!(CopyPage::decode(Bytes::new()).is_err());
}
