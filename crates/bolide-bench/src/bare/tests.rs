use super::*;

#[test]
fn a_response_is_returned_unchanged_except_for_headers_of_hyper() {
    let response = parse(b"HTTP/1.1 200 OK\r\netag: \"a\"\r\ncontent-length: 2\r\ndate: now\r\nlsn: 7\r\n\r\n{}")
        .expect("an answer");
    assert_eq!(response.status(), 200);
    let names: Vec<&str> = response.headers().keys().map(HeaderName::as_str).collect();
    assert_eq!(names, ["etag", "lsn"]);
}
