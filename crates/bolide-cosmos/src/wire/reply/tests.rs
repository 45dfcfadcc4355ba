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

#[test]
fn headers_of_another_server_count_unless_they_are_set_here() {
    let made = Response::builder().header("lsn", "5").header("etag", "\"e\"");
    let mut reply = Reply::forwarded(made.body(Bytes::new()).expect("a response"));
    assert_eq!(reply.value_of(&headers::LSN), Some(&b"5"[..]));
    reply.number(&headers::LSN, 7);
    assert_eq!(reply.value_of(&headers::LSN), Some(&b"7"[..]));
    let all: Vec<_> = reply
        .all_headers()
        .map(|(name, value)| (name.as_str(), value))
        .collect();
    assert_eq!(all, [("lsn", &b"7"[..]), ("lsn", b"5"), ("etag", b"\"e\"")]);
    reply.remove(&headers::LSN);
    assert_eq!(reply.value_of(&headers::LSN), None);
}
