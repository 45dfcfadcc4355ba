use super::*;

/// rntbd.md §3.3: what .NET 3.64.0 sends, with another activity id and a shorter agent.
fn sent() -> Bytes {
    let agent = b"cosmos-netstandard-sdk/3.64.0";
    let mut bytes = vec![0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend_from_slice(&[7; 16]);
    bytes.extend_from_slice(&[0, 0, 2, 1, 0, 0, 0]);
    bytes.extend_from_slice(b"\x01\0\x07\x0a2020-07-15");
    bytes.extend_from_slice(&[2, 0, 7, 29]);
    bytes.extend_from_slice(agent);
    bytes.extend_from_slice(&[3, 0, 0, 0, 4, 0, 0, 0]);
    bytes[0] = u8::try_from(bytes.len()).expect("short");
    bytes.into()
}

fn head(bytes: &Bytes) -> Head {
    Head::read(bytes.slice(4..)).expect("a head")
}

#[test]
fn a_client_says_who_it_is() {
    let bytes = sent();
    assert!(begins(*bytes.first_chunk().expect("eight bytes")));
    let request = ContextRequest::of(&head(&bytes)).expect("a context");
    assert_eq!(
        request,
        ContextRequest {
            activity_id: [7; 16],
            protocol_version: 1,
            client_version: "2020-07-15".to_owned(),
            user_agent: "cosmos-netstandard-sdk/3.64.0".to_owned(),
        }
    );
    let again = request.write().expect("a frame").into();
    assert_eq!(ContextRequest::of(&head(&again)).as_ref(), Ok(&request));
}

#[test]
fn http_begins_otherwise() {
    for first in [b"GET /dbs", b"POST /db", b"PRI * HT"] {
        assert!(!begins(*first));
    }
    assert!(!begins([0x8F, 0, 0, 0, 3, 0, 3, 0]));
    assert!(!begins([0, 0, 1, 0, 0, 0, 0, 0]));
}

#[test]
fn a_frame_without_what_it_needs_is_no_context() {
    let mut tokens = TokenWriter::default();
    tokens.u_long(0, 1);
    let bytes = Outgoing::request(0, 0, [0; 16], &tokens).write().expect("a frame");
    assert_eq!(ContextRequest::of(&head(&bytes.into())), Err(Malformed::Missing(1)));
    let bytes = Outgoing::request(3, 3, [0; 16], &tokens).write().expect("a frame");
    assert!(ContextRequest::of(&head(&bytes.into())).is_err());
}

#[test]
fn the_answer_has_the_tokens_that_clients_need() {
    let request = ContextRequest::of(&head(&sent())).expect("a context");
    let response = ContextResponse {
        server_agent: "bolide",
        server_version: "0.1.0",
        idle_seconds: 3600,
        unauthenticated_seconds: 15,
    };
    let bytes = response.write(&request).expect("a frame").into();
    let head = head(&bytes);
    assert_eq!((head.status(), head.activity_id), (200, [7; 16]));
    let text = |id| {
        head.tokens
            .get(id)
            .expect("it is there")
            .text()
            .expect("text")
            .to_owned()
    };
    assert_eq!(
        (text(1).as_str(), text(2).as_str(), text(3).as_str()),
        ("2020-07-15", "bolide", "0.1.0")
    );
    assert_eq!(head.tokens.get(4).expect("it is there").whole(), Ok(3600));
}

#[test]
fn a_refusal_has_a_payload() {
    let bytes = refusal(400, [1; 16], &Bytes::from_static(b"{}")).expect("a frame");
    assert_eq!(bytes[24..], [2, 0, 0, 0, b'{', b'}']);
    assert_eq!(bytes[..4], [24, 0, 0, 0]);
}
