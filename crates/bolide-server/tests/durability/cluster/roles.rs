//! What the clients do: write and read items, change settings, and follow the change feed.

use std::sync::PoisonError;
use std::time::Duration;

use serde_json::Value;

use super::clients::{Item, Place, Reply, Session};
use super::feeds::{Kind, Row};
use super::history::{Call, Outcome, Time, Version};
use crate::client::Request;
use crate::wire::text;

/// Items that all clients write.
const SHARED: u64 = 8;
/// For so long. Then they are others, so that the search for an order of the calls of one stays short.
const SHARED_FOR: Time = 8_000_000;
/// The first default ttl of [`Place::Settings`], in seconds: nothing ends by it while the test runs, and no item gets this number, however long that is.
pub const FIRST_DEFAULT: u64 = 1_000_000_000;
/// The default ttl that lets the items of [`Place::Cleared`] end, in seconds.
pub const CLEARING: i64 = 1;

/// A change of the default ttl of [`Place::Cleared`].
#[derive(Debug, Clone, Copy)]
pub struct Change {
    pub began: Time,
    pub ended: Time,
    pub is_acknowledged: bool,
    /// To a second; else to never.
    pub clears: bool,
}

/// Writes and reads until the test is over.
pub fn work(session: &mut Session<'_>) {
    let mut made = 0;
    while !session.run.is_over() {
        let server = session.any_server();
        let value = session.run.value();
        match session.random.within(0..100) {
            0..40 => write_shared(session, server, value),
            40..55 => {
                let item = shared(session);
                session.call(server, &item, Call::Read, None);
            }
            55..70 => {
                made += 1;
                let item = (Place::Created, format!("c{}-{made}", session.number));
                session.call(server, &item, Call::Create(value), None);
            }
            70..82 => {
                made += 1;
                let item = (Place::Items, format!("s{}-{made}", session.number));
                let ttl = session.random.within(1..4);
                session.call(server, &item, Call::Create(value), i64::try_from(ttl).ok());
            }
            82..90 => {
                made += 1;
                let item = (Place::Cleared, format!("x{}-{made}", session.number));
                session.call(server, &item, Call::Create(value), None);
                session.call(server, &item, Call::Read, None);
            }
            90..96 => read_settings(session, server),
            _ => read_cleared(session, server),
        }
        std::thread::sleep(Duration::from_millis(session.random.within(0..12)));
    }
}

/// One of the items that all write.
fn shared(session: &mut Session<'_>) -> Item {
    let generation = session.run.now() / SHARED_FOR;
    (
        Place::Items,
        format!("h{}-{generation}", session.random.within(0..SHARED)),
    )
}

fn write_shared(session: &mut Session<'_>, server: usize, value: u64) {
    let item = shared(session);
    let call = session.random.choice(&[
        Call::Create(value),
        Call::Upsert(value),
        Call::Upsert(value),
        Call::Replace(value),
        Call::Patch(value),
        Call::Patch(value),
        Call::Patch(value),
        Call::Delete,
    ]);
    // Half of them never end.
    let ttl = match item.1.as_bytes()[1] % 2 {
        0 => None,
        _ => session.random.choice(&[None, Some(1), Some(1), Some(2)]),
    };
    session.call(server, &item, call, ttl);
}

/// Reads an item of [`Place::Cleared`] that this client made some time ago.
fn read_cleared(session: &mut Session<'_>, server: usize) {
    let cleared = session
        .calls
        .iter()
        .rev()
        .filter(|((place, _), _)| *place == Place::Cleared);
    let items: Vec<Item> = cleared.map(|(item, _)| item.clone()).take(40).collect();
    if !items.is_empty() {
        let at = session.random.within(0..items.len() as u64);
        session.call(server, &items[usize::try_from(at).expect("small")], Call::Read, None);
    }
}

/// Reads items that may end now, through one server after the other.
pub fn watch(session: &mut Session<'_>) {
    while !session.run.is_over() {
        let recent = session
            .run
            .recent
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if recent.is_empty() {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        }
        let at = session.random.within(0..recent.len() as u64);
        let item = &recent[usize::try_from(at).expect("small")];
        for _ in 0..3 {
            let server = session.any_server();
            session.call(server, item, Call::Read, None);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The item that stands for the settings of [`Place::Settings`].
pub fn settings() -> Item {
    (Place::Settings, "settings".to_owned())
}

fn read_settings(session: &mut Session<'_>, server: usize) {
    let why = Request::get(&format!("/_bolide{}/ttl/why?id=nothing&pk=p", Place::Settings.path()));
    if let Reply::Told { began, ended, response } = session.ask(server, &why) {
        let Some(value) = response.json()["defaultTtl"].as_u64() else {
            let text = response.text();
            session.run.fail(format!(
                "server {server} answered {} to a question for settings: {text}",
                response.status
            ));
            return;
        };
        let found = Outcome::Found(Version { value, patches: 0 });
        session.note(server, &settings(), Call::Read, began, ended, found);
    }
}

/// Changes settings until the test is over. Returns the changes of [`Place::Cleared`].
pub fn change(session: &mut Session<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut default = FIRST_DEFAULT;
    while !session.run.is_over() {
        let server = session.any_server();
        default += 1;
        let (began, ended, is_acknowledged) = define(session, server, Place::Settings, Some(default.cast_signed()));
        let stored = Outcome::Stored {
            created: false,
            patches: 0,
        };
        match is_acknowledged {
            Some(true) => session.note(server, &settings(), Call::Upsert(default), began, ended, stored),
            Some(false) => session.note(
                server,
                &settings(),
                Call::Upsert(default),
                began,
                ended,
                Outcome::Unknown,
            ),
            None => {}
        }
        let server = session.any_server();
        let clears = session.random.one_in(2);
        let (began, ended, is_acknowledged) = define(
            session,
            server,
            Place::Cleared,
            Some(if clears { CLEARING } else { -1 }),
        );
        if let Some(is_acknowledged) = is_acknowledged {
            changes.push(Change {
                began,
                ended,
                is_acknowledged,
                clears,
            });
        }
        std::thread::sleep(Duration::from_millis(session.random.within(0..1_500)));
    }
    changes
}

/// Replaces a definition; says whether it was acknowledged, or `None` if nothing happened.
pub fn define(
    session: &mut Session<'_>,
    server: usize,
    place: Place,
    default: Option<i64>,
) -> (Time, Time, Option<bool>) {
    let request = Request::put(&place.path(), place.definition(default).to_string());
    match session.ask(server, &request) {
        Reply::Nothing => (0, 0, None),
        Reply::Unknown { began, ended } => (began, ended, Some(false)),
        Reply::Told { began, ended, response } => {
            if response.status != 200 {
                let text = response.text();
                session.run.fail(format!(
                    "server {server} answered {} to a change of settings: {text}",
                    response.status
                ));
            }
            (began, ended, Some(response.status == 200))
        }
    }
}

/// A reader of the change feed of a range, which asks another server for each page.
pub struct Follower {
    place: Place,
    range: String,
    is_all_versions: bool,
    continuation: Option<String>,
    pub rows: Vec<Row>,
    pub pages: u64,
}

impl Follower {
    /// One reader for each range.
    pub fn of(session: &mut Session<'_>, place: Place, is_all_versions: bool) -> Vec<Follower> {
        let ranges = session
            .insist(&Request::get(&format!("{}/pkranges", place.path())))
            .json();
        let ranges = ranges["PartitionKeyRanges"].as_array().expect("ranges").iter();
        let followers = ranges.map(|range| Follower {
            place,
            range: text(range, "id").to_owned(),
            is_all_versions,
            // The all-versions feed begins now, the other one in the beginning.
            continuation: is_all_versions.then(|| "*".to_owned()),
            rows: Vec::new(),
            pages: 0,
        });
        followers.collect()
    }

    /// Reads a page. Returns whether there was anything new, or `None` if there was no answer.
    pub fn page(&mut self, session: &mut Session<'_>, server: usize) -> Option<bool> {
        let size = session.random.within(1..40).to_string();
        let mode = if self.is_all_versions {
            "Full-Fidelity Feed"
        } else {
            "Incremental Feed"
        };
        let mut request = Request::get(&format!("{}/docs", self.place.path()))
            .header("a-im", mode)
            .header("x-ms-documentdb-partitionkeyrangeid", &self.range)
            .header("x-ms-max-item-count", &size);
        if self.is_all_versions {
            request = request.header("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15");
        }
        if let Some(continuation) = &self.continuation {
            request = request.header("if-none-match", continuation);
        }
        let Reply::Told { response, .. } = session.ask(server, &request) else {
            return None;
        };
        match response.status {
            304 => {}
            200 => {
                let body = response.json();
                let rows = body["Documents"].as_array().expect("rows");
                let rows: Vec<Row> = rows.iter().map(|row| self.row(row)).collect();
                self.rows.extend(rows);
            }
            status => panic!("the feed answers {status}: {}", response.text()),
        }
        self.continuation = response.header("etag").map(str::to_owned);
        self.pages += 1;
        Some(response.status == 200)
    }

    fn row(&self, row: &Value) -> Row {
        let value = |item: &Value| item["v"].as_u64().unwrap_or_else(|| panic!("no value: {row}"));
        if !self.is_all_versions {
            return Row {
                id: text(row, "id").to_owned(),
                kind: Kind::Created(value(row)),
            };
        }
        let (current, metadata) = (&row["current"], &row["metadata"]);
        let kind = match text(metadata, "operationType") {
            "create" => Kind::Created(value(current)),
            "replace" => Kind::Replaced(value(current)),
            "delete" => Kind::Deleted {
                expired: metadata["timeToLiveExpired"] == true,
            },
            other => panic!("unknown operation {other}: {row}"),
        };
        let named = if matches!(kind, Kind::Deleted { .. }) {
            metadata
        } else {
            current
        };
        Row {
            id: text(named, "id").to_owned(),
            kind,
        }
    }
}

/// Follows until the test is over.
pub fn follow(session: &mut Session<'_>, followers: &mut [Follower]) {
    while !session.run.is_over() {
        for follower in followers.iter_mut() {
            let server = session.any_server();
            follower.page(session, server);
        }
        std::thread::sleep(Duration::from_millis(session.random.within(0..60)));
    }
}

/// Follows to the end, when nobody writes any more.
pub fn finish(session: &mut Session<'_>, followers: &mut [Follower]) {
    for follower in followers {
        // Each server says that there is nothing more.
        let mut ends = 0;
        while ends < session.run.nodes.len() {
            match follower.page(session, ends) {
                Some(false) => ends += 1,
                Some(true) => {}
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}
