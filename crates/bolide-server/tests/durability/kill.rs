//! Kills the server under load, repeatedly on one directory.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::{Client, Request};
use crate::random::{Random, setting};
use crate::server::{self, Server};
use crate::wire::{clock, connect, expect, text, verify};
use crate::writer::{DATABASE, Ledger, TestContainer, Writer};

const ROUNDS: u64 = 50;
const SEED: u64 = 20_260_501;
const WRITERS: u64 = 6;
/// The longest time that a round waits for its writers, however slow the machine is.
const ROUND_LIMIT: Duration = Duration::from_millis(800);

/// The claim of this file: every acknowledged write is present after every kill, no entry of any index or queue exists without its item, and neither
/// times nor log sequence numbers ever go back.
#[test]
fn nothing_acknowledged_is_lost_however_often_the_server_is_killed() {
    let (rounds, seed) = (setting("BOLIDE_ROUNDS", ROUNDS), setting("BOLIDE_SEED", SEED));
    let root = tempfile::tempdir().expect("a temporary directory");
    let mut run = Run::new(server::ServerFiles::new(root.path()), seed);
    for round in 0..rounds {
        println!("round {round} of {rounds}, BOLIDE_SEED={seed}");
        run.round(round);
    }
    let server = run.start_and_check();
    let acknowledged = run.ledger.len();
    println!("{acknowledged} writes were acknowledged");
    assert!(
        acknowledged as u64 >= rounds * WRITERS,
        "the writers hardly got to write: {acknowledged}"
    );
    server.stop();
}

struct Run {
    files: server::ServerFiles,
    random: Random,
    writers: Vec<Writer>,
    ledger: Ledger,
    /// The last server time returned, in milliseconds.
    time: i64,
}

impl Run {
    fn new(files: server::ServerFiles, seed: u64) -> Run {
        let writers = (0..WRITERS).map(|number| Writer::new(number, seed)).collect();
        let run = Run {
            files,
            random: Random::new(seed, u64::MAX),
            writers,
            ledger: Ledger::default(),
            time: 0,
        };
        let server = run.files.start();
        let mut client = server.client();
        client.send(&Request::post("/dbs", r#"{"id":"d"}"#)).expect(201);
        for container in TestContainer::ALL {
            client.send(&container.create()).expect(201);
        }
        // The first kill also tests the creation of containers.
        server.kill();
        run
    }

    fn round(&mut self, round: u64) {
        if round % 7 == 3 {
            // Kills during recovery.
            self.files
                .start_and_kill(Duration::from_millis(self.random.within(0..60)), &[]);
        }
        let server = self.start_and_check();
        let kill_time = KillTime::random(&mut self.random, self.ledger.len());
        let is_split = round % 10 == 4;
        let is_ended = AtomicBool::new(false);
        let (writers, ledger, port) = (&mut self.writers, &self.ledger, server.port());
        let mut time = self.time;
        std::thread::scope(|scope| {
            for writer in writers {
                scope.spawn(|| writer.run(port, ledger));
            }
            let watch = scope.spawn(|| watch_clock(port, &is_ended));
            if is_split {
                scope.spawn(|| split(port));
            }
            kill_time.wait_for(ledger);
            // Sometimes a normal stop, which writes tables.
            if round % 10 == 9 {
                server.stop();
            } else {
                server.kill();
            }
            is_ended.store(true, Ordering::Relaxed);
            time = time.max(watch.join().expect("server time does not go back"));
        });
        self.time = time;
    }

    /// Starts the server and compares its content with what was acknowledged.
    fn start_and_check(&mut self) -> Server {
        let server = self.files.start();
        let time = clock(&mut server.client()).expect("the server answers");
        assert!(time >= self.time, "server time went back from {} to {time}", self.time);
        self.time = time;
        let (ledger, port) = (&self.ledger, server.port());
        let there: BTreeSet<(TestContainer, String)> = std::thread::scope(|scope| {
            let checks = self
                .writers
                .iter_mut()
                .map(|writer| scope.spawn(move || writer.check(&mut Client::connect(port), ledger)));
            let checks: Vec<_> = checks.collect();
            checks
                .into_iter()
                .flat_map(|check| check.join().expect("see above"))
                .collect()
        });
        for container in TestContainer::ALL {
            check_container(&mut server.client(), container, &there);
        }
        self.ledger.check();
        server.assert_no_panic();
        server
    }
}

/// When to kill a server: a time after a number of acknowledged writes, so that both fast and slow machines kill during work.
struct KillTime {
    acknowledged: usize,
    then: Duration,
}

impl KillTime {
    fn random(random: &mut Random, acknowledged: usize) -> KillTime {
        let more = random.within(1..200);
        KillTime {
            acknowledged: acknowledged + usize::try_from(more).expect("small"),
            then: Duration::from_micros(random.within(0..8_000)),
        }
    }

    /// There is no clock to move in another process, so this waits in real time.
    fn wait_for(&self, ledger: &Ledger) {
        let deadline = Instant::now() + ROUND_LIMIT;
        while ledger.len() < self.acknowledged && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(self.then);
    }
}

/// Asks for server time until the server is gone, and returns the last response.
fn watch_clock(port: u16, is_ended: &AtomicBool) -> i64 {
    let mut last = 0;
    let Ok(mut client) = connect(port) else {
        return last;
    };
    while let Ok(time) = clock(&mut client) {
        assert!(time >= last, "server time went back from {last} to {time}");
        last = time;
        if is_ended.load(Ordering::Relaxed) {
            break;
        }
    }
    last
}

/// Splits a range during writes; the kill may come before, during or after it.
fn split(port: u16) {
    let request = Request::post(&format!("/_bolide{DATABASE}/colls/ranges/split"), "");
    // A missing response is allowed.
    if let Ok(response) = connect(port).and_then(|mut client| client.try_send(&request)) {
        response.expect(200);
    }
}

/// All entries agree, and so do lists and point reads.
fn check_container(client: &mut Client, container: TestContainer, there: &BTreeSet<(TestContainer, String)>) {
    verify(client, &container.path());
    // If items expire, they may do so between the point reads and this.
    if container.has_ends() {
        return;
    }
    let items = list(client, container);
    let ids: BTreeSet<&str> = items.iter().map(|item| text(item, "id")).collect();
    let expected = there
        .iter()
        .filter(|(of, _)| *of == container)
        .map(|(_, id)| id.as_str())
        .collect();
    assert_eq!(ids, expected, "{container:?}: the list of items against point reads");
    if container == TestContainer::Unique {
        let mut keys = BTreeSet::new();
        for item in &items {
            let key = (text(item, "pk"), item["u"].as_u64());
            assert!(keys.insert(key), "two items have the unique key {key:?}");
        }
    }
}

/// All items of a container.
fn list(client: &mut Client, container: TestContainer) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    let mut continuation: Option<String> = None;
    loop {
        let mut request = Request::get(&format!("{}/docs", container.path())).header("x-ms-max-item-count", "20");
        if let Some(continuation) = &continuation {
            request = request.header("x-ms-continuation", continuation);
        }
        let response = expect(client, &request, &[200]);
        items.extend(response.json()["Documents"].as_array().expect("a list").iter().cloned());
        continuation = response.header("x-ms-continuation").map(str::to_owned);
        if continuation.is_none() {
            return items;
        }
    }
}
