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
            end: bytes.len()
        })
    );
    assert_eq!(Shape::of(&bytes[..40]).expect("a part"), None);
}

#[test]
fn an_answer_without_length_has_no_body() {
    let bytes = b"HTTP/1.1 204 No Content\r\n\r\n";
    let shape = Shape::of(bytes).expect("well formed").expect("whole");
    assert_eq!((shape.status, shape.end), (204, bytes.len()));
}
