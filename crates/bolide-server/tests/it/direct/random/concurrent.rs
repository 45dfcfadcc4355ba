//! P10: several channels at the same time, while one thread moves the clock and another one changes the settings.
//!
//! ```text
//!   clock     asked for 5 s ──────▶ told 5 s          asked for 6 s ──────▶ told 6 s
//!   channel                    begin ─────────────────────────▶ answer
//!                              not before 5 s                not after 6 s
//! ```
//!
//! Server time at the instant of a request is between what the clock had been told to show before the request began and what it was asked to show before the
//! answer came. So an item that ends before the first is not in the answer, one that ends after the second is, and the items of one answer are judged at one
//! time between them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::runner::{START, START_MS};
use crate::client::{Client, Request};
use crate::direct::call::{Call, More, Operation};
use crate::direct::sdk::{Sdk, item, items};
use crate::listening::certificate;
use crate::server::Server;

const CHANNELS: [&str; 4] = [r#"["c0"]"#, r#"["c1"]"#, r#"["c2"]"#, r#"["c3"]"#];
/// Requests of each of them.
const REQUESTS: usize = 150;
const QUERY: &str = r#"{"query":"SELECT * FROM c","parameters":[]}"#;
/// Much longer than the clock is moved.
const LONG_TTL: i64 = 1_000_000;

/// What the clock shows, in milliseconds: as it was asked for, and as it was told.
struct Instants {
    asked: AtomicI64,
    told: AtomicI64,
    /// Channels that go on.
    left: AtomicUsize,
}

impl Instants {
    /// The second that server time has reached.
    fn earliest(&self) -> i64 {
        self.told.load(Ordering::SeqCst) / 1000
    }

    /// The second that server time has not passed.
    fn latest(&self) -> i64 {
        self.asked.load(Ordering::SeqCst) / 1000
    }

    fn is_over(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }
}

/// Counts one channel off, however it ends.
struct Leaves<'a>(&'a Instants);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.left.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn each_answer_of_several_channels_is_right_at_an_instant_while_it_was_made() {
    let server = Server::in_memory(&[START]);
    let mut client = server.client();
    client.send(&Request::post("/dbs", r#"{"id":"d"}"#)).expect(201);
    client.send(&Request::post("/dbs/d/colls", definition(-1))).expect(201);
    let pem = certificate(&server);
    let instants = Instants {
        asked: AtomicI64::new(START_MS),
        told: AtomicI64::new(START_MS),
        left: AtomicUsize::new(CHANNELS.len()),
    };
    let seen: Vec<[usize; 2]> = std::thread::scope(|scope| {
        let instants = &instants;
        scope.spawn(|| move_clock(&mut server.client(), instants));
        scope.spawn(|| change_settings(&mut server.client(), instants));
        let channels = CHANNELS.map(|key| {
            let mut channel = Channel::new(Sdk::new(server.port(), &pem), key);
            scope.spawn(move || {
                let _leaves = Leaves(instants);
                for _ in 0..REQUESTS {
                    channel.request(instants);
                }
                channel.seen
            })
        });
        let ended = channels.into_iter().map(|channel| channel.join());
        ended.map(|seen| seen.expect("a channel that found no error")).collect()
    });
    for [live, expired] in seen {
        assert!(
            live > 10 && expired > 10,
            "{live} live, {expired} expired items: this shows nothing"
        );
    }
}

fn definition(default_ttl: i64) -> String {
    let key = json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
    json!({"id": "c", "partitionKey": key, "defaultTtl": default_ttl}).to_string()
}

fn move_clock(client: &mut Client, instants: &Instants) {
    let mut choices = fastrand::Rng::with_seed(1);
    let mut clock_ms = START_MS;
    while !instants.is_over() {
        clock_ms += choices.i64(1..400);
        instants.asked.store(clock_ms, Ordering::SeqCst);
        let clock = Request::put("/_bolide/clock", json!({"setMs": clock_ms}).to_string());
        client.send(&clock).expect(200);
        instants.told.store(clock_ms, Ordering::SeqCst);
        // Ghosts that are purged, and those that are not, are alike.
        if choices.u32(..8) == 0 {
            let purge = Request::post("/_bolide/dbs/d/colls/c/purge", r#"{"mode":"force","max":3}"#);
            client.send(&purge).expect(200);
        }
    }
    assert!(clock_ms < START_MS + LONG_TTL * 1000);
}

/// Between settings that mean the same to all items here.
fn change_settings(client: &mut Client, instants: &Instants) {
    for default_ttl in [LONG_TTL, -1].into_iter().cycle() {
        if instants.is_over() {
            return;
        }
        client
            .send(&Request::put("/dbs/d/colls/c", definition(default_ttl)))
            .expect(200);
    }
}

/// A channel, which alone writes the items of its key.
struct Channel {
    sdk: Sdk,
    key: &'static str,
    choices: fastrand::Rng,
    /// The etag and the end, in seconds, of each item that was not seen to be missing.
    items: BTreeMap<String, (String, i64)>,
    /// Live and expired items that it has met.
    seen: [usize; 2],
}

impl Channel {
    fn new(sdk: Sdk, key: &'static str) -> Channel {
        Channel {
            sdk,
            choices: fastrand::Rng::with_seed(u64::from(key.as_bytes()[3])),
            key,
            items: BTreeMap::new(),
            seen: [0, 0],
        }
    }

    fn request(&mut self, instants: &Instants) {
        let id = format!("i{}", self.choices.u32(..6));
        match self.choices.u32(..10) {
            0..4 => self.upsert(&id, instants),
            4..7 => self.read(&id, instants),
            7 => self.all(items(Operation::ReadFeed), instants),
            8 => self.all(items(Operation::ReadFeed).with(incremental()), instants),
            _ => self.all(items(Operation::Query).body(QUERY), instants),
        }
    }

    fn upsert(&mut self, id: &str, instants: &Instants) {
        let ttl = match self.choices.u32(..6) {
            0 => None,
            _ => Some(self.choices.i64(1..=3)),
        };
        let mut body = json!({"id": id, "pk": self.key[2..4]});
        if let Some(ttl) = ttl {
            body["ttl"] = ttl.into();
        }
        let earliest = instants.earliest();
        let upsert = items(Operation::Upsert).key(self.key).body(body.to_string());
        let answer = self.sdk.write(&upsert).expect("an answer");
        let latest = instants.latest();
        let end = self.items.get(id).map(|(_, end)| *end);
        self.judge(id, end, answer.head.status() == 200, earliest, latest);
        let body = answer.json();
        let written = body["_ts"].as_i64().expect("seconds");
        assert!(
            (earliest..=latest).contains(&written),
            "{earliest} ≤ {written} ≤ {latest}"
        );
        let end = ttl.map_or(i64::MAX, |ttl| written + ttl);
        self.items.insert(id.to_owned(), (etag_of(&body), end));
    }

    fn read(&mut self, id: &str, instants: &Instants) {
        let earliest = instants.earliest();
        let answer = self.sdk.read(item(Operation::Read, self.key, id));
        let latest = instants.latest();
        let known = self.items.get(id).cloned();
        let is_live = answer.head.status() == 200;
        self.judge(id, known.as_ref().map(|(_, end)| *end), is_live, earliest, latest);
        match is_live {
            true => assert_eq!(Some(etag_of(&answer.json())), known.map(|(etag, _)| etag), "{id}"),
            false => drop(answer.expect(404)),
        }
    }

    /// Asks for all items of the key, which are judged at one time: by a query, by a feed, or by the changes since the beginning.
    fn all(&mut self, call: Call, instants: &Instants) {
        let earliest = instants.earliest();
        let answer = self.sdk.read(call.key(self.key));
        let latest = instants.latest();
        let body = match answer.head.status() {
            // No changes.
            304 => json!({"Documents": []}),
            _ => answer.expect(200).json(),
        };
        let rows = body["Documents"].as_array().expect("a list").iter();
        let found: BTreeMap<String, String> = rows
            .map(|item| (item["id"].as_str().expect("text").to_owned(), etag_of(item)))
            .collect();
        for (id, etag) in &found {
            assert_eq!(self.items.get(id).map(|(etag, _)| etag), Some(etag), "{id}");
        }
        let (mut last_expired, mut first_live) = (i64::MIN, i64::MAX);
        for (id, (_, end)) in self.items.clone() {
            let is_live = found.contains_key(&id);
            match is_live {
                true => first_live = first_live.min(end),
                false => last_expired = last_expired.max(end),
            }
            self.judge(&id, Some(end), is_live, earliest, latest);
        }
        assert!(
            last_expired < first_live,
            "an item that ends at {last_expired} is missing where one that ends at {first_live} is not"
        );
    }

    /// Whether an item may be live, or missing, at some instant from one second to another. What was missing once does not come back (P2).
    fn judge(&mut self, id: &str, end: Option<i64>, is_live: bool, earliest: i64, latest: i64) {
        match (end, is_live) {
            (Some(end), true) => {
                assert!(
                    end > earliest,
                    "{id} ended at {end}, and was seen at {earliest} or later"
                );
                self.seen[0] += 1;
            }
            (Some(end), false) => {
                assert!(
                    end <= latest,
                    "{id} ends at {end}, and was missing at {latest} or before"
                );
                self.seen[1] += 1;
                self.items.remove(id);
            }
            (None, is_live) => assert!(!is_live, "{id} was missing and is back"),
        }
    }
}

fn incremental() -> More {
    More::Text(0x3F, "a-im", "Incremental Feed".to_owned())
}

fn etag_of(item: &Value) -> String {
    item["_etag"].as_str().expect("an etag").to_owned()
}
