use super::*;

#[test]
fn a_feed_counts_its_rows() {
    assert_eq!(
        &envelope("r==", "Documents", b"1,{}", 2)[..],
        br#"{"_rid":"r==","Documents":[1,{}],"_count":2}"#
    );
    assert_eq!(
        &envelope("", "Offers", b"", 0)[..],
        br#"{"_rid":"","Offers":[],"_count":0}"#
    );
}
