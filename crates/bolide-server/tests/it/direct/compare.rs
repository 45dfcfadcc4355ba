//! What an answer over HTTP and one in a frame must have in common.
//!
//! Source: rntbd.md §1.7, §4.5, §7.

use bolide_rntbd::token::Kind;
use serde_json::{Value, json};

use super::frames::Answer;
use super::hybrid_row;
use crate::client::Response;

/// The types of the tokens of responses: clients read a token of another type as something else.
#[rustfmt::skip]
const KINDS: [(u16, Kind); 30] = [
    (0x00, Kind::Byte), (0x02, Kind::SmallString), (0x03, Kind::String), (0x04, Kind::String), (0x0C, Kind::ULong),
    (0x0E, Kind::String), (0x0F, Kind::String), (0x10, Kind::SmallString), (0x13, Kind::LongLong), (0x14, Kind::ULong),
    (0x15, Kind::Double), (0x17, Kind::String), (0x18, Kind::String), (0x1A, Kind::LongLong), (0x1C, Kind::ULong),
    (0x1E, Kind::ULong), (0x1F, Kind::ULong), (0x21, Kind::String), (0x25, Kind::String), (0x28, Kind::String),
    (0x29, Kind::LongLong), (0x30, Kind::ULong), (0x32, Kind::LongLong), (0x35, Kind::ULong), (0x3A, Kind::LongLong),
    (0x3B, Kind::LongLong), (0x3C, Kind::LongLong), (0x3E, Kind::String), (0x44, Kind::String), (0x51, Kind::Double),
];

/// Tokens that are the same text as a header.
const SAME_TEXT: [(u16, &str); 7] = [
    (0x0E, "x-ms-resource-quota"),
    (0x0F, "x-ms-resource-usage"),
    (0x10, "x-ms-schemaversion"),
    (0x17, "x-ms-alt-content-path"),
    (0x18, "x-ms-content-path"),
    (0x25, "x-ms-documentdb-script-log-results"),
    (0x44, "x-ms-cosmos-index-utilization"),
];
/// The same, if both are of one database; else they are both there.
const SAME_TEXT_OF_ONE: [(u16, &str); 3] = [
    (0x02, "x-ms-last-state-change-utc"),
    (0x03, "x-ms-continuation"),
    (0x04, "etag"),
];
const SAME_NUMBER: [(u16, &str); 2] = [(0x0C, "x-ms-retry-after-ms"), (0x14, "x-ms-item-count")];
const DURATION: u16 = 0x51;
const QUERY_METRICS: (u16, &str) = (0x28, "x-ms-documentdb-query-metrics");
/// Tokens that say how far the range is, besides its LSN.
const POSITIONS: [u16; 2] = [0x29, 0x3A];
/// Tokens that say how far a quorum is.
const ACKED: [u16; 2] = [0x1A, 0x3B];
/// Tokens that say how far the item is.
const ITEM_POSITIONS: [u16; 2] = [0x32, 0x3C];

/// Two databases with the same content.
pub struct Twins {
    pub databases: [String; 2],
    /// The first letters of their resource ids, and of those of all that is in them.
    pub rids: [String; 2],
}

/// An answer of each kind to the same request.
pub struct Pair<'a> {
    pub response: &'a Response,
    pub answer: &'a Answer,
    pub twins: &'a Twins,
    /// Whether both are of the same database.
    pub is_of_one: bool,
    /// The session token that the frame must have.
    pub session: String,
}

impl Twins {
    /// What is said of the second database, said of the first.
    fn as_first(&self, text: &str) -> String {
        let [first, second] = &self.databases;
        let [first_rid, second_rid] = &self.rids;
        text.replace(second.as_str(), first)
            .replace(second_rid.as_str(), first_rid)
    }

    /// A body without what differs between the databases.
    fn comparable(&self, body: &[u8]) -> String {
        let mut value = match serde_json::from_slice(body) {
            _ if hybrid_row::is_rows(body) => hybrid_row::results(body),
            Ok(value) => value,
            Err(_) => return String::from_utf8_lossy(body).into_owned(),
        };
        hide(&mut value);
        self.as_first(&value.to_string())
    }
}

/// Replaces what differs between two databases.
pub fn hide(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match name.as_str() {
                    "_rid" | "_self" | "_etag" | "_token" | "eTag" => *value = json!("hidden"),
                    _ => hide(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(hide),
        _ => {}
    }
}

impl Pair<'_> {
    /// What differs.
    pub fn differences(&self) -> Vec<String> {
        let mut found = Vec::new();
        let said = self
            .said()
            .into_iter()
            .chain(self.body())
            .chain(self.positions())
            .chain(self.kinds());
        for (what, over_http, in_frame) in said {
            if over_http != in_frame {
                let cut = |text: &str| text.chars().take(300).collect::<String>();
                found.push(format!("{what}: `{}` over HTTP, `{}`", cut(&over_http), cut(&in_frame)));
            }
        }
        found
    }

    /// Status, charge, and what is a header over HTTP: what it is, that over HTTP, and that in the frame.
    fn said(&self) -> Vec<(&'static str, String, String)> {
        let Pair { response, answer, .. } = self;
        let header = |name: &str| response.header(name).unwrap_or("none").to_owned();
        let token = |id: u16| answer.find(id).unwrap_or("none").to_owned();
        let mut said = vec![
            ("status", response.status.to_string(), answer.head.status().to_string()),
            (
                "sub-status",
                sub_status(response).to_string(),
                answer.sub_status().to_string(),
            ),
            ("charge", charge_over_http(response), charge_in_frame(answer)),
            (
                "duration",
                there(&header("x-ms-request-duration-ms")),
                answer.head.tokens.get(DURATION).map_or("none", |_| "there").to_owned(),
            ),
        ];
        for (id, name) in SAME_TEXT {
            said.push((name, header(name), self.twin(&token(id))));
        }
        for (id, name) in SAME_TEXT_OF_ONE {
            said.push(match self.is_of_one {
                true => (name, header(name), token(id)),
                false => (name, there(&header(name)), there(&token(id))),
            });
        }
        for (id, name) in SAME_NUMBER {
            let number = answer.find_number(id).map(|number| number.to_string());
            said.push((name, header(name), number.unwrap_or("none".to_owned())));
        }
        let (id, name) = QUERY_METRICS;
        said.push((name, without_times(&header(name)), without_times(&token(id))));
        said
    }

    fn body(&self) -> Vec<(&'static str, String, String)> {
        let bodies = [&self.response.body[..], &self.answer.body[..]];
        let [over_http, in_frame] = bodies.map(|body| match self.is_of_one {
            true => String::from_utf8_lossy(body).into_owned(),
            false => self.twins.comparable(body),
        });
        let mut said = vec![("body", over_http, in_frame)];
        if let Some(etag) = etag_in(&self.answer.body) {
            said.push((
                "etag of the body",
                etag,
                self.answer.find(0x04).unwrap_or("none").to_owned(),
            ));
        }
        said
    }

    fn positions(&self) -> Vec<(&'static str, String, String)> {
        let Pair { response, answer, .. } = self;
        // Nothing written yet is 0 over HTTP, and never in a frame.
        let lsn = match self.session.trim_start_matches("-1#") {
            "0" => "1",
            lsn => lsn,
        };
        let number = |id: u16| answer.number(id).to_string();
        let mut said = vec![
            ("session", self.session.clone(), answer.text(0x3E).to_owned()),
            ("lsn", lsn.to_owned(), number(0x13)),
        ];
        said.extend(POSITIONS.map(|id| ("a position", number(0x13), number(id))));
        // The official SDKs' own tests expect a reader of a write to be further than this.
        let lsn_number: i128 = lsn.parse().expect("a number");
        let acked = match !self.is_of_one && response.status < 300 && response.header("lsn").is_some() {
            true => (lsn_number - 1).max(1),
            false => lsn_number,
        };
        said.extend(ACKED.map(|id| ("what a quorum has", acked.to_string(), number(id))));
        let of_item = response.header("x-ms-item-lsn").unwrap_or(lsn);
        said.extend(ITEM_POSITIONS.map(|id| ("the item's position", of_item.to_owned(), number(id))));
        let replicas = [0x1F, 0x1E, 0x30].map(number).join(" ");
        said.push(("replicas, quorum and regions", "1 1 0".to_owned(), replicas));
        said
    }

    /// The types of the tokens.
    fn kinds(&self) -> Vec<(&'static str, String, String)> {
        let tokens = self.answer.head.tokens.iter();
        let kinds = tokens.map(|token| {
            let known = KINDS.iter().find(|(id, _)| *id == token.id);
            let known = known.map_or("unknown".to_owned(), |(id, kind)| format!("{id:#04x} {kind:?}"));
            ("type of a token", known, format!("{:#04x} {:?}", token.id, token.kind))
        });
        kinds.collect()
    }

    fn twin(&self, text: &str) -> String {
        match self.is_of_one {
            true => text.to_owned(),
            false => self.twins.as_first(text),
        }
    }
}

fn there(text: &str) -> String {
    if text == "none" { "none" } else { "there" }.to_owned()
}

fn etag_in(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    value.get("_etag")?.as_str().map(str::to_owned)
}

pub fn sub_status(response: &Response) -> u32 {
    let sub = response.header("x-ms-substatus");
    sub.map_or(0, |sub| sub.parse().expect("a number"))
}

/// Query metrics without times.
pub fn without_times(metrics: &str) -> String {
    let parts = metrics.split(';').filter(|part| !part.contains("InMs="));
    parts.collect::<Vec<_>>().join(";")
}

fn charge_over_http(response: &Response) -> String {
    let charge = response.header("x-ms-request-charge");
    charge.map_or("none".to_owned(), |charge| {
        format!("{:.2}", charge.parse::<f64>().expect("a number"))
    })
}

pub fn charge_in_frame(answer: &Answer) -> String {
    let charge = answer.head.tokens.get(0x15);
    charge.map_or("none".to_owned(), |charge| {
        format!("{:.2}", charge.double().expect("a double"))
    })
}
