//! Gateway 2.0: frames as the bodies of HTTP/2 requests, as .NET and Java send them (rntbd.md §8).

use bolide_rntbd::frame::{Head, Outgoing, head_rest};
use bolide_rntbd::table::response;
use serde_json::{Value, json};

use crate::client::{Request, create_container};
use crate::direct::frames::{ACTIVITY_ID, Answer, Sent, SentTokens, written};
use crate::http2::{DATA, HEADERS, Http2, STATUS_200};
use crate::server::Server;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
// Statuses of the static table of RFC 7541.
const STATUS_204: u8 = 0x89;
const STATUS_304: u8 = 0x8b;
const STATUS_400: u8 = 0x8c;
const STATUS_404: u8 = 0x8d;

const DOCUMENT: u16 = 3;
const CREATE: u16 = 0x01;
const READ: u16 = 0x03;
const DELETE: u16 = 0x05;
const QUERY: u16 = 0x0F;

struct Gateway {
    http2: Http2,
    authority: String,
    origin: Option<&'static str>,
    stream: u32,
}

impl Gateway {
    fn connect(server: &Server) -> Gateway {
        Gateway {
            http2: Http2::connect(server, 1 << 20),
            authority: format!("127.0.0.1:{}", server.port()),
            origin: None,
            stream: 1,
        }
    }

    /// Sends a body in two parts; returns the first byte of the response's headers, and its body. A response that ends with its headers has none.
    fn post(&mut self, path: &str, body: &[u8]) -> (u8, Option<Vec<u8>>) {
        let stream = self.stream;
        self.stream += 2;
        // POST and https by index.
        let mut block = vec![0x83, 0x87];
        for (name, text) in [(0x04, path), (0x01, &self.authority)] {
            block.extend([name, u8::try_from(text.len()).expect("a short text")]);
            block.extend(text.as_bytes());
        }
        for (name, text) in self.origin.iter().map(|origin| ("origin", origin)) {
            // A literal with a new name.
            block.push(0);
            for part in [name, text] {
                block.push(u8::try_from(part.len()).expect("a short text"));
                block.extend(part.as_bytes());
            }
        }
        self.http2.send(HEADERS, END_HEADERS, stream, &block);
        let (first, second) = body.split_at(body.len() / 2);
        self.http2.send(DATA, 0, stream, first);
        self.http2.send(DATA, END_STREAM, stream, second);
        let head = self.http2.receive_kind(HEADERS);
        assert_eq!(head.stream, stream);
        if head.flags & END_STREAM != 0 {
            return (head.payload[0], None);
        }
        let mut all = Vec::new();
        loop {
            let data = self.http2.receive_kind(DATA);
            all.extend(data.payload);
            if data.flags & END_STREAM != 0 {
                return (head.payload[0], Some(all));
            }
        }
    }

    /// Sends a frame; returns the first byte of the response's headers, and its frame.
    fn exchange(&mut self, operation: u16, signed: &Request, more: SentTokens, body: &str) -> (u8, Answer) {
        let (status, answer) = self.post("/", &frame(operation, signed, more, body));
        (status, answer_of(&answer.expect("a frame, whatever the status")))
    }
}

/// A frame as .NET sends it: without a number and the path of a replica.
fn frame(operation: u16, signed: &Request, more: SentTokens, body: &str) -> Vec<u8> {
    let (authorization, date) = signed.authorization();
    let mut tokens = SentTokens::from([
        (0x01, Sent::Text(authorization)),
        (0x02, Sent::Byte(u8::from(!body.is_empty()))),
        (0x03, Sent::SmallText(date)),
        (0x15, Sent::Text("d".to_owned())),
        (0x16, Sent::Text("c".to_owned())),
        (0xCE, Sent::Text("bolide".to_owned())),
        (0xE8, Sent::Text(String::new())),
    ]);
    tokens.extend(more);
    let written = written(&tokens);
    let frame = Outgoing::request(DOCUMENT, operation, ACTIVITY_ID, &written);
    let mut frame = match body {
        "" => frame.write(),
        body => frame.with_payload(body.len()).write(),
    }
    .expect("a frame");
    frame.extend_from_slice(body.as_bytes());
    frame.to_vec()
}

fn answer_of(bytes: &[u8]) -> Answer {
    let (length, rest) = bytes.split_first_chunk::<4>().expect("a length");
    let (head, rest) = rest.split_at(head_rest(*length, 1 << 20).expect("a frame"));
    let head = Head::read(head.to_vec().into()).expect("a head");
    let has_payload = head
        .tokens
        .required(response::PAYLOAD_PRESENT)
        .expect("a token")
        .whole()
        == Ok(1);
    let body = match has_payload {
        true => {
            let (length, body) = rest.split_first_chunk::<4>().expect("a length");
            assert_eq!(u32::from_le_bytes(*length) as usize, body.len());
            body
        }
        false => rest,
    };
    assert!(has_payload || body.is_empty());
    // Clients look for it although they have sent none.
    assert_eq!(
        head.tokens
            .required(response::TRANSPORT_REQUEST_ID)
            .expect("a token")
            .whole(),
        Ok(0)
    );
    Answer {
        head,
        body: body.to_vec().into(),
    }
}

fn key() -> SentTokens {
    // The hash of the key stands beside it.
    let hash = vec![0x05, 0xC1, 0xD9];
    SentTokens::from([(0x2B, Sent::Text("[\"p\"]".to_owned())), (0x5A, Sent::Bytes(hash))])
}

fn item(id: &str) -> SentTokens {
    let mut tokens = key();
    tokens.insert(0x17, Sent::Text(id.to_owned()));
    tokens
}

fn at(method: &str, link: &str) -> Request {
    Request::new(method, "/").signing_as("docs", link)
}

fn started() -> (Server, Gateway) {
    let server = Server::in_memory(&["--gateway-v2"]);
    create_container(&mut server.client());
    let gateway = Gateway::connect(&server);
    (server, gateway)
}

#[test]
fn clients_are_told_only_if_it_is_asked_for() {
    let (server, mut gateway) = started();
    let root = Request::get("/").host(&format!("localhost:{}", server.port()));
    let account = server.client().send(&root).expect(200).json();
    let place = format!("https://localhost:{}/", server.port());
    for member in ["thinClientReadableLocations", "thinClientWritableLocations"] {
        assert_eq!(
            account[member],
            json!([{"name": "South Central US", "databaseAccountEndpoint": place}])
        );
    }
    assert_eq!(gateway.post("/connectivity-probe", b"").0, STATUS_200);

    let without = Server::in_memory(&[]);
    let account = without.client().send(&Request::get("/")).expect(200).json();
    assert_eq!(account["thinClientReadableLocations"], Value::Null);
    let (status, refused) = Gateway::connect(&without).post("/", b"");
    let refused = String::from_utf8(refused.expect("an error")).expect("text");
    assert!(status != STATUS_200 && refused.contains("authorization"), "{refused}");
}

#[test]
fn each_response_is_a_frame_with_the_status_of_the_response() {
    let (server, mut gateway) = started();
    let docs = at("POST", "dbs/d/colls/c");
    let read = at("GET", "dbs/d/colls/c/docs/a");
    let (_, created) = gateway.exchange(CREATE, &docs, key(), r#"{"id":"a","pk":"p","n":1}"#);
    let created = created.expect(201);
    let over_http = server
        .client()
        .send(&Request::get("/dbs/d/colls/c/docs/a").pk())
        .expect(200);
    assert_eq!(created.json(), over_http.json());
    let (status, found) = gateway.exchange(READ, &read, item("a"), "");
    assert_eq!((status, found.expect(200).json()), (STATUS_200, over_http.json()));
    // These two have a body here, and nowhere else.
    let mut unchanged = item("a");
    unchanged.insert(0x08, Sent::Text(created.text(0x04).to_owned()));
    let (status, unchanged) = gateway.exchange(READ, &read, unchanged, "");
    assert_eq!(status, STATUS_304);
    assert!(unchanged.expect(304).body.is_empty());
    let bounds = SentTokens::from([
        (0x2C, Sent::Text("0".to_owned())),
        (0xD2, Sent::Bytes(Vec::new())),
        (0xD3, Sent::Bytes(vec![0xFF])),
    ]);
    let (status, rows) = gateway.exchange(QUERY, &docs, bounds, r#"{"query":"SELECT VALUE c.n FROM c"}"#);
    assert_eq!(
        (status, rows.expect(200).json()["Documents"].clone()),
        (STATUS_200, json!([1]))
    );
    let delete = at("DELETE", "dbs/d/colls/c/docs/a");
    let (status, deleted) = gateway.exchange(DELETE, &delete, item("a"), "");
    assert_eq!(status, STATUS_204);
    deleted.expect(204);
    let (status, missing) = gateway.exchange(READ, &read, item("a"), "");
    assert_eq!(
        (status, missing.expect(404).json()["code"].clone()),
        (STATUS_404, json!("NotFound"))
    );
}

#[test]
fn a_web_page_and_another_name_do_no_more_than_over_http() {
    let (server, mut gateway) = started();
    let body = frame(CREATE, &at("POST", "dbs/d/colls/c"), key(), r#"{"id":"a","pk":"p"}"#);
    // A browser sends such a request without asking before.
    gateway.origin = Some("https://evil.example");
    let answer = answer_of(&gateway.post("/", &body).1.expect("a frame")).expect(403);
    assert!(answer.json()["message"].as_str().expect("text").contains("Web pages"));
    gateway.origin = None;
    gateway.authority = "evil.example".to_owned();
    answer_of(&gateway.post("/", &body).1.expect("a frame")).expect(400);
    let read = server.client().send(&Request::get("/dbs/d/colls/c/docs/a").pk());
    assert_eq!(read.status, 404);
}

#[test]
fn what_is_no_frame_or_is_not_signed_is_refused() {
    let (_server, mut gateway) = started();
    let docs = at("POST", "dbs/d/colls/c");
    let whole = frame(CREATE, &docs, key(), r#"{"id":"a","pk":"p"}"#);
    for body in [
        &b""[..],
        b"GET / HTTP/1.1\r\n\r\n",
        &[0; 64],
        &[0xFF; 64],
        // Cut off in the head.
        &whole[..100],
    ] {
        // As any request without authorization.
        let refused = gateway.post("/", body).1.expect("an error");
        let refused: Value = serde_json::from_slice(&refused).expect("JSON");
        assert_eq!(refused["code"], "Unauthorized", "{} bytes", body.len());
    }
    // Cut off in the payload, and something after it.
    for body in [&whole[..whole.len() - 1], &[&whole[..], b"x"].concat()] {
        assert_eq!(gateway.post("/", body).0, STATUS_400, "{} bytes", body.len());
    }
    let stranger = at("POST", "dbs/d/colls/other");
    let (_, refused) = gateway.exchange(CREATE, &stranger, key(), r#"{"id":"a","pk":"p"}"#);
    refused.expect(401);
    let (status, strange) = gateway.exchange(0x0C, &docs, key(), "");
    assert_eq!(status, STATUS_400);
    let why = strange.expect(400).json();
    assert!(
        why["message"]
            .as_str()
            .expect("text")
            .starts_with("operation type 0x0c"),
        "{why}"
    );
    // None of them was carried out, and the connection goes on.
    let read = at("GET", "dbs/d/colls/c/docs/a");
    let (_, missing) = gateway.exchange(READ, &read, item("a"), "");
    missing.expect(404);
}
