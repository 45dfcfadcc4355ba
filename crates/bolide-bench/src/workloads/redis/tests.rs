use super::*;

#[test]
fn a_reply_is_read_when_it_is_whole() {
    let bytes = b"*3\r\n$5\r\nhello\r\n$-1\r\n:7\r\n";
    let expected = Reply::Array(vec![
        Reply::Text(Some(b"hello".to_vec())),
        Reply::Text(None),
        Reply::Line("7".to_owned()),
    ]);
    for end in 0..bytes.len() {
        assert_eq!(parse(&bytes[..end]).expect("a part"), None, "{end} bytes");
    }
    let more = [bytes.as_slice(), b"+OK\r\n"].concat();
    assert_eq!(parse(&more).expect("whole"), Some((expected, bytes.len())));
}

#[test]
fn a_refusal_is_an_error() {
    let refused = parse(b"-ERR unknown command\r\n").expect_err("a refusal");
    assert_eq!(refused.to_string(), "Redis refused: ERR unknown command");
}

#[test]
fn only_strings_are_documents() {
    let reply = Reply::Array(vec![
        Reply::Text(Some(b"{}".to_vec())),
        Reply::Text(None),
        Reply::Line("OK".to_owned()),
    ]);
    assert_eq!(documents(&reply), 1);
}

#[test]
fn commands_are_arrays_of_strings() {
    assert_eq!(encoded(&["GET", "a b"]), b"*2\r\n$3\r\nGET\r\n$3\r\na b\r\n");
}
