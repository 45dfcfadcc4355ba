//! A client in direct mode that goes on when its channel, its server or a range is gone, as .NET 3.64 does.
//!
//! ```text
//!   channel broken or silent ──▶ addresses, forced ──▶ new channel ──▶ a read is sent again; a write is not: nobody knows whether it was done
//! ```
//!
//! Source: rntbd.md §1.5, §3.5, §7.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::call::{Call, More, Operation, Resource, Scope};
use super::client::{named_tokens, position, resolve_for};
use super::compare::{charge_in_frame, hide, without_times};
use super::frames::{Answer, Direct, PATIENCE, Sent};
use crate::client::{Client, Request, Response};

pub const DATABASE: &str = "d";
pub const CONTAINER: &str = "c";
/// Time between attempts to reach a server that is not there.
const PAUSE: Duration = Duration::from_millis(5);

/// A client of one container.
pub struct Sdk {
    /// For HTTP and for frames.
    port: u16,
    pem: Vec<u8>,
    /// How long a request may take. A silent channel is given up then.
    patience: Duration,
    rid: String,
    http: Option<Client>,
    channel: Option<Direct>,
    /// The paths of the primary and of another replica, by range.
    replicas: BTreeMap<String, [String; 2]>,
    /// The range of the last answer about a key.
    ranges: BTreeMap<&'static str, String>,
    /// Session tokens, by key or range.
    sessions: BTreeMap<String, String>,
    /// What two servers must answer alike, if it is kept.
    pub log: Option<Vec<String>>,
    /// How many channels it has opened.
    pub channels: usize,
}

impl Sdk {
    /// A client of the container, which exists. `port`: that of a server or of a relay.
    pub fn new(port: u16, pem: &[u8]) -> Sdk {
        let mut sdk = Sdk {
            port,
            pem: pem.to_vec(),
            patience: PATIENCE,
            rid: String::new(),
            http: None,
            channel: None,
            replicas: BTreeMap::new(),
            ranges: BTreeMap::new(),
            sessions: BTreeMap::new(),
            log: None,
            channels: 0,
        };
        let found = sdk.http(&Request::get("/dbs/d/colls/c")).expect(200).json();
        found["_rid"].as_str().expect("text").clone_into(&mut sdk.rid);
        sdk
    }

    /// Sends a request over HTTP, again on a new connection if one breaks: only what may be done twice.
    pub fn http(&mut self, request: &Request) -> Response {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.try_http(request) {
                Ok(response) if response.status != 503 => return response,
                Ok(response) => assert!(Instant::now() < deadline, "{}", response.text()),
                Err(error) => {
                    self.http = None;
                    assert!(Instant::now() < deadline, "nobody answers: {error}");
                }
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn try_http(&mut self, request: &Request) -> io::Result<Response> {
        if self.http.is_none() {
            let stream = std::net::TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_read_timeout(Some(self.patience))?;
            self.http = Some(Client::new(stream));
        }
        self.http.as_mut().expect("it was set").try_send(request)
    }

    /// The ranges of the container, with their parents.
    pub fn pkranges(&mut self) -> Vec<(u32, Vec<u32>)> {
        let id = |text: &Value| text.as_str().expect("text").parse().expect("a number");
        let path = format!("/dbs/{DATABASE}/colls/{CONTAINER}/pkranges");
        let told = self.http(&Request::get(&path)).expect(200).json();
        let told = told["PartitionKeyRanges"].as_array().expect("a list");
        let parents = |range: &Value| match range["parents"].as_array() {
            Some(parents) => parents.iter().map(id).collect(),
            None => Vec::new(),
        };
        told.iter().map(|range| (id(&range["id"]), parents(range))).collect()
    }

    /// The range of a key, as the last answer about it said.
    pub fn range_of(&self, key: &'static str) -> u32 {
        self.ranges[key].parse().expect("a number")
    }

    /// Waits for so long from now on, for answers on the connections that there are, too.
    pub fn wait_at_most(&mut self, patience: Duration) {
        self.patience = patience;
        let http = self.http.as_ref().map(Client::stream);
        let channel = self.channel.as_ref().map(|channel| &channel.stream.sock);
        for stream in http.into_iter().chain(channel) {
            stream.set_read_timeout(Some(patience)).expect("a timeout");
        }
    }

    /// Gives the channel up.
    pub fn disconnect(&mut self) {
        self.channel = None;
    }

    /// Goes on at another port, as if the name of the server led there now.
    pub fn move_to(&mut self, port: u16) {
        self.port = port;
        self.replicas.clear();
        (self.http, self.channel) = (None, None);
    }

    /// Sends a read, again if its answer does not come.
    pub fn read(&mut self, call: Call) -> Answer {
        let deadline = Instant::now() + PATIENCE;
        let (place, range) = (place_of(&call), self.range(&call));
        let session = self.sessions.get(&place).cloned();
        let call = match &session {
            Some(token) => call.session(token),
            None => call,
        };
        loop {
            let pause = match self.try_send(&call, &range, 1) {
                Ok(answer) => match asked_to_wait(&answer) {
                    Some(pause) => pause,
                    None => {
                        self.check_session(session.as_deref(), &answer);
                        self.note(&call, &answer);
                        return answer;
                    }
                },
                Err(failure) => {
                    assert!(Instant::now() < deadline, "no answer to a read: {}", failure.error);
                    PAUSE
                }
            };
            assert!(Instant::now() < deadline, "it is asked to wait again and again");
            std::thread::sleep(pause);
        }
    }

    /// Checks that an answer knows what the session has seen.
    fn check_session(&self, session: Option<&str>, answer: &Answer) {
        let what = (answer.head.status(), answer.sub_status());
        assert!(what != (404, 1002), "it has forgotten {session:?}");
        let of_range = |token: &&str| token.starts_with(&format!("{}:", answer.text(0x21)));
        if let Some(token) = session.filter(of_range) {
            assert!(position(answer.text(0x3E)) >= position(token), "behind {token}");
        }
    }

    /// Sends a write, again only if it was not done for certain. `None`: it was sent, and may have been done.
    pub fn write(&mut self, call: &Call) -> Option<Answer> {
        let deadline = Instant::now() + PATIENCE;
        let range = self.range(call);
        loop {
            let pause = match self.try_send(call, &range, 0) {
                Ok(answer) if answer.head.status() == 503 => return None,
                Ok(answer) => match asked_to_wait(&answer) {
                    Some(pause) => pause,
                    None => {
                        self.note(call, &answer);
                        return Some(answer);
                    }
                },
                Err(failure) if failure.was_sent => return None,
                Err(failure) => {
                    assert!(Instant::now() < deadline, "no server: {}", failure.error);
                    PAUSE
                }
            };
            assert!(Instant::now() < deadline, "it is asked to wait again and again");
            std::thread::sleep(pause);
        }
    }

    /// The frame of a request, for sending parts of it. Opens a channel if there is none.
    pub fn frame(&mut self, call: &Call) -> (Vec<u8>, &mut Direct) {
        let range = self.range(call);
        let replica = self.replica(&range, 0);
        let mut tokens = named_tokens(DATABASE, &self.rid, call);
        tokens.insert(0x13, Sent::Text(replica));
        self.connect().expect("the server listens");
        let channel = self.channel.as_mut().expect("it was opened");
        let frame = channel.frame(call.resource as u16, call.operation as u16, &tokens, &call.body);
        (frame, channel)
    }

    fn connect(&mut self) -> io::Result<()> {
        if self.channel.is_none() {
            let channel = Direct::try_connect(self.port, &self.pem, "2020-07-15", self.patience)?;
            self.channels += 1;
            self.channel = Some(channel);
        }
        Ok(())
    }

    fn try_send(&mut self, call: &Call, range: &str, replica: usize) -> Result<Answer, Failure> {
        let replica = self.replica(range, replica);
        let mut tokens = named_tokens(DATABASE, &self.rid, call);
        tokens.insert(0x13, Sent::Text(replica));
        let failed = |was_sent| move |error| Failure { error, was_sent };
        let sent = self.connect().map_err(failed(false)).and_then(|()| {
            let channel = self.channel.as_mut().expect("it was opened");
            let (resource, operation) = (call.resource as u16, call.operation as u16);
            let answer = channel.try_exchange(resource, operation, &tokens, &call.body);
            answer.map_err(failed(true))
        });
        if sent.is_err() {
            self.channel = None;
            self.replicas.clear();
        }
        sent
    }

    fn note(&mut self, call: &Call, answer: &Answer) {
        // Of other errors SDKs keep nothing.
        if answer.head.status() < 400 || [404, 409, 412].contains(&answer.head.status()) {
            let range = answer.text(0x21);
            if let Scope::Key(key) = call.scope {
                self.ranges.insert(key, range.to_owned());
            }
            let token = format!("{range}:{}", answer.text(0x3E));
            self.sessions.insert(place_of(call), token);
        }
        if let Some(log) = &mut self.log {
            log.push(comparable(call, answer));
        }
    }

    /// The range that a request is sent to.
    fn range(&mut self, call: &Call) -> String {
        match call.scope {
            Scope::Range(range) => range.to_string(),
            Scope::Key(key) if self.ranges.contains_key(key) => self.ranges[key].clone(),
            _ => self.pkranges()[0].0.to_string(),
        }
    }

    /// The path of a replica. Which range it names does not matter to requests about a key.
    fn replica(&mut self, range: &str, replica: usize) -> String {
        if !self.replicas.contains_key(range) {
            let told = self.ask_addresses(range).or_else(|| {
                let other = self.pkranges()[0].0.to_string();
                self.ask_addresses(&other)
            });
            let told = told.expect("there is a range");
            self.replicas.insert(range.to_owned(), told);
        }
        self.replicas[range][replica].clone()
    }

    fn ask_addresses(&mut self, range: &str) -> Option<[String; 2]> {
        let place = resolve_for(&self.rid);
        let path =
            format!("//addresses/?$resolveFor={place}&$filter=protocol%20eq%20rntbd&$partitionKeyRangeIds={range}");
        let request = Request::get(&path)
            .signing_as("docs", &self.rid.to_lowercase())
            .host(&format!("localhost:{}", self.port))
            .header("x-ms-force-refresh", "True");
        let told = self.http(&request).expect(200).json();
        let start = format!("rntbd://localhost:{}/", self.port);
        let of_kind = |is_primary: bool| {
            let mut told = told["Addresss"].as_array().expect("a list").iter();
            let address = told.find(|address| address["isPrimary"] == is_primary)?;
            let path = address["physcialUri"].as_str()?.strip_prefix(&start);
            Some(format!("/{}", path.expect("this server").trim_end_matches('/')))
        };
        Some([of_kind(true)?, of_kind(false)?])
    }
}

/// Why there is no answer.
struct Failure {
    error: io::Error,
    /// Whether the frame may have arrived.
    was_sent: bool,
}

/// How long the server asks its client to wait before it sends a request again (429), or a client waits by itself (503).
fn asked_to_wait(answer: &Answer) -> Option<Duration> {
    match answer.head.status() {
        429 => {
            let ms = answer.find_number(0x0C).expect("429 says for how long");
            Some(Duration::from_millis(u64::try_from(ms).expect("milliseconds")))
        }
        503 => Some(PAUSE),
        _ => None,
    }
}

fn place_of(call: &Call) -> String {
    match call.scope {
        Scope::Key(key) => key.to_owned(),
        Scope::Range(range) => range.to_string(),
        Scope::Nothing => String::new(),
    }
}

/// An answer without what differs between two servers: positions, etags and resource ids.
fn comparable(call: &Call, answer: &Answer) -> String {
    let mut body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    hide(&mut body);
    let items = body.get_mut("Documents").and_then(Value::as_array_mut);
    for item in items.into_iter().flatten() {
        if let Some(members) = item.as_object_mut() {
            members.remove("_lsn");
        }
    }
    let text = |id| answer.find(id).unwrap_or("none");
    format!(
        "{:?} {:?} {:?}: {}/{} charge {} items {:?} quota {} usage {} metrics {} {body}",
        call.operation,
        call.scope,
        call.leaf,
        answer.head.status(),
        answer.sub_status(),
        charge_in_frame(answer),
        answer.find_number(0x14),
        text(0x0E),
        text(0x0F),
        without_times(text(0x28)),
    )
}

/// A request about all items of a key, or about one.
pub fn items(operation: Operation) -> Call {
    Call::new(Resource::Item, operation, CONTAINER)
}

pub fn item(operation: Operation, key: &'static str, id: &str) -> Call {
    items(operation).key(key).leaf(id)
}

/// A batch of creates and other writes in JSON, as a whole or not at all.
pub fn batch(key: &'static str, operations: &Value) -> Call {
    items(Operation::Batch)
        .key(key)
        .body(operations.to_string())
        .with(More::Flag(0x73, "x-ms-cosmos-batch-atomic", true))
        .with(More::Flag(0x75, "x-ms-cosmos-batch-ordered", true))
}

pub fn query(text: &str, range: u32) -> Call {
    let body = json!({"query": text, "parameters": []});
    items(Operation::Query).range(range).body(body.to_string())
}

/// The feed of latest versions of a range, after a position.
pub fn changes(range: u32, after: Option<&str>) -> Call {
    let incremental = "Incremental Feed".to_owned();
    let call = items(Operation::ReadFeed)
        .range(range)
        .with(More::Text(0x3F, "a-im", incremental));
    match after {
        Some(etag) => call.matching(etag),
        None => call,
    }
}
