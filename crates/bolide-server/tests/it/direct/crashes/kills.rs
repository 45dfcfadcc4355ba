//! A server that is killed while channels write, and starts again on the same port.
//!
//! A write whose frame was sent and had no answer may have been done: .NET does not send it again. Nothing else may be unclear.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::json;
use tempfile::TempDir;

use super::{Ends, verify, wait_for};
use crate::client::{Request, create_container};
use crate::direct::call::Operation;
use crate::direct::random::setting;
use crate::direct::sdk::{Sdk, item, items, query};
use crate::listening::certificate;
use crate::server::Server;

const KEYS: [&str; 4] = [r#"["k0"]"#, r#"["k1"]"#, r#"["k2"]"#, r#"["k3"]"#];
/// Writes that are acknowledged before each kill.
const BETWEEN_KILLS: u64 = 200;

/// What is known of an item.
#[derive(Debug, Clone, Default)]
struct Known {
    /// What it was acknowledged to be; `None`: it was never acknowledged.
    acknowledged: Option<i64>,
    /// What was sent since then, without an answer.
    unclear: Vec<i64>,
}

impl Known {
    fn allows(&self, found: Option<i64>) -> bool {
        found == self.acknowledged || found.is_some_and(|n| self.unclear.contains(&n))
    }

    fn is(&mut self, n: Option<i64>) {
        self.acknowledged = n;
        self.unclear.clear();
    }
}

struct Writer {
    sdk: Sdk,
    key: &'static str,
    choices: fastrand::Rng,
    items: BTreeMap<String, Known>,
    last: i64,
    unclear: u64,
}

#[test]
fn what_a_killed_server_has_acknowledged_in_frames_is_there() {
    let rounds = setting("BOLIDE_ROUNDS").unwrap_or(3);
    let data = TempDir::new().expect("a temporary directory");
    let port = free_port();
    let text = port.to_string();
    let start = || Server::on(data.path(), &["--port", &text]);
    let mut server = Some(start());
    let mut client = server.as_ref().expect("it runs").client();
    create_container(&mut client);
    let pem = certificate(server.as_ref().expect("it runs"));
    let (acknowledged, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let writers: Vec<Writer> = std::thread::scope(|scope| {
        let (acknowledged, is_over) = (&acknowledged, &is_over);
        let _ends = Ends(is_over);
        let writers = KEYS.map(|key| {
            let mut writer = Writer::new(Sdk::new(port, &pem), key);
            scope.spawn(move || {
                let _ends = Ends(is_over);
                while !is_over.load(Ordering::SeqCst) {
                    writer.step(acknowledged);
                }
                writer
            })
        });
        for round in 0..rounds {
            let enough = acknowledged.load(Ordering::SeqCst) + BETWEEN_KILLS;
            let is_enough = || acknowledged.load(Ordering::SeqCst) >= enough || is_over.load(Ordering::SeqCst);
            wait_for("writes", is_enough);
            // In the middle of a split, too.
            if round % 2 == 1 {
                let split = Request::post("/_bolide/dbs/d/colls/c/split", "{}").to_bytes();
                let mut stream = server.as_ref().expect("it runs").client().into_stream();
                stream.write_all(&split).expect("it can be sent");
            }
            // Dropping it sends SIGKILL.
            drop(server.take());
            server = Some(start());
        }
        let enough = acknowledged.load(Ordering::SeqCst) + BETWEEN_KILLS;
        wait_for("writes after the last kill", || {
            acknowledged.load(Ordering::SeqCst) >= enough || is_over.load(Ordering::SeqCst)
        });
        is_over.store(true, Ordering::SeqCst);
        writers
            .map(|writer| writer.join().expect("a writer that found no error"))
            .into()
    });
    for writer in &writers {
        assert!(
            writer.sdk.channels > rounds as usize,
            "{} channels",
            writer.sdk.channels
        );
    }
    assert!(writers.iter().any(|writer| writer.unclear > 0), "no write was cut off");
    let server = server.expect("it runs");
    let mut sdk = Sdk::new(port, &pem);
    for writer in &writers {
        writer.compare(&mut sdk);
    }
    let counts: u64 = sdk.pkranges().iter().map(|(range, _)| count(&mut sdk, *range)).sum();
    let found: usize = writers.iter().map(|writer| writer.there(&mut sdk).len()).sum();
    assert_eq!(counts, found as u64, "items of all ranges");
    verify(&mut server.client());
}

impl Writer {
    fn new(sdk: Sdk, key: &'static str) -> Writer {
        Writer {
            choices: fastrand::Rng::with_seed(u64::from(key.as_bytes()[3])),
            sdk,
            key,
            items: BTreeMap::new(),
            last: 0,
            unclear: 0,
        }
    }

    fn step(&mut self, acknowledged: &AtomicU64) {
        let id = format!("i{}", self.choices.u32(..40));
        let known = self.items.get(&id).cloned().unwrap_or_default();
        if !known.unclear.is_empty() && self.choices.bool() || self.choices.u32(..6) == 0 {
            self.read(&id);
            return;
        }
        self.last += 1;
        let n = self.last;
        let body = json!({"id": id, "pk": self.key[2..4], "n": n, "pad": "x".repeat(self.choices.usize(..2000))});
        let (call, expected): (_, &[u32]) = match &known {
            Known { unclear, .. } if !unclear.is_empty() => (items(Operation::Upsert).key(self.key), &[200, 201]),
            Known {
                acknowledged: Some(_), ..
            } => (item(Operation::Replace, self.key, &id), &[200]),
            _ => (items(Operation::Create).key(self.key), &[201]),
        };
        let answer = self.sdk.write(&call.body(body.to_string()));
        let item = self.items.entry(id).or_default();
        match answer {
            None => {
                item.unclear.push(n);
                self.unclear += 1;
            }
            Some(answer) => {
                let status = answer.head.status();
                assert!(
                    expected.contains(&status),
                    "{status} after {known:?}: {}",
                    answer.json()
                );
                assert_eq!(answer.json()["n"], n);
                item.is(Some(n));
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    /// Reads an item. Whoever carried out what was unclear is dead by now.
    fn read(&mut self, id: &str) {
        let found = found(&mut self.sdk, self.key, id);
        let known = self.items.entry(id.to_owned()).or_default();
        assert!(known.allows(found), "{id} is {found:?}, not {known:?}");
        known.is(found);
    }

    /// All items of the key that are there.
    fn there(&self, sdk: &mut Sdk) -> BTreeMap<String, i64> {
        let body = json!({"query": "SELECT c.id, c.n FROM c", "parameters": []}).to_string();
        let answer = sdk.read(items(Operation::Query).key(self.key).body(body).page(1000));
        let answer = answer.expect(200);
        assert_eq!(answer.find(0x03).unwrap_or_default(), "", "a second page");
        let rows = answer.json();
        let rows = rows["Documents"].as_array().expect("a list");
        let mut there = BTreeMap::new();
        for row in rows {
            let n = row["n"].as_i64().expect("a number");
            let is_first = there.insert(row["id"].as_str().expect("text").to_owned(), n).is_none();
            assert!(is_first, "{row} twice");
        }
        there
    }

    /// Compares all that is there with what may be.
    fn compare(&self, sdk: &mut Sdk) {
        let mut there = self.there(sdk);
        for (id, known) in &self.items {
            let listed = there.remove(id.as_str());
            assert!(known.allows(listed), "{id} is {listed:?}, not {known:?}");
            assert_eq!(found(sdk, self.key, id), listed, "{id}");
        }
        assert!(there.is_empty(), "nobody has written {there:?}");
    }
}

fn count(sdk: &mut Sdk, range: u32) -> u64 {
    let counted = sdk.read(query("SELECT VALUE COUNT(1) FROM c", range)).expect(200);
    counted.json()["Documents"][0].as_u64().expect("a number")
}

fn found(sdk: &mut Sdk, key: &'static str, id: &str) -> Option<i64> {
    let answer = sdk.read(item(Operation::Read, key, id));
    match answer.head.status() {
        404 => None,
        _ => answer.expect(200).json()["n"].as_i64(),
    }
}

/// A port below those that the system gives to connections: nobody takes it while the server is dead.
fn free_port() -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let mut ports = std::iter::repeat_with(|| fastrand::u16(20_000..30_000));
    ports.find(is_free).expect("a free port")
}
