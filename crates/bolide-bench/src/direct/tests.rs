use std::net::{Ipv4Addr, SocketAddr};

use bolide_rntbd::context::{ContextRequest, ContextResponse, PROTOCOL_VERSION};
use bolide_rntbd::frame::{Head, LENGTH_BYTES, Outgoing, head_rest};
use bolide_rntbd::table::{operation, request, resource, response};
use bolide_rntbd::token::TokenWriter;
use bytes::{Bytes, BytesMut};

use super::channel::Incoming;
use super::frames::Signature;
use super::report::{beside_rest, verdicts};
use super::*;

fn frames() -> Frames {
    let known = Known {
        rid: "7QtVAP0Zkc0=".to_owned(),
        session: "0:-1#9".to_owned(),
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 8081));
    Frames::new(Requests::to(address), known).expect("a resource id")
}

/// The head of a frame, and what follows it.
fn decoded(frame: &Frame, number: u32) -> (Head, Bytes) {
    let mut bytes = b"what was there before".to_vec();
    frame.write(number, &mut bytes);
    let length = *bytes.first_chunk().expect("a length");
    let mut bytes = Bytes::from(bytes).split_off(LENGTH_BYTES);
    let head = bytes.split_to(head_rest(length, bytes.len() + LENGTH_BYTES).expect("a head"));
    (Head::read(head).expect("tokens"), bytes)
}

fn ids(head: &Head) -> Vec<u16> {
    head.tokens.iter().map(|token| token.id).collect()
}

#[test]
fn a_read_has_the_tokens_of_the_dotnet_sdk_and_its_number() {
    let frames = frames();
    let frame = frames.read("a");
    for number in [1, u32::MAX] {
        let (head, payload) = decoded(&frame, number);
        assert_eq!(head.operation(), (resource::DOCUMENT, operation::READ));
        assert_eq!(
            ids(&head),
            [
                0x00, 0x01, 0x02, 0x03, 0x05, 0x13, 0x15, 0x16, 0x17, 0x2B, 0x35, 0x49, 0x4A, 0x4D, 0xA2
            ]
        );
        let token = |id| head.tokens.required(id).expect("a token");
        assert_eq!(token(request::TRANSPORT_REQUEST_ID).whole(), Ok(number.into()));
        assert_eq!(token(request::DOCUMENT_NAME).text(), Ok("a"));
        assert_eq!(token(0x05).text(), Ok("0:-1#9"));
        assert!(payload.is_empty());
    }
}

#[test]
fn both_protocols_have_the_same_signature() {
    let frames = frames();
    for (frame, rest) in [
        (frames.read("a"), frames.rest_read("a")),
        (frames.create("a"), frames.rest_create("a")),
    ] {
        let (head, _) = decoded(&frame, 1);
        let signature = head.tokens.required(0x01).expect("a token").text().expect("text");
        let rest = String::from_utf8(rest).expect("text");
        assert!(rest.contains(&format!("\r\nauthorization: {signature}\r\n")), "{rest}");
    }
}

#[test]
fn a_signature_can_be_wrong_or_missing() {
    let authorization = |frames: &Frames| {
        let (head, _) = decoded(&frames.read("a"), 1);
        let token = head.tokens.get(0x01);
        token.map(|token| token.text().expect("text").to_owned())
    };
    // Of one value, so that the date is the same.
    let frames = frames();
    let right = authorization(&frames).expect("a token");
    let frames = frames.signed(Signature::Wrong);
    let wrong = authorization(&frames).expect("a token");
    assert_ne!(right, wrong);
    assert_eq!(authorization(&frames.signed(Signature::Missing)), None);
}

#[test]
fn a_query_has_its_text_as_its_payload() {
    let (head, mut payload) = decoded(&frames().query("SELECT 1", "a"), 5);
    assert_eq!(head.operation(), (resource::DOCUMENT, operation::QUERY));
    let length = payload.split_to(LENGTH_BYTES);
    assert_eq!(length[..], (payload.len() as u32).to_le_bytes());
    assert_eq!(payload, r#"{"query":"SELECT 1"}"#);
}

#[test]
fn a_create_has_the_item_as_its_payload() {
    let (head, mut payload) = decoded(&frames().create("a"), 5);
    assert_eq!(head.operation(), (resource::DOCUMENT, operation::CREATE));
    assert_eq!(
        ids(&head),
        [
            0x00, 0x01, 0x02, 0x03, 0x13, 0x15, 0x16, 0x2B, 0x35, 0x49, 0x4A, 0x4D, 0xA2
        ]
    );
    let length = payload.split_to(LENGTH_BYTES);
    assert_eq!(length[..], (item::BYTES as u32).to_le_bytes());
    assert_eq!(payload, item::document("a", None));
}

#[test]
fn responses_are_found_however_their_bytes_arrive() {
    let mut sent = Vec::new();
    for (number, body) in [(1, "first"), (2, ""), (3, "third")] {
        let mut tokens = TokenWriter::default();
        tokens.byte(response::PAYLOAD_PRESENT, u8::from(!body.is_empty()));
        tokens.u_long(response::TRANSPORT_REQUEST_ID, number);
        let frame = Outgoing::response(200, [7; 16], &tokens);
        let head = match body {
            "" => frame.write(),
            body => frame.with_payload(body.len()).write(),
        };
        sent.extend_from_slice(&head.expect("a frame"));
        sent.extend_from_slice(body.as_bytes());
    }
    for part_bytes in [1, 7, sent.len()] {
        let (mut incoming, mut received) = (Incoming::default(), Vec::new());
        for part in sent.chunks(part_bytes) {
            incoming.bytes.extend_from_slice(part);
            while let Some(answer) = incoming.next().expect("a response") {
                let number = answer.head.tokens.required(response::TRANSPORT_REQUEST_ID);
                received.push((number.expect("a token").whole().expect("a number"), answer.body));
            }
        }
        assert_eq!(
            received,
            [(1, Bytes::from("first")), (2, Bytes::new()), (3, Bytes::from("third"))]
        );
    }
}

#[test]
fn the_first_response_has_no_payload() {
    let request = ContextRequest {
        activity_id: [1; 16],
        protocol_version: PROTOCOL_VERSION,
        client_version: "2020-07-15".to_owned(),
        user_agent: "test".to_owned(),
    };
    let response = ContextResponse {
        server_agent: "bolide",
        server_version: "1",
        idle_seconds: 1,
        unauthenticated_seconds: 1,
    };
    let mut incoming = Incoming::default();
    let bytes = response.write(&request).expect("a frame");
    incoming.bytes = BytesMut::from(&bytes[..]);
    let answer = incoming.next().expect("a response").expect("all of it");
    assert_eq!((answer.head.status(), answer.body), (200, Bytes::new()));
}

fn row(connections: usize, side: Side, figures: [(f64, f64); 3]) -> Row {
    let sample = |(per_cpu_second, p99_micros)| Sample {
        per_second: 1.0,
        per_cpu_second,
        p50_micros: 1.0,
        p99_micros,
        client_micros: 1.0,
    };
    Row {
        connections,
        side,
        samples: figures.map(sample).to_vec(),
    }
}

#[test]
fn the_goal_needs_more_requests_and_a_lower_p99_than_rest_with_as_many_requests_under_way() {
    let rest = [(100.0, 50.0), (200.0, 60.0), (100.0, 50.0)];
    let rows = [
        row(1, Side::Rest, rest),
        row(1, Side::Direct, [(140.0, 40.0), (260.0, 90.0), (150.0, 45.0)]),
        row(8, Side::Rest, rest),
        row(8, Side::Direct, rest.map(|(requests, p99)| (requests * 2.0, p99))),
        row(16, Side::Rest, rest.map(|(requests, p99)| (requests * 2.0, p99))),
        row(1, Side::Multiplexed, rest.map(|(requests, p99)| (requests, p99 / 2.0))),
    ];
    assert_eq!(beside_rest(&rows, &rows[1]), [1.4, 0.9]);
    assert_eq!(beside_rest(&rows, &rows[5]), [0.5, 0.5]);
    let verdicts = verdicts(&rows);
    assert!(verdicts.contains("one request: 1 reached, 8 p99 missed;"), "{verdicts}");
    assert!(verdicts.contains("sixteen: 1 CPU missed."), "{verdicts}");
}

#[test]
fn each_number_of_requests_under_way_is_measured_over_rest_first() {
    let rows = empty_rows(&[1, 16]);
    let rows = rows.iter().map(|row| (row.side, row.connections, row.under_way()));
    let rows: Vec<_> = rows.collect();
    assert_eq!(
        rows,
        [
            (Side::Rest, 1, 1),
            (Side::Direct, 1, 1),
            (Side::Rest, 16, 16),
            (Side::Multiplexed, 1, 16),
            (Side::Direct, 16, 16),
            (Side::Rest, 256, 256),
            (Side::Multiplexed, 16, 256),
        ]
    );
}
