use bolide_rntbd::frame::Outgoing;
use bolide_rntbd::token::{Kind, TokenWriter};
use bytes::Bytes;

use super::*;

/// The request of a frame with these tokens, and those that every frame has.
fn request(resource: u16, operation: u16, write: impl FnOnce(&mut TokenWriter)) -> Result<FrameRequest, Refusal> {
    let mut tokens = TokenWriter::default();
    tokens.byte(0x02, 0);
    tokens.u_long(0x4D, 7);
    write(&mut tokens);
    let bytes = Outgoing::request(resource, operation, [9; 16], &tokens)
        .write()
        .expect("a frame");
    let head = Head::read(Bytes::from(bytes).slice(4..)).expect("a head");
    let parsed = to_request(&head, &HeaderValue::from_static("2020-07-15")).expect("a number");
    assert_eq!((parsed.reply_to.transport_request_id, parsed.has_payload), (7, false));
    parsed.request.map_err(|refused| refused.why)
}

fn text(tokens: &mut TokenWriter, id: u16, text: &str) {
    assert!(tokens.counted(id, Kind::String, text.as_bytes()));
}

fn names(tokens: &mut TokenWriter) {
    text(tokens, 0x15, "d b");
    text(tokens, 0x16, "c/c");
}

/// Method and path.
fn line(request: &FrameRequest) -> String {
    format!("{} {}", request.request.method(), request.request.uri().path())
}

fn header<'r>(request: &'r FrameRequest, name: &str) -> Option<&'r str> {
    request
        .request
        .headers()
        .get(name)
        .map(|value| value.to_str().expect("ASCII"))
}

#[test]
fn operations_are_methods_of_paths_with_names_as_they_are() {
    // rntbd.md §4.1, §4.2, §5.
    let item = |tokens: &mut TokenWriter| {
        names(tokens);
        text(tokens, 0x17, "ü x+%2F");
    };
    let id = "%C3%BC%20x%2B%252F";
    let coll = "/dbs/d%20b/colls/c%2Fc";
    for (resource, operation, expected) in [
        (1, 0x03, "GET /dbs/d%20b".to_owned()),
        (1, 0x04, "GET /dbs".to_owned()),
        (1, 0x0F, "POST /dbs".to_owned()),
        (2, 0x03, format!("GET {coll}")),
        (2, 0x04, "GET /dbs/d%20b/colls".to_owned()),
        (3, 0x01, format!("POST {coll}/docs")),
        (3, 0x02, format!("PATCH {coll}/docs/{id}")),
        (3, 0x03, format!("GET {coll}/docs/{id}")),
        (3, 0x04, format!("GET {coll}/docs")),
        (3, 0x05, format!("DELETE {coll}/docs/{id}")),
        (3, 0x06, format!("PUT {coll}/docs/{id}")),
        (3, 0x0F, format!("POST {coll}/docs")),
        (3, 0x13, format!("POST {coll}/docs")),
        (3, 0x25, format!("POST {coll}/docs")),
        (8, 0x04, format!("GET {coll}/conflicts")),
    ] {
        let request = request(resource, operation, item).expect("a request");
        assert_eq!(line(&request), expected);
    }
    let run = request(7, 0x08, |tokens| {
        names(tokens);
        text(tokens, 0x1B, "s");
    });
    assert_eq!(line(&run.expect("a request")), format!("POST {coll}/sprocs/s"));
    let permission = request(6, 0x03, |tokens| {
        names(tokens);
        text(tokens, 0x19, "u");
        text(tokens, 0x1A, "p");
    });
    assert_eq!(
        line(&permission.expect("a request")),
        "GET /dbs/d%20b/users/u/permissions/p"
    );
}

#[test]
fn resource_ids_address_without_names() {
    let bytes: Vec<u8> = vec![0x6A, 0x0B, 0x01, 0, 0x6A, 0x0B, 0x01, 0xFF, 1, 0, 0, 0, 0, 0, 0, 0];
    let path = |resource, operation, length: usize| {
        let request = request(resource, operation, |tokens| {
            if length > 0 {
                assert!(tokens.counted(0x00, Kind::Bytes, &bytes[..length]));
            }
        });
        request.map(|request| line(&request))
    };
    assert_eq!(path(1, 0x04, 0).as_deref(), Ok("GET /dbs"));
    assert_eq!(path(1, 0x03, 4).as_deref(), Ok("GET /dbs/agsBAA=="));
    assert_eq!(path(2, 0x04, 4).as_deref(), Ok("GET /dbs/agsBAA==/colls"));
    assert_eq!(path(2, 0x03, 8).as_deref(), Ok("GET /dbs/agsBAA==/colls/agsBAGoLAf8="));
    assert_eq!(
        path(3, 0x04, 8).as_deref(),
        Ok("GET /dbs/agsBAA==/colls/agsBAGoLAf8=/docs")
    );
    assert_eq!(
        path(3, 0x03, 16).as_deref(),
        Ok("GET /dbs/agsBAA==/colls/agsBAGoLAf8=/docs/agsBAGoLAf8BAAAAAAAAAA==")
    );
    assert!(path(3, 0x03, 4).is_err());
    assert!(path(2, 0x03, 0).is_err());
}

#[test]
fn tokens_are_headers() {
    let request = request(3, 0x0F, |tokens| {
        names(tokens);
        text(tokens, 0x01, "type%3dmaster");
        tokens.u_long(0x04, u32::MAX);
        tokens.byte(0x10, 3);
        text(tokens, 0x2B, "[\"zoë 𝄞\"]");
        text(tokens, 0x2C, "agsBAGoLAf8=,3");
        text(tokens, 0x35, "agsBAGoLAf8=");
        tokens.byte(0x42, 1);
        assert!(tokens.counted(0x63, Kind::Bytes, b"FF"));
        tokens.byte(0x64, 3);
        tokens.guid(
            0xB0,
            [
                0x33, 0x22, 0x11, 0, 0x55, 0x44, 0x77, 0x66, 8, 9, 10, 11, 12, 13, 14, 15,
            ],
        );
        // One that no table knows.
        tokens.u_short(0x1FF, 7);
    });
    let request = request.expect("a request");
    for (name, expected) in [
        ("authorization", "type%3dmaster"),
        ("x-ms-max-item-count", "-1"),
        ("x-ms-consistency-level", "Eventual"),
        ("x-ms-documentdb-partitionkey", "[\"zo\\u00eb \\ud834\\udd1e\"]"),
        ("x-ms-documentdb-partitionkeyrangeid", "agsBAGoLAf8=,3"),
        ("x-ms-activity-id", "09090909-0909-0909-0909-090909090909"),
        ("x-ms-documentdb-populatequerymetrics", "True"),
        ("x-ms-end-epk", "FF"),
        ("x-ms-read-key-type", "EffectivePartitionKeyRange"),
        (
            "x-ms-cosmos-correlated-activityid",
            "00112233-4455-6677-0809-0a0b0c0d0e0f",
        ),
        ("x-ms-documentdb-isquery", "True"),
        ("x-ms-documentdb-query-enablecrosspartition", "True"),
        ("content-type", "application/query+json"),
        ("x-ms-version", "2020-07-15"),
    ] {
        assert_eq!(header(&request, name), Some(expected), "{name}");
    }
    let from = request.request.extensions().get::<FromFrame>().expect("a mark");
    assert_eq!(from.container.as_deref(), Some("agsBAGoLAf8="));
    assert_eq!(header(&request, "x-ms-cosmos-intended-collection-rid"), None);
}

#[test]
fn bounds_are_text_or_bytes() {
    // rntbd.md §5.
    let bounds = |write: &dyn Fn(&mut TokenWriter)| {
        let request = request(3, 0x0F, |tokens| {
            names(tokens);
            write(tokens);
        })
        .expect("a request");
        ["x-ms-start-epk", "x-ms-end-epk", "x-ms-read-key-type"]
            .map(|name| header(&request, name).unwrap_or_default().to_owned())
    };
    let bytes = |tokens: &mut TokenWriter, id, bytes: &[u8]| assert!(tokens.counted(id, Kind::Bytes, bytes));
    let is_range = "EffectivePartitionKeyRange";
    let as_text = bounds(&|tokens| {
        bytes(tokens, 0x62, b"05C1");
        bytes(tokens, 0x63, b"FF");
        tokens.byte(0x64, 3);
    });
    assert_eq!(as_text, ["05C1", "FF", is_range]);
    let as_bytes = bounds(&|tokens| {
        bytes(tokens, 0x63, &[0x05, 0xC1]);
        tokens.byte(0x64, 2);
    });
    assert_eq!(as_bytes, ["", "05C1", is_range]);
    // Those by which a gateway finds the range are the bounds if there are no others, and no key.
    let hashes = |tokens: &mut TokenWriter| {
        bytes(tokens, 0xD2, &[]);
        bytes(tokens, 0xD3, &[0xFF]);
    };
    assert_eq!(bounds(&hashes), ["", "FF", is_range]);
    let both = bounds(&|tokens| {
        bytes(tokens, 0x62, b"05");
        bytes(tokens, 0x63, b"06");
        tokens.byte(0x64, 3);
        hashes(tokens);
    });
    assert_eq!(both, ["05", "06", is_range]);
    let of_key = bounds(&|tokens| {
        text(tokens, 0x2B, "[\"p\"]");
        hashes(tokens);
    });
    assert_eq!(of_key, ["", "", ""]);
    assert_eq!(bounds(&|tokens| tokens.byte(0x64, 3)), ["", "", ""]);
}

#[test]
fn a_query_may_be_plain_text_and_a_barrier_asks_for_a_position() {
    let plain = request(3, 0x09, names).expect("a request");
    assert_eq!(line(&plain), "POST /dbs/d%20b/colls/c%2Fc/docs");
    assert_eq!(header(&plain, "content-type"), Some("application/sql"));
    assert_eq!(header(&plain, "x-ms-documentdb-isquery"), Some("True"));
    let barrier = request(2, 0x11, |tokens| {
        names(tokens);
        text(tokens, 0x13, "/apps/bolide/services/s/partitions/p12/replicas/0p");
    });
    let barrier = barrier.expect("a request");
    assert_eq!(line(&barrier), "HEAD /dbs/d%20b/colls/c%2Fc");
    let from = barrier.request.extensions().get::<FromFrame>().expect("a mark");
    assert_eq!(from.range, Some(12));
    let of_master = request(1, 0x12, |tokens| {
        text(tokens, 0x13, "/apps/bolide/services/s/partitions/pM/replicas/1s");
    });
    let of_master = of_master.expect("a request");
    assert_eq!(line(&of_master), "HEAD /dbs");
    assert_eq!(
        of_master.request.extensions().get::<FromFrame>().expect("a mark").range,
        None
    );
}

#[test]
fn an_etag_is_for_a_read_what_must_not_match_and_otherwise_what_must() {
    let with = |operation| {
        request(3, operation, |tokens| {
            names(tokens);
            text(tokens, 0x17, "a");
            text(tokens, 0x08, "\"1\"");
        })
        .expect("a request")
    };
    assert_eq!(header(&with(0x03), "if-none-match"), Some("\"1\""));
    assert_eq!(header(&with(0x04), "if-none-match"), Some("\"1\""));
    assert_eq!(header(&with(0x06), "if-match"), Some("\"1\""));
    assert_eq!(header(&with(0x06), "if-none-match"), None);
}

#[test]
fn what_is_not_served_is_refused_with_the_reason() {
    let why = |request: Result<FrameRequest, Refusal>| request.expect_err("a refusal").0;
    assert_eq!(why(request(3, 0x0C, names)), "operation type 0x0c is not served");
    assert_eq!(why(request(0x0F, 0x03, names)), "resource type 0x0f is not served");
    assert_eq!(why(request(3, 0x03, names)), "token 0x0017 is missing");
    let level = request(3, 0x04, |tokens| {
        names(tokens);
        tokens.byte(0x10, 9);
    });
    assert_eq!(why(level), "token ConsistencyLevel has the unknown value 9");
    let number = request(3, 0x04, |tokens| {
        names(tokens);
        text(tokens, 0x04, "ten");
    });
    assert_eq!(why(number), "token 0x0004 has another type");
    let line = request(3, 0x04, |tokens| {
        names(tokens);
        text(tokens, 0x06, "a\r\nb");
    });
    assert_eq!(why(line), "token ContinuationToken has control characters");
    let bounds = request(3, 0x04, |tokens| {
        names(tokens);
        assert!(tokens.counted(0x5F, Kind::Bytes, b"x"));
    });
    assert!(why(bounds).contains("StartId"));
    let unclear = request(3, 0x04, |tokens| {
        names(tokens);
        assert!(tokens.counted(0x62, Kind::Bytes, b"x"));
    });
    assert!(why(unclear).contains("ReadFeedKeyType 2 (bytes) or 3"));
    let hash = request(3, 0x03, |tokens| {
        names(tokens);
        text(tokens, 0x17, "a");
        assert!(tokens.counted(0x5A, Kind::Bytes, b"x"));
    });
    assert!(why(hash).contains("needs the token PartitionKey"));
    let large = request(3, 0x04, |tokens| {
        names(tokens);
        text(tokens, 0x05, &"é".repeat(12_000));
    });
    assert!(why(large).starts_with("the tokens are too large"));
}

#[test]
fn a_frame_without_number_cannot_be_answered() {
    let mut tokens = TokenWriter::default();
    tokens.byte(0x02, 0);
    let bytes = Outgoing::request(3, 3, [9; 16], &tokens).write().expect("a frame");
    let head = Head::read(Bytes::from(bytes).slice(4..)).expect("a head");
    let read = to_request(&head, &HeaderValue::from_static("2020-07-15"));
    assert_eq!(read.expect_err("no number"), Malformed::Missing(0x4D));
}
