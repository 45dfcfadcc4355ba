use super::*;

const OTHER: &str = "# somebody's\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

#[test]
fn only_added_blocks_are_removed() {
    let added = format!("{COMMENT}00\n-----BEGIN CERTIFICATE-----\nBBBB\n{END}\n");
    for (before, after) in [("", ""), (OTHER, ""), ("", OTHER), (OTHER, OTHER)] {
        let (kept, removed) = without(&format!("{before}{added}{after}"));
        assert_eq!((kept, removed), (format!("{before}{after}"), 1));
    }
    assert_eq!(without(OTHER), (OTHER.to_owned(), 0));
}
