//! A client that writes its own items at random until the server is gone, and keeps their possible states.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::client::{Client, Request, Response};
use crate::model::{Item, Seen, State, Version, Written};
use crate::random::Random;
use crate::wire::{clock, connect, expect, keyed, position, user_members};

/// The database of all containers.
pub const DATABASE: &str = "/dbs/d";
/// Number of items per writer and container. Few, so that each is written often.
const ITEMS: usize = 6;

/// A container that writers write to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TestContainer {
    Plain,
    /// `/u` is unique in a logical partition.
    Unique,
    /// Items expire after [`TestContainer::DEFAULT_TTL`] seconds unless they have their own ttl.
    Ending,
    /// Several ranges.
    Ranges,
}

impl TestContainer {
    pub const ALL: [TestContainer; 4] = [
        TestContainer::Plain,
        TestContainer::Unique,
        TestContainer::Ending,
        TestContainer::Ranges,
    ];
    const DEFAULT_TTL: i64 = 1;

    fn id(self) -> &'static str {
        match self {
            TestContainer::Plain => "plain",
            TestContainer::Unique => "unique",
            TestContainer::Ending => "ending",
            TestContainer::Ranges => "ranges",
        }
    }

    /// The container's path.
    pub fn path(self) -> String {
        format!("{DATABASE}/colls/{}", self.id())
    }

    /// The request that creates the container.
    pub fn create(self) -> Request {
        let mut body = json!({"id": self.id(), "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        match self {
            TestContainer::Plain => {}
            TestContainer::Unique => body["uniqueKeyPolicy"] = json!({"uniqueKeys": [{"paths": ["/u"]}]}),
            TestContainer::Ending => body["defaultTtl"] = TestContainer::DEFAULT_TTL.into(),
            TestContainer::Ranges => return creation(&body).header("x-ms-offer-throughput", "20000"),
        }
        creation(&body)
    }

    /// Whether items may expire.
    pub fn has_ends(self) -> bool {
        self == TestContainer::Ending
    }

    /// Seconds until a body expires in this container.
    fn lifetime(self, body: &Value) -> Option<i64> {
        match (self.has_ends(), body["ttl"].as_i64()) {
            (false, _) | (true, Some(-1)) => None,
            (true, own) => Some(own.unwrap_or(TestContainer::DEFAULT_TTL)),
        }
    }
}

/// Every acknowledged write by its position in its range's log, with its `_ts` if the response has one.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<BTreeMap<(TestContainer, u32, u64), Option<i64>>>);

impl Ledger {
    fn note(&self, container: TestContainer, response: &Response, last_modified: Option<i64>) {
        let (range, lsn) = position(response);
        let before = self
            .0
            .lock()
            .expect("no writer has panicked")
            .insert((container, range, lsn), last_modified);
        assert_eq!(
            before, None,
            "two acknowledged writes have LSN {lsn} of range {range} of {container:?}"
        );
    }

    /// Number of acknowledged writes.
    pub fn len(&self) -> usize {
        self.0.lock().expect("no writer has panicked").len()
    }

    /// Asserts that `_ts` rises with the LSN.
    pub fn check(&self) {
        let writes = self.0.lock().expect("no writer has panicked");
        let mut last = None;
        for (&(container, range, lsn), last_modified) in writes.iter() {
            let Some(seconds) = *last_modified else { continue };
            if let Some((before_place, before_range, before)) = last
                && (before_place, before_range) == (container, range)
            {
                assert!(
                    seconds >= before,
                    "_ts went back at LSN {lsn} of range {range} of {container:?}"
                );
            }
            last = Some((container, range, seconds));
        }
    }

    /// The newest acknowledged write of a range.
    fn newest(&self, container: TestContainer, range: u32) -> u64 {
        let writes = self.0.lock().expect("no writer has panicked");
        let newest = writes
            .range((container, range, 0)..=(container, range, u64::MAX))
            .next_back();
        newest.map_or(0, |((_, _, lsn), _)| *lsn)
    }
}

fn creation(container: &Value) -> Request {
    Request::post(&format!("{DATABASE}/colls"), container.to_string())
}

/// See the module.
pub struct Writer {
    random: Random,
    items: Vec<(TestContainer, Item)>,
    /// Server time was at least this, in seconds.
    second: i64,
    writes: u64,
}

#[derive(Debug, Clone, Copy)]
enum Verb {
    Create,
    Upsert,
    Replace,
    Patch,
    Delete,
}

impl Writer {
    /// The writer with this number.
    pub fn new(number: u64, seed: u64) -> Writer {
        let mut items = Vec::new();
        for container in TestContainer::ALL {
            for n in 0..ITEMS {
                // Writers share logical partitions, so that unique keys can be in conflict.
                let partition_key = if container == TestContainer::Ranges {
                    format!("p{number}-{n}")
                } else {
                    format!("p{}", n % 2)
                };
                items.push((container, Item::new(format!("w{number}-{n}"), partition_key)));
            }
        }
        Writer {
            random: Random::new(seed, number),
            items,
            second: 0,
            writes: 0,
        }
    }

    /// Reads every item and compares it with its possible states. Returns the ids that exist, by container.
    pub fn check(&mut self, client: &mut Client, ledger: &Ledger) -> Vec<(TestContainer, String)> {
        let mut there = Vec::new();
        for at in 0..self.items.len() {
            let (container, item) = &mut self.items[at];
            let from = clock(client).expect("the server answers") / 1000;
            let response = expect(client, &about("GET", *container, item), &[200, 404]);
            let to = clock(client).expect("the server answers") / 1000;
            let (range, lsn) = position(&response);
            assert!(
                lsn >= ledger.newest(*container, range),
                "range {range} of {container:?} went back to LSN {lsn}"
            );
            assert!(
                lsn >= item.lsn,
                "range {range} of {container:?} went back behind {}",
                item.id
            );
            item.resolve(&seen(&response), from, to);
            item.lsn = lsn;
            self.second = self.second.max(from);
            if response.status == 200 {
                there.push((*container, item.id.clone()));
            }
        }
        there
    }

    /// Writes at random until the server does not respond.
    pub fn run(&mut self, port: u16, ledger: &Ledger) {
        let Ok(mut client) = connect(port) else { return };
        while self.write(&mut client, ledger).is_ok() {}
    }

    /// Makes one write.
    ///
    /// # Errors
    /// No response came.
    fn write(&mut self, client: &mut Client, ledger: &Ledger) -> io::Result<()> {
        let at = usize::try_from(self.random.within(0..self.items.len() as u64)).expect("small");
        let verb = self.random.choice(&[
            Verb::Create,
            Verb::Upsert,
            Verb::Upsert,
            Verb::Replace,
            Verb::Patch,
            Verb::Delete,
        ]);
        let body = self.body(at);
        let (container, item) = &self.items[at];
        let after = effect(verb, *container, item.state(), &body, self.second);
        match client.try_send(&request(verb, *container, item, &body)) {
            Ok(answer) => self.take_answer(at, verb, after, &answer, client, ledger),
            Err(error) => {
                if let Some(state) = after {
                    self.items[at].1.may_become(state);
                }
                Err(error)
            }
        }
    }

    fn take_answer(
        &mut self,
        at: usize,
        verb: Verb,
        after: Option<State>,
        answer: &Response,
        client: &mut Client,
        ledger: &Ledger,
    ) -> io::Result<()> {
        let (container, item) = &mut self.items[at];
        let is_as_expected = match (verb, answer.status) {
            (_, 200 | 201 | 204) => {
                let state = after.unwrap_or_else(|| panic!("{verb:?} of nothing: {item:?} {}", answer.text()));
                self.acknowledge(at, state, answer, ledger);
                return Ok(());
            }
            (Verb::Replace | Verb::Patch | Verb::Delete, 404) => {
                let now = clock(client)? / 1000;
                let may_be_absent = item.state().may_be_absent(now);
                if may_be_absent {
                    item.becomes(State::Absent);
                }
                may_be_absent
            }
            (Verb::Create, 409) if item.state().may_live(self.second) => true,
            (Verb::Create | Verb::Upsert | Verb::Replace, 409) => *container == TestContainer::Unique,
            _ => false,
        };
        assert!(
            is_as_expected,
            "{verb:?} of {item:?}: {} {}",
            answer.status,
            answer.text()
        );
        Ok(())
    }

    /// Records that a write happened. 201 means that there was no item before, 200 and 204 that there was one.
    fn acknowledge(&mut self, at: usize, mut state: State, answer: &Response, ledger: &Ledger) {
        let (container, item) = &mut self.items[at];
        let last_modified = (answer.status != 204).then(|| seconds_of(&answer.json()));
        let could_be = match answer.status {
            201 => item.state().may_be_absent(last_modified.expect("201 has a body")),
            _ => item.state().may_live(self.second),
        };
        assert!(could_be, "{} for {item:?} at {} or later", answer.status, self.second);
        if let (State::Stored(version), Some(seconds)) = (&mut state, last_modified) {
            version.written = Written::At(seconds);
            self.second = self.second.max(seconds);
        }
        ledger.note(*container, answer, last_modified);
        item.lsn = position(answer).1;
        item.becomes(state);
    }

    /// A unique body.
    fn body(&mut self, at: usize) -> Value {
        self.writes += 1;
        let (container, item) = &self.items[at];
        let padding = if self.random.one_in(16) {
            20_000
        } else {
            self.random.within(0..400)
        };
        let padding = "x".repeat(usize::try_from(padding).expect("small"));
        let mut body = json!({"id": item.id, "pk": item.partition_key, "v": self.writes, "n": 0, "padding": padding});
        match container {
            TestContainer::Unique => body["u"] = self.random.within(0..60).into(),
            TestContainer::Ending => {
                if let Some(ttl) = self.random.choice(&[None, None, Some(1), Some(2), Some(-1)]) {
                    body["ttl"] = json!(ttl);
                }
            }
            TestContainer::Plain | TestContainer::Ranges => {}
        }
        body
    }
}

fn about(method: &str, container: TestContainer, item: &Item) -> Request {
    keyed(
        method,
        &format!("{}/docs/{}", container.path(), item.id),
        &item.partition_key,
    )
}

fn request(verb: Verb, container: TestContainer, item: &Item, body: &Value) -> Request {
    match verb {
        Verb::Create => create(container, item).body(body.to_string()),
        Verb::Upsert => create(container, item)
            .header("x-ms-documentdb-is-upsert", "true")
            .body(body.to_string()),
        Verb::Replace => about("PUT", container, item).body(body.to_string()),
        Verb::Patch => {
            let set = json!({"op": "set", "path": "/v", "value": body["v"]});
            let add = json!({"op": "incr", "path": "/n", "value": 1});
            about("PATCH", container, item).body(json!([set, add]).to_string())
        }
        Verb::Delete => about("DELETE", container, item),
    }
}

fn create(container: TestContainer, item: &Item) -> Request {
    keyed("POST", &format!("{}/docs", container.path()), &item.partition_key)
}

/// The state of an item after a write that succeeds at `second` or later; `None` if it cannot succeed.
fn effect(verb: Verb, container: TestContainer, before: &State, body: &Value, second: i64) -> Option<State> {
    let stored = |body: Value| {
        State::Stored(Version {
            lifetime: container.lifetime(&body),
            body,
            written: Written::Since(second),
        })
    };
    match (verb, before) {
        (Verb::Create, State::Stored(version)) if version.lifetime.is_none() => None,
        (Verb::Create | Verb::Upsert, _) => Some(stored(body.clone())),
        (_, State::Absent) => None,
        (Verb::Replace, State::Stored(_)) => Some(stored(body.clone())),
        (Verb::Delete, State::Stored(_)) => Some(State::Absent),
        (Verb::Patch, State::Stored(version)) => {
            let mut patched = version.body.clone();
            patched["v"] = body["v"].clone();
            patched["n"] = (version.body["n"].as_i64().expect("a number") + 1).into();
            Some(stored(patched))
        }
    }
}

fn seen(response: &Response) -> Seen {
    if response.status == 404 {
        return Seen::Nothing;
    }
    let item = response.json();
    Seen::Item {
        body: user_members(&item),
        last_modified: seconds_of(&item),
    }
}

fn seconds_of(item: &Value) -> i64 {
    item["_ts"].as_i64().unwrap_or_else(|| panic!("no _ts: {item}"))
}
