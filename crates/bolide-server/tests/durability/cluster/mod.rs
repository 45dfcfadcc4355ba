//! Three servers over one PostgreSQL, all of which are killed or cut off from each other again and again, while clients read and write through all of them.
//!
//! ```text
//!   faults ──▶ servers, network            what is killed, cut off and slowed down
//!   roles ───▶ clients ──▶ servers         what clients ask, and what they were told and when
//!   checks ──▶ history, feeds              whether one order of all calls explains the answers, and feeds show each change once
//! ```
//!
//! 1. No acknowledged write is lost, and none is carried out twice. What was refused (503) did not happen; what has an unknown outcome (408, a broken
//!    connection) happened once or not at all, and not after a later acknowledged write of the same client.
//! 2. What one server has called gone no other one shows, and items end in time.
//! 3. The change feed shows each change once and in order, whichever server is asked for which page.
//! 4. A change of settings is in force on all servers before it is acknowledged.
//! 5. In the end the purge completes, and every server finds its containers sound and shows the same items.
//! 6. A server answers in time, whatever is away, does not end by itself, and serves again soon after its store is back.
//!
//! Not claimed: a write of a version that is about to end may be decided while that is live, and be seen by others only after they have called it gone.
//! The test says how often it saw that.
//!
//! `BOLIDE_SECONDS` sets the time for each test, and `BOLIDE_SEED` the random choices.

mod checks;
mod clients;
mod faults;
mod feeds;
mod history;
mod network;
mod roles;
mod servers;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bolide_postgres_server::OwnServer;
use serde_json::json;

use crate::client::Request;
use crate::random::{Random, setting};
use checks::Evidence;
use clients::{DATABASE, Place, Run, Session};
use faults::Faults;
use history::{Call, Outcome, by_item};
use network::Network;
use roles::{FIRST_DEFAULT, Follower};
use servers::Node;

const SERVERS: usize = 3;
const WORKERS: usize = 8;
const WATCHERS: usize = 3;
const SEED: u64 = 20_260_728;
/// Seconds of the normal test run.
const SECONDS: u64 = 20;
/// On a busy machine an answer comes so much later than it should.
const MARGIN: Duration = Duration::from_secs(3);
/// The longest ttl of an item, and a bit.
const LAST_END: Duration = Duration::from_millis(3_500);

#[test]
fn several_servers_lose_nothing_when_they_and_postgresql_are_killed() {
    let mut database = OwnServer::start().expect("PostgreSQL is installed");
    let root = tempfile::tempdir().expect("a temporary directory");
    let timeout = 5;
    let address = database.address();
    let nodes = (0..SERVERS).map(|number| Node::new(root.path(), number, &address, timeout, None));
    let test = Test::new("killed", nodes.collect(), timeout);
    test.run(|faults| faults.kill(&mut database));
}

#[test]
fn several_servers_lose_nothing_when_they_are_cut_off_from_postgresql() {
    let database = OwnServer::start().expect("PostgreSQL is installed");
    let network = match Network::create(SERVERS, database.port()) {
        Ok(network) => network,
        Err(why) => {
            println!("skipped: network namespaces cannot be made: {why}");
            return;
        }
    };
    let root = tempfile::tempdir().expect("a temporary directory");
    let timeout = 3;
    let nodes = (0..SERVERS).map(|number| {
        let address = database.address_through(network.store_of(number), 5432);
        Node::new(root.path(), number, &address, timeout, Some(network.namespace(number)))
    });
    let test = Test::new("cut_off", nodes.collect(), timeout);
    test.run(|faults| faults.cut(&network));
}

struct Test {
    name: &'static str,
    run: Run,
    seed: u64,
    seconds: u64,
    timeout: u64,
}

/// Ends the threads of a test when the first of them ends, also if that is by a failure.
struct Ending<'r>(&'r Run);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

impl Test {
    fn new(name: &'static str, nodes: Vec<Node>, timeout: u64) -> Test {
        Test {
            name,
            run: Run::new(nodes, Duration::from_secs(timeout) + MARGIN),
            seed: setting("BOLIDE_SEED", SEED),
            seconds: setting("BOLIDE_SECONDS", SECONDS),
            timeout,
        }
    }

    /// Runs clients while things break, and checks what they saw.
    fn run(self, break_things: impl FnOnce(&mut Faults<'_>)) {
        let (name, seed, seconds) = (self.name, self.seed, self.seconds);
        let again = format!(
            "BOLIDE_SEED={seed} BOLIDE_SECONDS={seconds} cargo test -p bolide-server --test durability cluster::several -- --nocapture {name}"
        );
        println!("{name}: {again}");
        for node in &self.run.nodes {
            node.start();
        }
        let mut first = self.session(0);
        set_up(&mut first);
        let mut created = Follower::of(&mut first, Place::Created, false);
        let mut versions = Follower::of(&mut first, Place::Items, true);
        for follower in &mut versions {
            // Where the all-versions feed begins.
            while follower.page(&mut first, 0).is_none() {}
        }
        let mut evidence = self.work(first, &mut created, &mut versions, break_things);
        self.finish(&mut evidence, &mut created, &mut versions);
        let mut failures = self.run.failures();
        failures.extend(evidence.check());
        self.report(&evidence, &created, &versions);
        for node in &self.run.nodes {
            node.stop();
        }
        assert!(failures.is_empty(), "{again}\n{}", failures.join("\n"));
        self.assert_covered(&evidence);
    }

    fn session(&self, number: usize) -> Session<'_> {
        Session::new(&self.run, number, self.seed)
    }

    fn work(
        &self,
        first: Session<'_>,
        created: &mut [Follower],
        versions: &mut [Follower],
        break_things: impl FnOnce(&mut Faults<'_>),
    ) -> Evidence {
        let mut faults = Faults {
            run: &self.run,
            random: Random::new(self.seed, u64::MAX),
            until: Instant::now() + Duration::from_secs(self.seconds),
            timeout: self.timeout,
            slowest_return: Duration::ZERO,
        };
        let mut sessions: Vec<Session<'_>> = (1..=WORKERS + WATCHERS).map(|number| self.session(number)).collect();
        let mut followers = [self.session(101), self.session(102)];
        let mut changer = self.session(100);
        let mut changes = Vec::new();
        std::thread::scope(|scope| {
            for (at, session) in sessions.iter_mut().enumerate() {
                scope.spawn(move || {
                    let _ending = Ending(session.run);
                    match at < WORKERS {
                        true => roles::work(session),
                        false => roles::watch(session),
                    }
                });
            }
            let [latest, all] = &mut followers;
            scope.spawn(|| {
                let _ending = Ending(&self.run);
                roles::follow(latest, created);
            });
            scope.spawn(|| {
                let _ending = Ending(&self.run);
                roles::follow(all, versions);
            });
            scope.spawn(|| {
                let _ending = Ending(&self.run);
                changes = roles::change(&mut changer);
            });
            let _ending = Ending(&self.run);
            break_things(&mut faults);
        });
        println!(
            "{}: all servers served again after {:?} at most",
            self.name, faults.slowest_return
        );
        let mut evidence = Evidence {
            calls: Vec::new(),
            shown: Vec::new(),
            changes,
            live: std::collections::BTreeMap::new(),
            created: Vec::new(),
            versions: Vec::new(),
        };
        for session in sessions.into_iter().chain([first, changer]) {
            evidence.calls.extend(session.calls);
            evidence.shown.extend(session.shown);
        }
        evidence
    }

    /// Lets everything come to rest, and reads all there is.
    fn finish(&self, evidence: &mut Evidence, created: &mut [Follower], versions: &mut [Follower]) {
        std::thread::sleep(LAST_END);
        let mut last = self.session(200);
        checks::wait_for_purge(&mut last);
        checks::verify(&mut last);
        roles::finish(&mut last, created);
        roles::finish(&mut last, versions);
        let known: Vec<_> = by_item(evidence.calls.iter().cloned()).into_keys().collect();
        evidence.live = checks::read_all(&mut last, &known);
        evidence.calls.extend(last.calls);
        evidence.shown.extend(last.shown);
        evidence.created = created.iter().map(|follower| follower.rows.clone()).collect();
        evidence.versions = versions.iter().map(|follower| follower.rows.clone()).collect();
    }

    fn report(&self, evidence: &Evidence, created: &[Follower], versions: &[Follower]) {
        let count =
            |wanted: fn(&Outcome) -> bool| evidence.calls.iter().filter(|(_, made)| wanted(&made.outcome)).count();
        let pages: u64 = created.iter().chain(versions).map(|follower| follower.pages).sum();
        println!(
            "{}: {} calls, of these {} stored, {} deleted, {} found, {} missing, {} unknown; {} live in the end; {} changes of the ttl of items; {} and {} rows in {pages} pages of feeds",
            self.name,
            evidence.calls.len(),
            count(|outcome| matches!(outcome, Outcome::Stored { .. })),
            count(|outcome| *outcome == Outcome::Deleted),
            count(|outcome| matches!(outcome, Outcome::Found(_))),
            count(|outcome| *outcome == Outcome::Missing),
            count(|outcome| *outcome == Outcome::Unknown),
            evidence.live.len(),
            evidence.changes.len(),
            evidence.created.iter().flatten().count(),
            evidence.versions.iter().flatten().count(),
        );
        println!("{}: {:?}", self.name, self.run.counts());
    }

    /// The test is worth something only if all of it happened.
    fn assert_covered(&self, evidence: &Evidence) {
        let has = |place: Place, wanted: fn(&Outcome) -> bool| {
            let mut calls = evidence.calls.iter();
            calls.any(|((of, _), made)| *of == place && wanted(&made.outcome))
        };
        let stored = |outcome: &Outcome| matches!(outcome, Outcome::Stored { .. });
        for place in Place::ALL {
            assert!(has(place, stored), "nothing was written to {place:?}");
            assert!(
                has(place, |outcome| matches!(outcome, Outcome::Found(_))),
                "nothing was read from {place:?}"
            );
        }
        assert!(
            has(Place::Items, |outcome| *outcome == Outcome::Missing),
            "nothing has ended"
        );
        let counts = self.run.counts();
        let broken = ["kills of servers", "PostgreSQL: Killed", "cut links"];
        assert!(
            broken.iter().any(|what| counts.contains_key(*what)),
            "nothing was broken: {counts:?}"
        );
    }
}

fn set_up(session: &mut Session<'_>) {
    let made = session.insist_of(0, &Request::post("/dbs", json!({"id": "d"}).to_string()));
    made.expect(201);
    for place in Place::ALL {
        let default = match place {
            Place::Items | Place::Cleared => Some(-1),
            Place::Created => None,
            Place::Settings => Some(FIRST_DEFAULT.cast_signed()),
        };
        let mut request = Request::post(&format!("{DATABASE}/colls"), place.definition(default).to_string());
        if matches!(place, Place::Items | Place::Created) {
            // Two ranges.
            request = request.header("x-ms-offer-throughput", "20000");
        }
        session.insist_of(0, &request).expect(201);
    }
    let now = session.run.now();
    let stored = Outcome::Stored {
        created: true,
        patches: 0,
    };
    session.note(0, &roles::settings(), Call::Create(FIRST_DEFAULT), now, now, stored);
}
