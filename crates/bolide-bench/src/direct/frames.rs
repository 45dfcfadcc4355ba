//! The requests, as the frames that the .NET SDK sends, and over REST.
//!
//! Source: rntbd.md §4.3, the column "seen".

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_rntbd::frame::{HEAD_BYTES, Outgoing};
use bolide_rntbd::table::request::{
    COLLECTION_NAME, COLLECTION_RID, DATABASE_NAME, DOCUMENT_NAME, PAYLOAD_PRESENT, RESOURCE_ID, TRANSPORT_REQUEST_ID,
};
use bolide_rntbd::table::{operation, resource};
use bolide_rntbd::token::{Kind, TokenWriter};

use crate::connection::{Connection, HttpResponse};
use crate::cosmos::{CONTAINER, Draft, Requests};
use crate::{Result, item};

// Tokens that stand for headers.
const AUTHORIZATION: u16 = 0x01;
const DATE: u16 = 0x03;
const SESSION_TOKEN: u16 = 0x05;
const REPLICA_PATH: u16 = 0x13;
const PARTITION_KEY: u16 = 0x2B;
const REMAINING_TIME: u16 = 0x49;
const RETRY_COUNT: u16 = 0x4A;
const CAPABILITIES: u16 = 0xA2;

/// Bytes of a token before its value.
const TOKEN_HEAD_BYTES: usize = 3;
const ACTIVITY_ID: [u8; 16] = [7; 16];
const REPLICA: &str = "/apps/bolide/services/s/partitions/p0/replicas/0p";
const REMAINING_MS: u32 = 30_000;
/// Merges of ranges, and tokens that the client does not know.
const CAPABILITIES_OF_SDK: u32 = 9;

/// What a client knows of the container.
#[derive(Debug, Clone)]
pub struct Known {
    pub rid: String,
    /// With the id of the range, as in REST.
    pub session: String,
}

impl Known {
    /// Asks for it.
    pub async fn of(connection: &mut Connection, requests: &Requests) -> Result<Known> {
        let request = requests.request(&Draft {
            method: "GET",
            path: CONTAINER,
            resource_type: "colls",
            link: CONTAINER,
            headers: "",
            body: "",
        });
        let response = connection.expect(200, &request).await?;
        let container: serde_json::Value = serde_json::from_slice(response.body)?;
        Ok(Known {
            rid: container["_rid"]
                .as_str()
                .ok_or("a container without an id")?
                .to_owned(),
            session: String::new(),
        })
    }

    /// Notes the session token of a response.
    pub fn note(&mut self, response: &HttpResponse<'_>) {
        if let Some(token) = response.header("x-ms-session-token") {
            token.clone_into(&mut self.session);
        }
    }
}

/// A request as a frame with its payload, whose number is still to come.
#[derive(Debug)]
pub struct Frame {
    bytes: Vec<u8>,
    number_at: usize,
}

impl AsRef<Frame> for Frame {
    fn as_ref(&self) -> &Frame {
        self
    }
}

impl Frame {
    /// Writes it with a number in the place of what `to` has.
    pub fn write(&self, number: u32, to: &mut Vec<u8>) {
        to.clear();
        to.extend_from_slice(&self.bytes);
        to[self.number_at..][..4].copy_from_slice(&number.to_le_bytes());
    }
}

/// How frames are signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signature {
    Right,
    /// That of another request.
    Wrong,
    Missing,
}

/// Makes the requests of both protocols, with what they have in common.
pub struct Frames {
    requests: Requests,
    known: Known,
    rid_bytes: Vec<u8>,
    signature: Signature,
}

impl Frames {
    /// Requests with the date of `requests`.
    pub fn new(requests: Requests, known: Known) -> Result<Frames> {
        Ok(Frames {
            requests,
            rid_bytes: STANDARD.decode(known.rid.replace('-', "/"))?,
            known,
            signature: Signature::Right,
        })
    }

    /// The same, with frames that are signed like this.
    pub fn signed(self, signature: Signature) -> Frames {
        Frames { signature, ..self }
    }

    /// Reads an item over REST. Its session token is sent on both sides.
    pub fn rest_read(&self, id: &str) -> Vec<u8> {
        let path = format!("{CONTAINER}/docs/{id}");
        let headers = format!(
            "x-ms-documentdb-partitionkey: [\"{id}\"]\r\nx-ms-session-token: {}\r\n",
            self.known.session
        );
        self.requests.request(&Draft {
            headers: &headers,
            ..read_draft(&path)
        })
    }

    /// Creates an item over REST.
    pub fn rest_create(&self, id: &str) -> Vec<u8> {
        self.requests.create(id, None)
    }

    /// Reads an item.
    pub fn read(&self, id: &str) -> Frame {
        let path = format!("{CONTAINER}/docs/{id}");
        self.frame(operation::READ, &read_draft(&path), id)
    }

    /// Creates an item.
    pub fn create(&self, id: &str) -> Frame {
        self.frame(operation::CREATE, &post_draft(&item::document(id, None)), id)
    }

    /// Runs a query over the items of a partition key, which is an id.
    pub fn query(&self, text: &str, id: &str) -> Frame {
        let body = serde_json::json!({ "query": text }).to_string();
        self.frame(operation::QUERY, &post_draft(&body), id)
    }

    fn authorization(&self, draft: &Draft<'_>) -> Option<String> {
        match self.signature {
            Signature::Right => Some(self.requests.authorization(draft)),
            Signature::Wrong => Some(self.requests.authorization(&Draft { link: "", ..*draft })),
            Signature::Missing => None,
        }
    }

    /// The tokens are in the order of their ids, as .NET sends them.
    fn frame(&self, operation: u16, draft: &Draft<'_>, id: &str) -> Frame {
        let is_read = operation == operation::READ;
        let mut tokens = TokenWriter::default();
        put(&mut tokens, RESOURCE_ID, Kind::Bytes, &self.rid_bytes);
        if let Some(authorization) = self.authorization(draft) {
            text(&mut tokens, AUTHORIZATION, &authorization);
        }
        tokens.byte(PAYLOAD_PRESENT, u8::from(!draft.body.is_empty()));
        put(&mut tokens, DATE, Kind::SmallString, self.requests.date().as_bytes());
        if is_read {
            text(&mut tokens, SESSION_TOKEN, &self.known.session);
        }
        text(&mut tokens, REPLICA_PATH, REPLICA);
        text(&mut tokens, DATABASE_NAME, "bench");
        text(&mut tokens, COLLECTION_NAME, "items");
        if is_read {
            text(&mut tokens, DOCUMENT_NAME, id);
        }
        text(&mut tokens, PARTITION_KEY, &format!("[\"{id}\"]"));
        text(&mut tokens, COLLECTION_RID, &self.known.rid);
        tokens.u_long(REMAINING_TIME, REMAINING_MS);
        tokens.u_long(RETRY_COUNT, 0);
        let number_at = HEAD_BYTES + tokens.bytes().len() + TOKEN_HEAD_BYTES;
        tokens.u_long(TRANSPORT_REQUEST_ID, 0);
        tokens.u_long(CAPABILITIES, CAPABILITIES_OF_SDK);
        let frame = Outgoing::request(resource::DOCUMENT, operation, ACTIVITY_ID, &tokens);
        let head = match draft.body.len() {
            0 => frame.write(),
            bytes => frame.with_payload(bytes).write(),
        };
        let mut bytes = head.expect("the tokens are short");
        bytes.extend_from_slice(draft.body.as_bytes());
        Frame { bytes, number_at }
    }
}

/// The read of the item at a path.
fn read_draft(path: &str) -> Draft<'_> {
    Draft {
        method: "GET",
        path,
        resource_type: "docs",
        link: path,
        headers: "",
        body: "",
    }
}

/// What is sent to the items of the container.
fn post_draft(body: &str) -> Draft<'_> {
    Draft {
        method: "POST",
        path: "",
        resource_type: "docs",
        link: CONTAINER,
        headers: "",
        body,
    }
}

fn text(tokens: &mut TokenWriter, id: u16, text: &str) {
    put(tokens, id, Kind::String, text.as_bytes());
}

fn put(tokens: &mut TokenWriter, id: u16, kind: Kind, value: &[u8]) {
    assert!(tokens.counted(id, kind, value), "the tokens are short");
}
