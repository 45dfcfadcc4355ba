//! Ranges that are split while channels write them, follow them and query them.
//!
//! Who asks about a range that is no more gets 410/1002, asks for the ranges, and goes on in those that came from it, at the place where it was. Who asks
//! about a key never learns of it (rntbd.md §7).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Ends, verify, wait_for};
use crate::client::{Request, create_container};
use crate::direct::call::Operation;
use crate::direct::random::setting;
use crate::direct::sdk::{Sdk, changes, item, items, query};
use crate::listening::certificate;
use crate::server::Server;

#[rustfmt::skip]
const KEYS: [&str; 8] = [
    r#"["k0"]"#, r#"["k1"]"#, r#"["k2"]"#, r#"["k3"]"#, r#"["k4"]"#, r#"["k5"]"#, r#"["k6"]"#, r#"["k7"]"#,
];
const WRITERS: usize = 4;
/// Writes that are acknowledged before each split.
const BETWEEN_SPLITS: u64 = 150;

/// Key and id.
type Name = (String, String);

/// What all threads share.
#[derive(Default)]
struct Load {
    acknowledged: AtomicU64,
    is_over: AtomicBool,
    /// The items that were acknowledged.
    names: Mutex<BTreeSet<Name>>,
}

impl Load {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}

#[test]
fn splits_under_load_lose_no_write_and_no_change() {
    let rounds = setting("BOLIDE_ROUNDS").unwrap_or(3);
    let data = TempDir::new().expect("a temporary directory");
    let server = Server::on(data.path(), &[]);
    let mut client = server.client();
    create_container(&mut client);
    let pem = certificate(&server);
    let new = || Sdk::new(server.port(), &pem);
    let load = Load::default();
    let (latest, follower, passes) = std::thread::scope(|scope| {
        let (load, new) = (&load, &new);
        let _ends = Ends(&load.is_over);
        let writers: Vec<_> = (0..WRITERS)
            .map(|n| {
                scope.spawn(move || {
                    let _ends = Ends(&load.is_over);
                    Writer::new(new(), n).run(load)
                })
            })
            .collect();
        let follower = scope.spawn(|| {
            let _ends = Ends(&load.is_over);
            let mut follower = Follower::new(new());
            while !load.is_over() {
                follower.turn();
            }
            follower
        });
        let querier = scope.spawn(|| {
            let _ends = Ends(&load.is_over);
            query_again_and_again(&mut new(), load)
        });
        for _ in 0..rounds {
            wait_for_writes(load);
            // The largest range. Too much may be written at first.
            wait_for("split", || {
                let split = client.send(&Request::post("/_bolide/dbs/d/colls/c/split", "{}"));
                assert!([200, 503].contains(&split.status), "{}", split.text());
                split.status == 200
            });
        }
        wait_for_writes(load);
        load.is_over.store(true, Ordering::SeqCst);
        let mut latest = BTreeMap::new();
        for writer in writers {
            latest.extend(writer.join().expect("a writer that found no error"));
        }
        let follower = follower.join().expect("a follower that found no error");
        (latest, follower, querier.join().expect("queries that found no error"))
    });
    assert!(passes > 0, "no query has ended");
    follower.end(&latest, rounds as usize);
    verify(&mut client);
}

fn wait_for_writes(load: &Load) {
    let enough = load.acknowledged.load(Ordering::SeqCst) + BETWEEN_SPLITS;
    wait_for("writes", || {
        load.acknowledged.load(Ordering::SeqCst) >= enough || load.is_over()
    });
}

/// Writes the items of two keys.
struct Writer {
    sdk: Sdk,
    number: usize,
    choices: fastrand::Rng,
    /// The latest version of each item.
    latest: BTreeMap<Name, i64>,
}

impl Writer {
    fn new(sdk: Sdk, number: usize) -> Writer {
        Writer {
            sdk,
            number,
            choices: fastrand::Rng::with_seed(number as u64),
            latest: BTreeMap::new(),
        }
    }

    fn run(mut self, load: &Load) -> BTreeMap<Name, i64> {
        for n in 0.. {
            if load.is_over() {
                break;
            }
            let key = KEYS[self.number * 2 + self.choices.usize(..2)];
            // Some are written once, others several times.
            let id = match self.choices.bool() {
                true => format!("{}-{n}", self.number),
                false => format!("{}-often-{}", self.number, self.choices.u32(..5)),
            };
            let pk = key[2..4].to_owned();
            let body = json!({"id": id, "pk": pk, "n": n}).to_string();
            let name = (pk, id.clone());
            // Never 410, whatever happens to the range of the key.
            let answer = match self.latest.contains_key(&name) {
                true => self
                    .sdk
                    .write(&item(Operation::Replace, key, &id).body(body))
                    .map(|answer| answer.expect(200)),
                false => self
                    .sdk
                    .write(&items(Operation::Create).key(key).body(body))
                    .map(|answer| answer.expect(201)),
            };
            assert_eq!(answer.expect("an answer").json()["n"], n);
            load.names.lock().expect("no panic").insert(name.clone());
            self.latest.insert(name, n);
            load.acknowledged.fetch_add(1, Ordering::SeqCst);
            if self.choices.u32(..4) == 0 {
                let read = self.sdk.read(item(Operation::Read, key, &id)).expect(200);
                assert_eq!(read.json()["n"], n);
            }
        }
        self.latest
    }
}

/// The ranges that came from one that is no more.
fn children(sdk: &mut Sdk, parent: u32) -> Vec<u32> {
    let ranges = sdk.pkranges();
    let children: Vec<u32> = ranges
        .into_iter()
        .filter(|(_, parents)| parents.contains(&parent))
        .map(|(id, _)| id)
        .collect();
    assert!(
        children.len() >= 2,
        "range {parent} is gone and has {} children",
        children.len()
    );
    children
}

/// Whether an answer says that its range is no more. Otherwise it must be a success.
fn is_gone(answer: &crate::direct::frames::Answer) -> bool {
    match (answer.head.status(), answer.sub_status()) {
        (410, 1002) => true,
        (200 | 304, _) => false,
        (status, sub) => panic!("{status}/{sub}: {}", String::from_utf8_lossy(&answer.body)),
    }
}

/// Follows the changes of all ranges.
struct Follower {
    sdk: Sdk,
    /// The position in each range.
    places: BTreeMap<u32, Option<String>>,
    /// The versions of each item, as they came.
    seen: BTreeMap<Name, Vec<i64>>,
    /// How often a range was gone.
    gone: usize,
}

impl Follower {
    fn new(mut sdk: Sdk) -> Follower {
        let places = sdk.pkranges().into_iter().map(|(id, _)| (id, None)).collect();
        Follower {
            sdk,
            places,
            seen: BTreeMap::new(),
            gone: 0,
        }
    }

    /// Reads a page of each range. Returns whether there was something new.
    fn turn(&mut self) -> bool {
        let mut is_new = false;
        for (range, place) in self.places.clone() {
            let answer = self.sdk.read(changes(range, place.as_deref()).page(7));
            if is_gone(&answer) {
                self.gone += 1;
                self.places.remove(&range);
                for child in children(&mut self.sdk, range) {
                    self.places.insert(child, place.clone());
                }
                is_new = true;
                continue;
            }
            self.places.insert(range, answer.find(0x04).map(str::to_owned));
            if answer.head.status() == 304 {
                continue;
            }
            is_new = true;
            for item in answer.json()["Documents"].as_array().expect("a list") {
                self.note(item);
            }
        }
        is_new
    }

    fn note(&mut self, item: &Value) {
        let n = item["n"].as_i64().expect("a number");
        let seen = self.seen.entry(name_of(item)).or_default();
        assert!(seen.last().is_none_or(|last| *last < n), "{item} after {seen:?}");
        seen.push(n);
    }

    /// Reads what is left, and compares all with what was acknowledged: versions that were replaced soon may be missing, the latest one may not.
    fn end(mut self, latest: &BTreeMap<Name, i64>, splits: usize) {
        while self.turn() {}
        assert_eq!((self.gone, self.places.len()), (splits, splits + 1), "ranges");
        let seen: BTreeMap<Name, i64> = self
            .seen
            .into_iter()
            .map(|(name, versions)| (name, *versions.last().expect("one at least")))
            .collect();
        assert_eq!(&seen, latest);
    }
}

fn name_of(item: &Value) -> Name {
    let text = |name: &str| item[name].as_str().expect("text").to_owned();
    (text("pk"), text("id"))
}

/// Queries all items in pages. Returns how often.
fn query_again_and_again(sdk: &mut Sdk, load: &Load) -> usize {
    let mut passes = 0;
    while !load.is_over() {
        let before = load.names.lock().expect("no panic").clone();
        let mut found: BTreeSet<Name> = BTreeSet::new();
        let mut left: Vec<(u32, Option<String>)> = sdk.pkranges().into_iter().map(|(id, _)| (id, None)).collect();
        while let Some((range, continuation)) = left.pop() {
            let call = query("SELECT c.pk, c.id FROM c", range).page(10);
            let answer = sdk.read(match &continuation {
                Some(continuation) => call.continuing(continuation),
                None => call,
            });
            if is_gone(&answer) {
                left.extend(
                    children(sdk, range)
                        .into_iter()
                        .map(|child| (child, continuation.clone())),
                );
                continue;
            }
            for row in answer.json()["Documents"].as_array().expect("a list") {
                assert!(found.insert(name_of(row)), "{row} twice");
            }
            let next = answer.find(0x03).filter(|next| !next.is_empty());
            left.extend(next.map(|next| (range, Some(next.to_owned()))));
        }
        let missing: Vec<_> = before.difference(&found).collect();
        assert!(missing.is_empty(), "not found: {missing:?}");
        passes += 1;
    }
    passes
}
