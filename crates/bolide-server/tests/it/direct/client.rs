//! A client in direct mode, as .NET 3.64 is one: which tokens it sends for each operation, and which replicas it asks at each consistency level. And
//! the same requests over HTTP.
//!
//! Source: rntbd.md §1.2 to §1.7, §4.3, §5.

use std::collections::BTreeMap;

use serde_json::Value;

use super::call::{Call, More, Operation, Resource, Scope, Segment, Sender, link, path, rid_bytes, rid_text};
use super::frames::{ACTIVITY_ID_TEXT, Answer, Direct, Sent, SentTokens};
use crate::client::{Client, Request, Response};
use crate::listening::certificate;
use crate::server::Server;

/// A consistency level: its name, and its number in frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    pub name: &'static str,
    pub number: u8,
}

pub const STRONG: Level = level("Strong", 0);
pub const BOUNDED_STALENESS: Level = level("BoundedStaleness", 1);
pub const SESSION: Level = level("Session", 2);
pub const EVENTUAL: Level = level("Eventual", 3);
pub const CONSISTENT_PREFIX: Level = level("ConsistentPrefix", 4);
/// From the strongest to the weakest.
pub const LEVELS: [Level; 5] = [STRONG, BOUNDED_STALENESS, SESSION, CONSISTENT_PREFIX, EVENTUAL];

/// The key that may only read.
pub const READ_ONLY_KEY: &str = "cmVhZG9ubHktcmVhZG9ubHktcmVhZG9ubHk=";

const fn level(name: &'static str, number: u8) -> Level {
    Level { name, number }
}

/// How a client says what a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// As .NET 3.64.
    Names,
    /// By resource ids, as .NET 2.11 with links of resources.
    Rids,
}

impl Style {
    /// The version of the API that such clients speak.
    fn version(self) -> &'static str {
        match self {
            Style::Names => "2020-07-15",
            Style::Rids => "2018-09-17",
        }
    }
}

/// The addresses of a range.
struct Replicas {
    primary: String,
    secondaries: Vec<String>,
}

/// A range: the resource id of its container and its own id. That of databases and containers themselves is `M`.
type Range = (String, String);

/// What a client has sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Frames of reads, and of all others.
    pub reads: usize,
    pub writes: usize,
    pub addresses: usize,
    /// Requests for addresses that ask for fresh ones.
    pub refreshes: usize,
}

pub struct DirectClient {
    http: Client,
    direct: Direct,
    port: u16,
    style: Style,
    account_level: Level,
    /// `maxReplicasetSize` for items, and for databases and containers.
    set_sizes: [u64; 2],
    replicas: BTreeMap<Range, Replicas>,
    /// Resource ids by paths with names.
    rids: BTreeMap<String, String>,
    /// Tokens of permissions, by their paths.
    tokens: BTreeMap<String, String>,
    pub counts: Counts,
}

/// What is known of a resource by its name.
struct Addressed {
    segments: Vec<Segment>,
    /// The resource ids of the named segments, if they are sent, or if the container's is.
    rids: Vec<String>,
    /// That of the container.
    container: Option<String>,
}

impl DirectClient {
    pub fn new(server: &Server, style: Style) -> DirectClient {
        let mut http = server.client();
        let account = http.send(&Request::get("/")).expect(200).json();
        let size = |policy: &str| account[policy]["maxReplicasetSize"].as_u64().expect("a number");
        let name = &account["userConsistencyPolicy"]["defaultConsistencyLevel"];
        let found = LEVELS.into_iter().find(|level| level.name == *name);
        DirectClient {
            set_sizes: [size("userReplicationPolicy"), size("systemReplicationPolicy")],
            direct: Direct::connect(server.port(), &certificate(server), style.version()),
            http,
            port: server.port(),
            style,
            account_level: found.expect("a level"),
            replicas: BTreeMap::new(),
            rids: BTreeMap::new(),
            tokens: BTreeMap::new(),
            counts: Counts::default(),
        }
    }

    /// The level that a read is done with.
    pub fn level_of(&self, call: &Call, asked: Option<Level>) -> Level {
        match call.is_of_master() {
            true => STRONG,
            false => asked.unwrap_or(self.account_level),
        }
    }

    /// Sends a request in a frame, or in several, if the answer of a replica is not enough.
    pub fn send(&mut self, database: &str, call: &Call, asked: Option<Level>) -> Answer {
        let call = &self.with_own_etag(database, call);
        let addressed = self.address(database, call);
        let range = range_of(&addressed, call);
        if !self.replicas.contains_key(&range) {
            self.ask_addresses(&range, false);
        }
        let mut tokens = self.tokens(database, &addressed, call);
        if call.is_of_master() && call.operation.is_read() {
            tokens.insert(0x10, Sent::Byte(STRONG.number));
        } else if let Some(asked) = asked {
            tokens.insert(0x10, Sent::Byte(asked.number));
        }
        if !call.operation.is_read() {
            self.counts.writes += 1;
            let primary = self.replicas[&range].primary.clone();
            return self.exchange(call, &primary, &tokens);
        }
        match self.level_of(call, asked) {
            level if level == STRONG || level == BOUNDED_STALENESS => self.read_by_quorum(&range, call, &tokens),
            level => self.read_from_any(&range, call, &tokens, level == SESSION),
        }
    }

    /// Reads from one replica, and from others if that is behind.
    fn read_from_any(&mut self, range: &Range, call: &Call, tokens: &SentTokens, has_session: bool) -> Answer {
        let replicas = &self.replicas[range];
        let all: Vec<String> = [&replicas.secondaries[..], std::slice::from_ref(&replicas.primary)].concat();
        let seen = match tokens.get(&0x05) {
            Some(Sent::Text(token)) if has_session => position(token),
            _ => 0,
        };
        let mut last = None;
        for replica in all {
            self.counts.reads += 1;
            let answer = self.exchange(call, &replica, tokens);
            let is_valid = is_valid(&answer) && position(answer.find(0x3E).unwrap_or_default()) >= seen;
            if is_valid || ends_reads(&answer) {
                return answer;
            }
            last = Some(answer);
        }
        last.expect("there is a replica")
    }

    /// Reads from as many secondaries as a quorum needs, or from the primary.
    fn read_by_quorum(&mut self, range: &Range, call: &Call, tokens: &SentTokens) -> Answer {
        let size = self.set_sizes[usize::from(call.is_of_master())];
        let quorum = usize::try_from(size - size / 2).expect("a small number");
        if self.replicas[range].secondaries.len() < quorum {
            self.ask_addresses(range, true);
        }
        let mut answers: Vec<Answer> = Vec::new();
        for replica in self.replicas[range].secondaries.clone() {
            self.counts.reads += 1;
            let answer = self.exchange(call, &replica, tokens);
            if ends_reads(&answer) {
                return answer;
            }
            if is_valid(&answer) && answer.number(0x13) > 0 {
                answers.push(answer);
            }
            if answers.len() == quorum {
                break;
            }
        }
        let newest = answers.iter().map(|answer| answer.number(0x13)).max().unwrap_or(0);
        let agreeing = answers.iter().filter(|answer| answer.number(0x13) == newest).count();
        let is_met = agreeing >= quorum;
        let found = answers.into_iter().find(|answer| answer.number(0x13) == newest);
        if let Some(answer) = found.filter(|_| is_met) {
            // With other regions, what they have committed counts, too.
            assert!(answer.number(0x30) == 0 || answer.number(0x29) >= newest);
            return answer;
        }
        self.ask_addresses(range, true);
        self.counts.reads += 1;
        let primary = self.replicas[range].primary.clone();
        let answer = self.exchange(call, &primary, tokens);
        assert!(answer.number(0x1F) > 0 && answer.number(0x1A) >= 0);
        assert_eq!(answer.number(0x13), answer.number(0x1A), "a barrier would be sent");
        answer
    }

    fn exchange(&mut self, call: &Call, replica: &str, tokens: &SentTokens) -> Answer {
        let mut tokens = tokens.clone();
        tokens.insert(0x13, Sent::Text(replica.to_owned()));
        let (resource, operation) = (call.resource as u16, call.operation as u16);
        self.direct.exchange(resource, operation, &tokens, &call.body)
    }

    /// Asks where a range is.
    fn ask_addresses(&mut self, range: &Range, is_forced: bool) {
        let (container, id) = range;
        let (place, resource, ranges) = match container.as_str() {
            "" => ("dbs".to_owned(), "dbs", String::new()),
            rid => (resolve_for(rid), "docs", format!("&$partitionKeyRangeIds={id}")),
        };
        let path = format!("//addresses/?$resolveFor={place}&$filter=protocol%20eq%20rntbd{ranges}");
        let mut request = Request::get(&path)
            .signing_as(resource, &container.to_lowercase())
            .host(&format!("localhost:{}", self.port));
        if is_forced {
            request = request.header("x-ms-force-refresh", "True");
            self.counts.refreshes += 1;
        }
        self.counts.addresses += 1;
        let told = self.http.send(&request);
        if is_forced && told.status == 404 {
            // The container was deleted; what was known stays.
            return;
        }
        let told = told.expect(200).json();
        let told = told["Addresss"].as_array().expect("a list");
        let of_kind = |is_primary: bool| -> Vec<String> {
            let fitting = told.iter().filter(|address| {
                assert_eq!(
                    (&address["protocol"], &address["partitionKeyRangeId"]),
                    (&"rntbd".into(), &id.as_str().into())
                );
                address["isPrimary"] == is_primary
            });
            let start = format!("rntbd://localhost:{}/", self.port);
            let uri = |address: &Value| address["physcialUri"].as_str().expect("text").to_owned();
            let path = |uri: String| {
                uri.strip_prefix(&start)
                    .map(|path| format!("/{}", path.trim_end_matches('/')))
            };
            fitting
                .map(|address| path(uri(address)).expect("this server"))
                .collect()
        };
        let [primary] = &of_kind(true)[..] else {
            panic!("not one primary: {told:?}");
        };
        let replicas = Replicas {
            primary: primary.clone(),
            secondaries: of_kind(false),
        };
        self.replicas.insert(range.clone(), replicas);
    }

    /// Sends the same over HTTP.
    pub fn send_over_http(&mut self, database: &str, call: &Call, asked: Option<Level>) -> Response {
        let call = &self.with_own_etag(database, call);
        let addressed = self.address(database, call);
        let mut request = match self.style {
            Style::Names => Request::new(call.operation.method(), &path(&addressed.segments)),
            Style::Rids => {
                let path = path_of_rids(&addressed);
                let link = addressed.rids.last().map_or_else(String::new, |rid| rid.to_lowercase());
                Request::new(call.operation.method(), &path).signing_as(call.resource.keyword(), &link)
            }
        };
        for (name, value) in call.headers() {
            request = request.header(name, &value);
        }
        if self.style == Style::Names {
            for (name, value) in own_headers(call) {
                request = request.header(name, value);
            }
        }
        if let Some(asked) = asked.filter(|_| !call.is_of_master()) {
            request = request.header("x-ms-consistency-level", asked.name);
        }
        let request = self
            .sent_by(database, call, request)
            .header("x-ms-version", self.style.version())
            .header("x-ms-activity-id", ACTIVITY_ID_TEXT)
            .body(&call.body);
        self.http.send(&request)
    }

    /// Reads the resource ids of a container and its database.
    pub fn look_up(&mut self, database: &str, container: &'static str) {
        self.address(database, &Call::new(Resource::Item, Operation::ReadFeed, container));
    }

    /// Sends a request of a test over HTTP.
    pub fn prepare(&mut self, request: &Request) -> Response {
        self.http.send(request)
    }

    /// The request with the etag that its resource has now, if that is its condition.
    fn with_own_etag(&mut self, database: &str, call: &Call) -> Call {
        if !call.more.iter().any(|more| matches!(more, More::OwnEtag)) {
            return call.clone();
        }
        let path = path(&call.segments(database));
        let found = self.http.send(&keyed(Request::get(&path), call)).expect(200);
        call.clone().matching(found.header("etag").expect("an etag"))
    }

    /// A request by the sender of a call.
    fn sent_by(&mut self, database: &str, call: &Call, request: Request) -> Request {
        match call.sender {
            Sender::Key => request,
            Sender::ReadOnlyKey => request.key(READ_ONLY_KEY),
            Sender::OtherKey => request.key("b3RoZXIta2V5LW90aGVyLWtleQ=="),
            Sender::Token(permission) => request.header("authorization", &self.token_of(database, permission)),
        }
    }

    /// The token of the permission of the user with the same name, escaped as SDKs do.
    fn token_of(&mut self, database: &str, permission: &str) -> String {
        let path = format!("/dbs/{database}/users/{permission}/permissions/{permission}");
        if let Some(token) = self.tokens.get(&path) {
            return token.clone();
        }
        let found = self.http.send(&Request::get(&path)).expect(200).json();
        let token = found["_token"].as_str().expect("text");
        let token = token.replace('=', "%3D").replace('&', "%26").replace(';', "%3B");
        self.tokens.insert(path, token.clone());
        token
    }

    /// The tokens of a request, as column "seen" of rntbd.md §4.3 has them, without those of the connection.
    fn tokens(&mut self, database: &str, addressed: &Addressed, call: &Call) -> SentTokens {
        let mut tokens = call.tokens();
        let signed = match self.style {
            Style::Names => link(&addressed.segments),
            Style::Rids => addressed.rids.last().map_or_else(String::new, |rid| rid.to_lowercase()),
        };
        let request = Request::new(call.operation.method(), "/").signing_as(call.resource.keyword(), &signed);
        let (mut authorization, date) = self.sent_by(database, call, request).authorization();
        if let Sender::Token(permission) = call.sender {
            authorization = self.token_of(database, permission);
        }
        tokens.insert(0x01, Sent::Text(authorization));
        tokens.insert(0x03, Sent::SmallText(date));
        match self.style {
            Style::Names => add_tokens_of_names(&mut tokens, addressed, call),
            Style::Rids => add_tokens_of_rids(&mut tokens, addressed, call),
        }
        tokens
    }

    fn address(&mut self, database: &str, call: &Call) -> Addressed {
        let segments = call.segments(database);
        let named = segments.iter().filter(|(_, _, name)| name.is_some()).count();
        // The container is looked up by name in either style, as its ranges are.
        let container = (!call.is_of_master()).then(|| self.rid(&segments[..2], call, &[]));
        let mut rids: Vec<String> = Vec::new();
        if self.style == Style::Rids {
            for length in 1..=named {
                let rid = self.rid(&segments[..length], call, &rids);
                rids.push(rid);
            }
        }
        Addressed {
            segments,
            rids,
            container,
        }
    }

    /// The resource id of a path with names; of what is not there, the one that it had, or one that nothing has.
    fn rid(&mut self, segments: &[Segment], call: &Call, parents: &[String]) -> String {
        let path = path(segments);
        if let Some(rid) = self.rids.get(&path) {
            return rid.clone();
        }
        let found = self.http.send(&keyed(Request::get(&path), call));
        if found.status == 200 {
            let rid = found.json()["_rid"].as_str().expect("text").to_owned();
            self.rids.insert(path, rid.clone());
            return rid;
        }
        let parent = parents.last().map_or_else(Vec::new, |parent| rid_bytes(parent));
        rid_text(&match (call.resource, segments.len()) {
            (_, 1) => vec![0xEE, 0xEE, 0xEE, 0],
            // A user's has a clear bit where a container's has a set one.
            (Resource::User | Resource::Permission, 2) => [&parent[..], &[0x0E, 0xEE, 0xEE, 0xEE]].concat(),
            (_, 2) => [&parent[..], &[0x8E, 0xEE, 0xEE, 0xEE]].concat(),
            (Resource::Procedure, _) => [&parent[..], &[0xEE, 0, 0, 0, 0, 0, 0, 0x80]].concat(),
            (Resource::Conflict, _) => [&parent[..], &[0xEE, 0, 0, 0, 0, 0, 0, 0x40]].concat(),
            _ => [&parent[..], &[0xEE, 0xEE, 0, 0, 0, 0, 0, 0]].concat(),
        })
    }
}

/// The part of a path that says of which container addresses are asked for.
pub fn resolve_for(container: &str) -> String {
    let database = rid_text(&rid_bytes(container)[..4]);
    let path = format!("dbs/{database}/colls/{container}/docs");
    path.replace('/', "%2f").replace('=', "%3d")
}

/// The tokens with which .NET 3.64 asks about items of a container by names, without those of the connection. `rid`: that of the container.
pub fn named_tokens(database: &str, rid: &str, call: &Call) -> SentTokens {
    let addressed = Addressed {
        segments: call.segments(database),
        rids: Vec::new(),
        container: Some(rid.to_owned()),
    };
    let request = Request::new(call.operation.method(), "/");
    let request = request.signing_as(call.resource.keyword(), &link(&addressed.segments));
    let (authorization, date) = request.authorization();
    let mut tokens = call.tokens();
    tokens.insert(0x01, Sent::Text(authorization));
    tokens.insert(0x03, Sent::SmallText(date));
    add_tokens_of_names(&mut tokens, &addressed, call);
    tokens
}

/// Headers of .NET 3.64 that are among the tokens of the same requests.
fn own_headers(call: &Call) -> Vec<(&'static str, &'static str)> {
    let mut headers = vec![("x-ms-cosmos-sdk-supportedcapabilities", "9")];
    let has = |name: &str| call.headers().iter().any(|(header, _)| *header == name);
    let is_of_items = call.resource == Resource::Item;
    match call.operation {
        Operation::Query | Operation::ReadFeed if is_of_items => {
            if !has("x-ms-max-item-count") {
                headers.push(("x-ms-max-item-count", "-1"));
            }
            if !has("a-im") && !has("x-ms-documentdb-populatequerymetrics") {
                headers.push(("x-ms-documentdb-populatequerymetrics", "True"));
            }
        }
        _ => {}
    }
    if call.operation == Operation::Query && is_of_items {
        headers.push(("x-ms-cosmos-correlated-activityid", ACTIVITY_ID_TEXT));
        headers.push(("x-ms-cosmos-query-optimisticdirectexecute", "False"));
    }
    headers
}

/// The tokens of .NET 3.64 that say what a request is about, and those that it always sends.
fn add_tokens_of_names(tokens: &mut SentTokens, addressed: &Addressed, call: &Call) {
    for (_, token, name) in &addressed.segments {
        if let Some(name) = name {
            tokens.insert(*token, Sent::Text(name.clone()));
        }
    }
    if let Some(rid) = &addressed.container {
        tokens.insert(0x00, Sent::Bytes(rid_bytes(rid)));
        tokens.insert(0x35, Sent::Text(rid.clone()));
    }
    if call.operation.is_barrier() {
        tokens.remove(&0x00);
        tokens.insert(0xA2, Sent::ULong(9));
        return;
    }
    let is_bulk = call.operation == Operation::Batch && tokens.contains_key(&0x2C);
    tokens.insert(0x49, Sent::ULong(if is_bulk { 60_000 } else { 30_000 }));
    tokens.insert(0x4A, Sent::ULong(0));
    tokens.insert(0xA2, Sent::ULong(9));
    let is_of_items = call.resource == Resource::Item;
    match call.operation {
        Operation::Query | Operation::ReadFeed if is_of_items => {
            tokens.entry(0x04).or_insert(Sent::ULong(u32::MAX));
            if !tokens.contains_key(&0x3F) {
                tokens.entry(0x42).or_insert(Sent::Byte(1));
            }
        }
        _ => {}
    }
    if call.resource == Resource::Conflict && call.operation != Operation::Read {
        tokens.insert(0x42, Sent::Byte(1));
    }
    if call.operation == Operation::Query && is_of_items {
        tokens.insert(0xB0, Sent::Guid(super::frames::ACTIVITY_ID));
        // Text or binary: what is sent back is text.
        tokens.insert(0xC4, Sent::Byte(3));
        tokens.insert(0xC8, Sent::Byte(0));
    }
}

/// The same of .NET 2.11: no names, and the resource id of the resource or of its parent.
fn add_tokens_of_rids(tokens: &mut SentTokens, addressed: &Addressed, call: &Call) {
    if let Some(rid) = addressed.rids.last() {
        tokens.insert(0x00, Sent::Bytes(rid_bytes(rid)));
    }
    if let (Some(Sent::Text(range)), Some(container)) = (tokens.get(&0x2C), &addressed.container) {
        let range = format!("{container},{range}");
        tokens.insert(0x2C, Sent::Text(range));
    }
    if call.is_of_master() && call.operation == Operation::ReadFeed {
        tokens.entry(0x04).or_insert(Sent::ULong(i32::MAX.cast_unsigned()));
    }
}

/// The range of a request; a client knows that there is no other one than these.
fn range_of(addressed: &Addressed, call: &Call) -> Range {
    match (&addressed.container, call.scope) {
        (None, _) => (String::new(), "M".to_owned()),
        (Some(container), Scope::Range(range @ 1..=4)) => (container.clone(), range.to_string()),
        (Some(container), _) => (container.clone(), "0".to_owned()),
    }
}

fn path_of_rids(addressed: &Addressed) -> String {
    let ids = addressed.rids.iter().map(Some).chain([None]);
    let parts = addressed.segments.iter().zip(ids);
    parts
        .map(|((keyword, _, _), rid)| match rid {
            Some(rid) => format!("/{keyword}/{rid}"),
            None => format!("/{keyword}"),
        })
        .collect()
}

/// With the key of a call, for reading what the call is about.
fn keyed(request: Request, call: &Call) -> Request {
    let headers = call.headers();
    let key = headers.iter().find(|(name, _)| *name == "x-ms-documentdb-partitionkey");
    match key {
        Some((name, key)) => request.header(name, key),
        None => request,
    }
}

/// The position in a session token, with or without the range before it.
pub fn position(token: &str) -> i64 {
    let position = token.rsplit_once('#').map(|(_, position)| position.parse());
    position.map_or(-1, |position| position.expect("a number"))
}

/// Whether the answer of a replica counts.
fn is_valid(answer: &Answer) -> bool {
    let is_gone = answer.head.status() == 410 && answer.sub_status() != 1000;
    !is_gone && answer.find_number(0x13).is_some_and(|lsn| lsn >= 0)
}

/// Whether no other replica is asked: a range that is not there is nowhere.
fn ends_reads(answer: &Answer) -> bool {
    answer.head.status() == 410 && [1002, 1007, 1008].contains(&answer.sub_status())
}
