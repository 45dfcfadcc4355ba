use super::*;

#[test]
fn an_answer_ends_where_its_length_says() {
    let bytes = b"HTTP/1.1 201 Created\r\ncontent-length: 5\r\ndate: x\r\n\r\nhello";
    let shape = Shape::of(bytes).expect("well formed");
    let body_at = bytes.len() - 5;
    assert_eq!(
        shape,
        Some(Shape {
            status: 201,
            body_at,
            end: Some(bytes.len())
        })
    );
    assert_eq!(Shape::of(&bytes[..40]).expect("a part"), None);
}

#[test]
fn an_answer_without_length_has_no_body() {
    let bytes = b"HTTP/1.1 204 No Content\r\n\r\n";
    let shape = Shape::of(bytes).expect("well formed").expect("whole");
    assert_eq!((shape.status, shape.end), (204, Some(bytes.len())));
}

#[test]
fn names_of_headers_may_be_in_capitals() {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    let shape = Shape::of(bytes).expect("well formed").expect("whole");
    assert_eq!(shape.end, Some(bytes.len()));
}

#[test]
fn chunks_are_joined_when_the_last_one_is_there() {
    let bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
    let shape = Shape::of(bytes).expect("well formed").expect("a whole head");
    assert_eq!(shape.end, None);
    let (body, mut joined) = (&bytes[shape.body_at..], Vec::new());
    for missing in 1..body.len() {
        let part = &body[..body.len() - missing];
        assert!(
            !join_chunks(part, &mut joined).expect("a part"),
            "without {missing} bytes"
        );
    }
    assert!(join_chunks(body, &mut joined).expect("whole"));
    assert_eq!(joined, b"hello world");
}
