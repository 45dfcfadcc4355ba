use bolide_model::RequestUnits;
use bolide_rntbd::frame::Head;

use super::*;

const ELSE: Position = Position { range: 4, lsn: 9 };
const TO: ReplyTo = ReplyTo {
    activity_id: [5; 16],
    transport_request_id: 77,
    position: ELSE,
};

/// The head of the frame of a response, and its payload.
fn frame(status: u16, headers: &[(&'static str, &str)], body: &'static str) -> (Head, Bytes) {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    let response = response
        .body(Payload::Whole(Bytes::from_static(body.as_bytes())))
        .expect("a response");
    let (bytes, payload) = to_frame(response, TO).expect("a frame");
    let length = u32::from_le_bytes(*bytes.first_chunk().expect("a length")) as usize;
    assert_eq!(bytes.len(), length + if body.is_empty() { 0 } else { 4 });
    let head = Head::read(Bytes::from(bytes).slice(4..length)).expect("a head");
    assert_eq!(head.activity_id, [5; 16]);
    assert_eq!(number(&head, 0x35), 77);
    assert_eq!(number(&head, 0x00), i128::from(!body.is_empty()));
    (head, payload)
}

fn number(head: &Head, id: u16) -> i128 {
    head.tokens
        .required(id)
        .expect("it is there")
        .whole()
        .expect("a number")
}

fn text(head: &Head, id: u16) -> String {
    head.tokens
        .required(id)
        .expect("it is there")
        .text()
        .expect("text")
        .to_owned()
}

/// The numbers of all positions.
fn positions(head: &Head) -> Vec<i128> {
    [0x13, 0x1A, 0x29, 0x32, 0x3A, 0x3B, 0x3C]
        .map(|id| number(head, id))
        .to_vec()
}

#[test]
fn headers_are_tokens_and_the_session_token_is_without_its_range() {
    let headers = [
        ("x-ms-session-token", "3:-1#48"),
        ("lsn", "48"),
        ("etag", "\"e\""),
        ("x-ms-request-charge", "5.71"),
        ("x-ms-item-count", "2"),
        ("x-ms-continuation", "next"),
        ("x-ms-alt-content-path", "dbs/d/colls/c"),
        ("x-ms-request-duration-ms", "0.25"),
    ];
    let (head, payload) = frame(200, &headers, "{}");
    assert_eq!((head.status(), &payload[..]), (200, &b"{}"[..]));
    assert_eq!(positions(&head), [48; 7]);
    assert_eq!((text(&head, 0x3E).as_str(), text(&head, 0x21).as_str()), ("-1#48", "3"));
    assert_eq!(
        (text(&head, 0x04).as_str(), text(&head, 0x03).as_str()),
        ("\"e\"", "next")
    );
    assert_eq!(text(&head, 0x17), "dbs/d/colls/c");
    assert_eq!(number(&head, 0x14), 2);
    assert_eq!(head.tokens.required(0x15).expect("a charge").double(), Ok(5.71));
    assert_eq!(
        (number(&head, 0x1E), number(&head, 0x1F), number(&head, 0x30)),
        (1, 1, 0)
    );
}

#[test]
fn an_item_is_older_than_the_newest_of_its_range() {
    let (head, _) = frame(200, &[("lsn", "48"), ("x-ms-item-lsn", "7")], "{}");
    assert_eq!(positions(&head), [48, 48, 48, 7, 48, 48, 7]);
}

#[test]
fn an_error_says_where_its_range_is_and_never_nought() {
    let (head, _) = frame(404, &[("x-ms-substatus", "1003")], "{}");
    assert_eq!((head.status(), number(&head, 0x1C)), (404, 1003));
    assert_eq!(positions(&head), [9; 7]);
    assert_eq!((text(&head, 0x3E).as_str(), text(&head, 0x21).as_str()), ("-1#9", "4"));
    let (empty, _) = frame(404, &[("x-ms-session-token", "0:-1#0"), ("lsn", "0")], "");
    assert_eq!(positions(&empty), [1; 7]);
    assert_eq!(text(&empty, 0x21), "0");
}

#[test]
fn an_answer_without_a_token_is_of_the_range_that_it_names() {
    let (head, _) = frame(
        404,
        &[("lsn", "48"), ("x-ms-documentdb-partitionkeyrangeid", "6")],
        "{}",
    );
    assert_eq!(positions(&head), [48; 7]);
    assert_eq!((text(&head, 0x3E).as_str(), text(&head, 0x21).as_str()), ("-1#48", "6"));
}

#[test]
fn the_charge_is_that_of_the_reply_or_of_the_server_that_made_it() {
    let charge = |reply: Reply| {
        let (bytes, _) = reply_to_frame(reply, TO).expect("a frame");
        let head = Head::read(Bytes::from(bytes).slice(4..)).expect("no token is there twice");
        head.tokens.required(0x15).expect("it is there").double()
    };
    let mut own = Reply::empty(StatusCode::OK);
    own.charge = RequestUnits(3.25);
    own.number(&headers::REQUEST_CHARGE, 9);
    assert_eq!(charge(own), Ok(3.25));
    let made = Response::builder().header("x-ms-request-charge", "2.5");
    let forwarded = Reply::forwarded(made.body(Bytes::new()).expect("a response"));
    assert_eq!(charge(forwarded), Ok(2.5));
}
