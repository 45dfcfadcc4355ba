use super::*;

#[test]
fn a_command_is_one_message_with_one_section() {
    let sent = message(7, &doc! { "ping": 1 }).expect("small documents fit");
    // Length 36, request 7, no response, operation code 2013, no flags, kind 0, the document.
    let mut expected = vec![36, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0, 0, 0, 0, 0, 0];
    expected.extend(b"\x0f\0\0\0\x10ping\0\x01\0\0\0\0");
    assert_eq!(sent, expected);
}

#[test]
fn replies_to_other_requests_or_of_another_form_are_errors() {
    let body = |flags: u8, kind: u8| {
        let mut body = vec![flags, 0, 0, 0, kind];
        body.extend(b"\x0d\0\0\0\x10ok\0\x01\0\0\0\0");
        body
    };
    let header = |answered: u8, code: u8| vec![0, 0, 0, 0, 0, 0, 0, 0, answered, 0, 0, 0, code, 7, 0, 0];
    assert_eq!(
        reply(&header(3, 0xdd), &body(0, 0), 3).expect("whole"),
        doc! { "ok": 1 }
    );
    assert!(reply(&header(4, 0xdd), &body(0, 0), 3).is_err(), "another request");
    assert!(reply(&header(3, 0xdc), &body(0, 0), 3).is_err(), "OP_COMPRESSED");
    assert!(reply(&header(3, 0xdd), &body(2, 0), 3).is_err(), "more to come");
    assert!(reply(&header(3, 0xdd), &body(0, 1), 3).is_err(), "a sequence");
    assert!(reply(&header(3, 0xdd), &[0, 0], 3).is_err(), "cut off");
}
