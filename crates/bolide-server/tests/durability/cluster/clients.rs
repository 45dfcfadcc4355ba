//! Clients that ask any of the servers, note what they were told and when, and report answers that no server may give.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bolide_model::time::wall_clock;
use serde_json::{Value, json};

use super::history::{Call, Made, Outcome, Time, Version};
use super::servers::{Connection, Node};
use crate::client::{Request, Response};
use crate::random::Random;
use crate::wire::keyed;

/// The database of all containers.
pub const DATABASE: &str = "/dbs/d";
/// Items that were written last, for readers.
const RECENT: usize = 24;
/// Failures that are kept; the first ones tell most.
const KEPT_FAILURES: usize = 20;

/// The containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Items that several clients write, and that may have a ttl of their own; with a history for the all-versions feed.
    Items,
    /// Items that are only created.
    Created,
    /// Its default ttl is always another number. Its item is the container itself.
    Settings,
    /// From time to time its default ttl is a second.
    Cleared,
}

impl Place {
    pub const ALL: [Place; 4] = [Place::Items, Place::Created, Place::Settings, Place::Cleared];

    pub fn id(self) -> &'static str {
        match self {
            Place::Items => "items",
            Place::Created => "created",
            Place::Settings => "settings",
            Place::Cleared => "cleared",
        }
    }

    pub fn path(self) -> String {
        format!("{DATABASE}/colls/{}", self.id())
    }

    /// Its definition, with a default ttl where it has one.
    pub fn definition(self, default: Option<i64>) -> Value {
        let mut body = json!({"id": self.id(), "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        if let Some(default) = default {
            body["defaultTtl"] = default.into();
        }
        if self == Place::Items {
            body["changeFeedPolicy"] = json!({"retentionDuration": 60});
        }
        body
    }
}

/// An item, by its container and id.
pub type Item = (Place, String);

/// The logical partition of an item.
pub fn partition_key(id: &str) -> String {
    let sum: u64 = id.bytes().map(u64::from).sum();
    format!("p{}", sum % 7)
}

/// What all threads of a test share.
pub struct Run {
    pub nodes: Vec<Node>,
    pub is_over: AtomicBool,
    /// A live server answers in this time.
    pub limit: Duration,
    pub recent: Mutex<VecDeque<Item>>,
    start: (Instant, Time),
    values: AtomicU64,
    counts: Mutex<BTreeMap<String, u64>>,
    failures: Mutex<Vec<String>>,
}

impl Run {
    pub fn new(nodes: Vec<Node>, limit: Duration) -> Run {
        Run {
            nodes,
            is_over: AtomicBool::new(false),
            limit,
            recent: Mutex::default(),
            start: (Instant::now(), wall_clock().0 * 1000),
            values: AtomicU64::new(1),
            counts: Mutex::default(),
            failures: Mutex::default(),
        }
    }

    pub fn now(&self) -> Time {
        let (at, time) = self.start;
        time + Time::try_from(at.elapsed().as_micros()).expect("a short test")
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// A number that no other write has.
    pub fn value(&self) -> u64 {
        self.values.fetch_add(1, Ordering::Relaxed)
    }

    pub fn count(&self, what: impl Into<String>) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(what.into()).or_default() += 1;
    }

    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that a claim does not hold. The test goes on, and fails in the end.
    pub fn fail(&self, why: String) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() < KEPT_FAILURES {
            println!("at {}: {why}", self.now());
            failures.push(why);
        }
    }

    pub fn failures(&self) -> Vec<String> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note_recent(&self, item: &Item) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() == RECENT {
            recent.pop_front();
        }
        recent.push_back(item.clone());
    }
}

/// What became of a request.
pub enum Reply {
    /// It certainly did nothing: it was not sent, or refused.
    Nothing,
    /// It may have done what it asks for.
    Unknown { began: Time, ended: Time },
    Told {
        began: Time,
        ended: Time,
        response: Response,
    },
}

/// Times of a version, from an answer that shows it.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    pub place: Place,
    pub value: u64,
    /// `_ts`, in seconds.
    pub written: i64,
    pub ttl: Option<i64>,
}

/// A client, with a connection to each server.
pub struct Session<'r> {
    pub run: &'r Run,
    pub number: usize,
    pub random: Random,
    connections: Vec<Option<Connection>>,
    pub calls: Vec<(Item, Made)>,
    pub shown: Vec<Shown>,
}

impl<'r> Session<'r> {
    pub fn new(run: &'r Run, number: usize, seed: u64) -> Session<'r> {
        Session {
            run,
            number,
            random: Random::new(seed, number as u64 + 1),
            connections: run.nodes.iter().map(|_| None).collect(),
            calls: Vec::new(),
            shown: Vec::new(),
        }
    }

    pub fn any_server(&mut self) -> usize {
        usize::try_from(self.random.within(0..self.run.nodes.len() as u64)).expect("small")
    }

    /// Asks a server. Notes answers that it must not give, and those that take too long.
    pub fn ask(&mut self, server: usize, request: &Request) -> Reply {
        let node = &self.run.nodes[server];
        let mut connection = match self.connections[server].take().filter(|open| node.is_same(open)) {
            Some(connection) => connection,
            None => match node.connect() {
                Ok(connection) => connection,
                Err(_) => {
                    self.run.count("no connection");
                    std::thread::sleep(Duration::from_millis(10));
                    return Reply::Nothing;
                }
            },
        };
        let began = self.run.now();
        let answer = connection.client.try_send(request);
        let ended = self.run.now();
        let took = Duration::from_micros(u64::try_from(ended - began).expect("a monotonic clock"));
        let is_alive = node.is_same(&connection);
        // Afterwards come checks of whole containers, which take as long as there are items.
        if took > self.run.limit && is_alive && !self.run.is_over() {
            let status = answer.as_ref().map(|response| response.status);
            let what = format!("server {server} took {took:?} for {request:?}: {status:?}");
            self.run.fail(what);
        }
        match answer {
            Ok(response) => {
                self.connections[server] = Some(connection);
                self.judge(server, request, began, ended, response)
            }
            Err(error) => {
                self.run.count("broken connection");
                if is_alive {
                    self.run
                        .fail(format!("server {server} broke the connection: {error}: {request:?}"));
                }
                Reply::Unknown { began, ended }
            }
        }
    }

    fn judge(&self, server: usize, request: &Request, began: Time, ended: Time, response: Response) -> Reply {
        self.run.count(response.status.to_string());
        match response.status {
            408 => Reply::Unknown { began, ended },
            503 | 449 => {
                std::thread::sleep(Duration::from_millis(5));
                Reply::Nothing
            }
            404 if !matches!(response.header("x-ms-substatus"), None | Some("0")) => {
                let text = response.text();
                self.run.fail(format!(
                    "server {server} does not find the container: {request:?}: {text}"
                ));
                Reply::Nothing
            }
            200 | 201 | 204 | 304 | 404 | 409 => Reply::Told { began, ended, response },
            status => {
                let text = response.text();
                self.run
                    .fail(format!("server {server} answered {status}: {request:?}: {text}"));
                Reply::Unknown { began, ended }
            }
        }
    }

    /// Asks until there is an answer with a body, of any server.
    pub fn insist(&mut self, request: &Request) -> Response {
        let server = self.any_server();
        self.insist_of(server, request)
    }

    /// Asks a server until there is an answer with a body.
    pub fn insist_of(&mut self, server: usize, request: &Request) -> Response {
        let deadline = self.run.now() + 60_000_000;
        loop {
            if let Reply::Told { response, .. } = self.ask(server, request) {
                return response;
            }
            assert!(self.run.now() < deadline, "server {server} does not answer {request:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Makes a call about an item through a server, and notes its outcome.
    pub fn call(&mut self, server: usize, item: &Item, call: Call, ttl: Option<i64>) {
        let (began, ended, outcome) = match self.ask(server, &request(item, call, ttl)) {
            Reply::Nothing => return,
            Reply::Unknown { .. } if call == Call::Read => return,
            Reply::Unknown { began, ended } => (began, ended, Outcome::Unknown),
            Reply::Told { began, ended, response } => match self.outcome(item.0, call, &response) {
                Some(outcome) => (began, ended, outcome),
                None => {
                    let text = response.text();
                    self.run.fail(format!(
                        "server {server} answered {} to {call:?} of {item:?}: {text}",
                        response.status
                    ));
                    return;
                }
            },
        };
        if call != Call::Read && !matches!(outcome, Outcome::Missing | Outcome::Present) && ttl.is_some() {
            self.run.note_recent(item);
        }
        self.note(server, item, call, began, ended, outcome);
    }

    pub fn note(&mut self, server: usize, item: &Item, call: Call, began: Time, ended: Time, outcome: Outcome) {
        let made = Made {
            client: self.number,
            server,
            began,
            ended,
            call,
            outcome,
        };
        self.calls.push((item.clone(), made));
    }

    fn outcome(&mut self, place: Place, call: Call, response: &Response) -> Option<Outcome> {
        let body = matches!(response.status, 200 | 201).then(|| response.json());
        let version = body.as_ref().map(|body| self.see(place, body));
        let patches = version.map_or(0, |version| version.patches);
        Some(match (call, response.status) {
            (Call::Create(_) | Call::Upsert(_), 201) => Outcome::Stored { created: true, patches },
            (Call::Upsert(_) | Call::Replace(_) | Call::Patch(_), 200) => Outcome::Stored {
                created: false,
                patches,
            },
            (Call::Create(_), 409) => Outcome::Present,
            (Call::Delete, 204) => Outcome::Deleted,
            (Call::Read, 200) => Outcome::Found(version?),
            (Call::Replace(_) | Call::Patch(_) | Call::Delete | Call::Read, 404) => Outcome::Missing,
            _ => return None,
        })
    }

    /// Notes the times of an item that is shown.
    pub fn see(&mut self, place: Place, item: &Value) -> Version {
        let number = |name: &str| item[name].as_u64().unwrap_or_else(|| panic!("no {name}: {item}"));
        let version = Version {
            value: number("v"),
            patches: number("n"),
        };
        self.shown.push(Shown {
            place,
            value: version.value,
            written: item["_ts"].as_i64().expect("seconds"),
            ttl: item["ttl"].as_i64(),
        });
        version
    }
}

/// The request of a call.
fn request((place, id): &Item, call: Call, ttl: Option<i64>) -> Request {
    let key = partition_key(id);
    let docs = format!("{}/docs", place.path());
    let body = |value: u64| {
        let mut body = json!({"id": id, "pk": key, "v": value, "n": 0, "padding": "x".repeat(value as usize % 300)});
        if let Some(ttl) = ttl {
            body["ttl"] = ttl.into();
        }
        body.to_string()
    };
    let about = |method: &str| keyed(method, &format!("{docs}/{id}"), &key);
    match call {
        Call::Create(value) => keyed("POST", &docs, &key).body(body(value)),
        Call::Upsert(value) => keyed("POST", &docs, &key)
            .header("x-ms-documentdb-is-upsert", "true")
            .body(body(value)),
        Call::Replace(value) => about("PUT").body(body(value)),
        Call::Patch(value) => {
            let set = json!({"op": "set", "path": "/v", "value": value});
            let count = json!({"op": "incr", "path": "/n", "value": 1});
            about("PATCH").body(json!([set, count]).to_string())
        }
        Call::Delete => about("DELETE"),
        Call::Read => about("GET"),
    }
}

/// Whether a connection to a server can be made and a request is answered.
pub fn serves(node: &Node) -> io::Result<bool> {
    let read = keyed("GET", &format!("{}/docs/nothing", Place::Created.path()), "p");
    Ok(node.connect()?.client.try_send(&read)?.status == 404)
}
