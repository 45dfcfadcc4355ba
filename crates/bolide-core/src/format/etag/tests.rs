use super::*;

#[test]
fn a_tag_is_a_quoted_guid_and_matches_itself_with_or_without_quotes() {
    let etag = Etag::of_write(0x0102_0304, Lsn(0x0506_0708_090a_0b0c), 0x0d0e_0f10);
    assert_eq!(etag.to_string(), "\"01020304-0506-0708-090a-0b0c0d0e0f10\"");
    assert!(etag.matches("\"01020304-0506-0708-090a-0b0c0d0e0f10\""));
    assert!(etag.matches("01020304-0506-0708-090a-0b0c0d0e0f10"));
    assert!(etag.matches("*"));
    assert!(!etag.matches("\"01020304-0506-0708-090a-0b0c0d0e0f11\""));
}
