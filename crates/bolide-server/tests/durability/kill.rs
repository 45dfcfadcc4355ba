//! Kills the server under load, again and again on one directory.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::{Client, Request};
use crate::random::Random;
use crate::server::{self, Server};
use crate::wire::{clock, connect, expect, text, verify};
use crate::writer::{DATABASE, Ledger, Place, Writer};

const ROUNDS: u64 = 50;
const SEED: u64 = 20_260_501;
const WRITERS: u64 = 6;
/// Longer than this no round waits for its writers, however slow the machine is.
const ROUND_LIMIT: Duration = Duration::from_millis(800);

/// The claim of the whole file: what was answered is there after every kill, no entry of any index or queue is without its item, and
/// neither times nor log sequence numbers ever go back.
#[test]
fn nothing_acknowledged_is_lost_however_often_the_server_is_killed() {
    let (rounds, seed) = (setting("BOLIDE_ROUNDS", ROUNDS), setting("BOLIDE_SEED", SEED));
    let root = tempfile::tempdir().expect("a temporary directory");
    let mut run = Run::new(server::Place::new(root.path()), seed);
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

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |value| {
        value.parse().unwrap_or_else(|_| panic!("{name} is a number: {value}"))
    })
}

struct Run {
    place: server::Place,
    random: Random,
    writers: Vec<Writer>,
    ledger: Ledger,
    /// Server time as it was shown last, in milliseconds.
    time: i64,
}

impl Run {
    fn new(place: server::Place, seed: u64) -> Run {
        let writers = (0..WRITERS).map(|number| Writer::new(number, seed)).collect();
        let run = Run {
            place,
            random: Random::new(seed, u64::MAX),
            writers,
            ledger: Ledger::default(),
            time: 0,
        };
        let server = run.place.start();
        let mut client = server.client();
        client.send(&Request::post("/dbs", r#"{"id":"d"}"#)).expect(201);
        for place in Place::ALL {
            client.send(&place.create()).expect(201);
        }
        // So the containers are under the first kill too: nothing waits for an orderly stop.
        server.kill();
        run
    }

    fn round(&mut self, round: u64) {
        if round % 7 == 3 {
            // A kill in the middle of recovery.
            self.place
                .start_and_kill(Duration::from_millis(self.random.within(0..60)));
        }
        let server = self.start_and_check();
        let moment = Moment::random(&mut self.random, self.ledger.len());
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
            moment.wait_for(ledger);
            // Now and then an orderly stop, which writes tables.
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

    /// Starts the server and compares everything in it with what was acknowledged.
    fn start_and_check(&mut self) -> Server {
        let server = self.place.start();
        let time = clock(&mut server.client()).expect("the server answers");
        assert!(time >= self.time, "server time went back from {} to {time}", self.time);
        self.time = time;
        let (ledger, port) = (&self.ledger, server.port());
        let there: BTreeSet<(Place, String)> = std::thread::scope(|scope| {
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
        for place in Place::ALL {
            check_container(&mut server.client(), place, &there);
        }
        self.ledger.check();
        server.assert_no_panic();
        server
    }
}

/// When a server is killed: some time after so many writes were acknowledged. So fast and slow machines both kill in the middle of work.
struct Moment {
    acknowledged: usize,
    then: Duration,
}

impl Moment {
    fn random(random: &mut Random, acknowledged: usize) -> Moment {
        let more = random.within(1..200);
        Moment {
            acknowledged: acknowledged + usize::try_from(more).expect("small"),
            then: Duration::from_micros(random.within(0..8_000)),
        }
    }

    /// There is no clock to move in another process, so this really waits.
    fn wait_for(&self, ledger: &Ledger) {
        let deadline = Instant::now() + ROUND_LIMIT;
        while ledger.len() < self.acknowledged && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(self.then);
    }
}

/// Asks for server time until the server is gone, and returns the last answer.
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

/// Splits a range while writers write; the kill may come before, within or after.
fn split(port: u16) {
    let request = Request::post(&format!("/_bolide{DATABASE}/colls/ranges/split"), "");
    // No answer is as good as one.
    if let Ok(answer) = connect(port).and_then(|mut client| client.try_send(&request)) {
        answer.expect(200);
    }
}

/// All entries fit together, and lists and point reads agree.
fn check_container(client: &mut Client, place: Place, there: &BTreeSet<(Place, String)>) {
    verify(client, &place.path());
    // Where items end, they do so between the point reads and this.
    if place.has_ends() {
        return;
    }
    let items = list(client, place);
    let ids: BTreeSet<&str> = items.iter().map(|item| text(item, "id")).collect();
    let expected = there
        .iter()
        .filter(|(of, _)| *of == place)
        .map(|(_, id)| id.as_str())
        .collect();
    assert_eq!(ids, expected, "{place:?}: the list of items against point reads");
    if place == Place::Unique {
        let mut keys = BTreeSet::new();
        for item in &items {
            let key = (text(item, "pk"), item["u"].as_u64());
            assert!(keys.insert(key), "two items have the unique key {key:?}");
        }
    }
}

/// All items of a container.
fn list(client: &mut Client, place: Place) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    let mut continuation: Option<String> = None;
    loop {
        let mut request = Request::get(&format!("{}/docs", place.path())).header("x-ms-max-item-count", "20");
        if let Some(continuation) = &continuation {
            request = request.header("x-ms-continuation", continuation);
        }
        let answer = expect(client, &request, &[200]);
        items.extend(answer.json()["Documents"].as_array().expect("a list").iter().cloned());
        continuation = answer.header("x-ms-continuation").map(str::to_owned);
        if continuation.is_none() {
            return items;
        }
    }
}
