//! The table of direct mode: each row is a request that is sent over HTTP and in a frame, and both answers must say the same, and what the row says.
//!
//! ```text
//!   rows × 5 levels of the account × by names, by resource ids;  reads also at each level that a request may ask for
//! ```
//!
//! A read is sent both ways to the same database. A write is sent over HTTP to one database and in a frame to its twin, which has had the same writes
//! in the same order, at the same time: the clock stands still. So positions in the logs of both are equal, and all else but ids and etags.

use std::collections::BTreeMap;

use super::call::{Call, Operation, Scope};
use super::client::{
    BOUNDED_STALENESS, CONSISTENT_PREFIX, Counts, DirectClient, EVENTUAL, LEVELS, Level, READ_ONLY_KEY, SESSION,
    STRONG, Style,
};
use super::compare::{Pair, Twins, sub_status};
use super::frames::Answer;
use super::rows;
use crate::client::{Request, Response};
use crate::server::Server;

/// A request of the test itself, over HTTP: method, path and body.
pub type Prepared = (&'static str, &'static str, &'static str);

/// A row of the table.
pub struct Row {
    pub name: &'static str,
    pub call: Call,
    pub status: u16,
    pub sub_status: u32,
    /// Requests before both: for each database, if `{db}` is in the path.
    pub before: Vec<Prepared>,
    /// A request before each of the two, and of each page.
    pub before_each: Option<Prepared>,
    pub follow: Follow,
    /// How many items all pages have.
    pub items: Option<u64>,
    /// Whether the session has seen more than there is: a client asks each replica.
    pub is_ahead: bool,
}

/// What leads to the next page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    No,
    Continuation,
    /// The etag, until nothing is new (304).
    Etag,
}

/// A table that is run, in one style.
struct Run {
    client: DirectClient,
    account: Level,
    style: Style,
    /// The database for writes over HTTP, and the one for those in frames and for all reads.
    twins: Twins,
    /// Session tokens by container and range.
    sessions: BTreeMap<(&'static str, u32), String>,
    expected: Counts,
    problems: Vec<String>,
    compared: usize,
}

fn run(account: Level) {
    let clock = "--virtual-clock=2023-11-14T22:13:20Z";
    let options = [
        clock,
        "--enable-faults",
        "--enforce-throughput",
        "--consistency",
        account.name,
        "--readonly-key",
        READ_ONLY_KEY,
    ];
    let server = Server::in_memory(&options);
    let mut problems = Vec::new();
    let mut compared = 0;
    for style in [Style::Names, Style::Rids] {
        let name = format!("{style:?}").to_lowercase();
        let mut run = Run {
            client: DirectClient::new(&server, style),
            account,
            style,
            twins: Twins {
                databases: [format!("{name}-http"), format!("{name}-frames")],
                rids: [String::new(), String::new()],
            },
            sessions: BTreeMap::new(),
            expected: Counts::default(),
            problems: Vec::new(),
            compared: 0,
        };
        run.begin();
        for row in rows::all(style) {
            run.row(&row);
        }
        run.levels_above();
        run.check_counts();
        problems.append(&mut run.problems);
        compared += run.compared;
    }
    assert!(
        problems.is_empty(),
        "{} of {compared}:\n{}",
        problems.len(),
        problems.join("\n")
    );
}

impl Run {
    /// Makes both databases.
    fn begin(&mut self) {
        for database in self.twins.databases.clone() {
            for request in rows::preparation(&database) {
                let made = self.client.prepare(&request);
                assert!(made.status < 300, "{}", made.text());
            }
        }
        // Clients have looked up a container before they send frames about it.
        for database in &self.twins.databases {
            for container in rows::CONTAINERS {
                self.client.look_up(database, container);
            }
        }
        for (database, rid) in self.twins.databases.iter().zip(&mut self.twins.rids) {
            let found = self
                .client
                .prepare(&Request::get(&format!("/dbs/{database}")))
                .expect(200);
            // Letters have six bits, and the number of a database has four bytes.
            *rid = found.json()["_rid"].as_str().expect("text")[..5].to_owned();
        }
    }

    fn row(&mut self, row: &Row) {
        for (method, path, body) in &row.before {
            let all = match path.contains("{db}") {
                true => &self.twins.databases[..],
                false => &self.twins.databases[..1],
            };
            for database in all {
                let request = Request::new(method, &path.replace("{db}", database)).body(body);
                let done = self.client.prepare(&request);
                assert!(done.status < 300, "{}: {}", row.name, done.text());
            }
        }
        let weaker = LEVELS.into_iter().skip_while(|level| *level != self.account);
        let levels: Vec<Option<Level>> = match row.call.operation.is_read() && !row.call.is_of_master() {
            true => [None].into_iter().chain(weaker.map(Some)).collect(),
            false => vec![None],
        };
        for asked in levels {
            self.pages(row, asked);
        }
    }

    /// Asks for stronger levels than that of the account, which it has not.
    fn levels_above(&mut self) {
        let account = self.account;
        for above in LEVELS.into_iter().take_while(|level| *level != account) {
            for row in rows::above_the_account() {
                self.pages(&row, Some(above));
            }
        }
    }

    /// Compares all pages of a row.
    fn pages(&mut self, row: &Row, asked: Option<Level>) {
        let (mut over_http, mut in_frames) = (row.call.clone(), row.call.clone());
        let mut items = 0;
        for _ in 0..20 {
            let (response, answer) = self.both(row, [&over_http, &in_frames], asked);
            items += answer.find_number(0x14).unwrap_or(0);
            let next = |call: Call, response: Option<&str>| match row.follow {
                Follow::Etag => call.matching(response.unwrap_or_default()),
                _ => call.continuing(response.unwrap_or_default()),
            };
            let (header, token) = match row.follow {
                Follow::No => ("", 0),
                Follow::Continuation => ("x-ms-continuation", 0x03),
                Follow::Etag => ("etag", 0x04),
            };
            if response.header(header).is_none() || response.status != 200 || answer.head.status() != 200 {
                break;
            }
            over_http = next(over_http, response.header(header));
            in_frames = next(in_frames, answer.find(token));
        }
        if let Some(expected) = row.items.filter(|expected| items != i128::from(*expected)) {
            self.problems
                .push(format!("{}: {items} items, not {expected}", self.title(row, asked)));
        }
    }

    /// Sends a request both ways, and compares the answers.
    fn both(&mut self, row: &Row, calls: [&Call; 2], asked: Option<Level>) -> (Response, Answer) {
        let is_read = row.call.operation.is_read();
        let [first, second] = self.twins.databases.clone();
        let database = if is_read { &second } else { &first };
        self.before_each(row, database);
        let call = self.completed(calls[0], database, asked);
        let response = self.client.send_over_http(database, &call, asked);
        self.before_each(row, &second);
        let call = self.completed(calls[1], &second, asked);
        let answer = self.client.send(&second, &call, asked);
        self.compared += 1;
        match is_read {
            true => {
                let asks_each = row.is_ahead && self.client.level_of(&call, asked) == SESSION;
                self.expected.reads += if asks_each { 2 } else { 1 };
            }
            false => self.expected.writes += 1,
        }
        let pair = Pair {
            response: &response,
            answer: &answer,
            twins: &self.twins,
            is_of_one: is_read,
            session: self.session(&call, &response, answer.text(0x21)),
        };
        let differences = pair.differences();
        // A page at the end of a change feed is another one than those before.
        let is_end = row.follow == Follow::Etag && response.status == 304;
        let title = self.title(row, asked);
        let is_as_said = is_end || (response.status, sub_status(&response)) == (row.status, row.sub_status);
        if !is_as_said {
            let text: String = response.text().chars().take(400).collect();
            self.problems.push(format!(
                "{title}: over HTTP {}/{}, not {}/{}: {text}",
                response.status,
                sub_status(&response),
                row.status,
                row.sub_status
            ));
        }
        self.problems.extend(
            differences
                .into_iter()
                .map(|difference| format!("{title}: {difference}")),
        );
        let token = response.header("x-ms-session-token");
        let is_of_range = !row.call.is_of_master() && !row.call.operation.is_barrier();
        if let Some(token) = token.filter(|_| is_of_range) {
            let place = (row.call.container, range_of(token));
            self.sessions.insert(place, token.to_owned());
        }
        (response, answer)
    }

    fn before_each(&mut self, row: &Row, database: &str) {
        if let Some((method, path, body)) = &row.before_each {
            let request = Request::new(method, &path.replace("{db}", database)).body(body);
            self.client.prepare(&request).expect(200);
        }
    }

    /// With the names of the database, and the session token that a client has.
    fn completed(&self, call: &Call, database: &str, asked: Option<Level>) -> Call {
        let mut call = call.clone();
        if let Ok(text) = str::from_utf8(&call.body)
            && text.contains("{db}")
        {
            call.body = text.replace("{db}", database).into_bytes();
        }
        let has_token = call.headers().iter().any(|(name, _)| *name == "x-ms-session-token");
        let may = call.operation.is_read() || call.operation == Operation::Batch;
        let range = match call.scope {
            Scope::Range(range) => range,
            // A client knows the range of a key; here only one container has several.
            _ if call.container == "w" => return call,
            _ => 0,
        };
        match self.sessions.get(&(call.container, range)) {
            Some(token) if may && !has_token && self.client.level_of(&call, asked) == SESSION => call.session(token),
            _ => call,
        }
    }

    fn title(&self, row: &Row, asked: Option<Level>) -> String {
        let asked = asked.map_or("", |asked| asked.name);
        format!("{} [{} {:?} {asked}]", row.name, self.account.name, self.style)
    }

    /// The session token that a frame must have: that over HTTP, or how far the range is.
    fn session(&self, sent: &Call, response: &Response, range: &str) -> String {
        let range = range.parse().expect("a number");
        let known = match response.status {
            // Who has no right to a container is told no more than it knows.
            401 | 403 => sent.session_token(),
            _ if sent.is_of_master() => None,
            _ => self.sessions.get(&(sent.container, range)).map(String::as_str),
        };
        // A barrier asks how far the range is, and not for the container's definition.
        let sent_back = response
            .header("x-ms-session-token")
            .filter(|_| !sent.operation.is_barrier());
        let unknown = format!("{range}:-1#1");
        let token = sent_back.or(known).unwrap_or(&unknown);
        let (_, position) = token.split_once(':').expect("a range");
        match range_of(token) == range {
            true => position.to_owned(),
            false => format!("{token}, not of range {range}"),
        }
    }

    /// Checks that each read took one frame, that nothing was asked for again, and the addresses of each range once.
    fn check_counts(&mut self) {
        // And those of the databases themselves.
        self.expected.addresses = rows::RANGES + 1;
        if self.client.counts != self.expected {
            let (counts, expected) = (self.client.counts, self.expected);
            self.problems.push(format!(
                "[{} {:?}] {counts:?}, not {expected:?}",
                self.account.name, self.style
            ));
        }
    }
}

/// The range of a session token.
fn range_of(token: &str) -> u32 {
    let (range, _) = token.split_once(':').expect("a range");
    range.parse().expect("a number")
}

#[test]
fn a_strong_account_is_the_same_in_both_modes() {
    run(STRONG);
}

#[test]
fn an_account_with_bounded_staleness_is_the_same_in_both_modes() {
    run(BOUNDED_STALENESS);
}

#[test]
fn an_account_of_sessions_is_the_same_in_both_modes() {
    run(SESSION);
}

#[test]
fn an_account_with_consistent_prefixes_is_the_same_in_both_modes() {
    run(CONSISTENT_PREFIX);
}

#[test]
fn an_eventual_account_is_the_same_in_both_modes() {
    run(EVENTUAL);
}
