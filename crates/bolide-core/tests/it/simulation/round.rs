//! Rounds: clients call servers while these have faults; then the faults end, and what was seen is checked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bolide_model::{ErrorKind, UnixMillis};
use futures_util::future::{Either, select};

use super::network::{LONGEST_WAY, Link};
use super::world::{World, pause};
use crate::linear::action::{Call, Outcome};
use crate::linear::checker::{Checker, Made};
use crate::linear::followers::Followers;
use crate::linear::racers::Client;
use crate::linear::track::Track;
use crate::random::RandomChoices;

const CLIENTS: usize = 4;
/// Maximum number of calls of one client in one round.
const CALLS: u64 = 5;

/// A simulation; see the module.
pub struct Simulation {
    pub world: Arc<World>,
    clients: Vec<Client>,
    moments: Arc<AtomicU64>,
    choices: RandomChoices,
    followers: Followers,
    checker: Checker,
    /// Number of calls so far, by their outcome.
    pub calls: u64,
}

impl Simulation {
    /// Begins the simulation of a seed, with two or three servers.
    pub async fn begin(seed: u64) -> Simulation {
        let mut choices = RandomChoices::new(seed);
        let world = World::begin(seed, 2 + choices.roll(2) as usize).await;
        let server = world.server_near(0).await;
        Simulation {
            followers: Followers::from_now(&server.account, &server.container).await,
            clients: (0..CLIENTS).map(|number| Client::new(number, seed)).collect(),
            moments: Arc::default(),
            checker: Checker::default(),
            calls: 0,
            choices,
            world,
        }
    }

    /// Runs the calls of a round, and checks them.
    ///
    /// # Errors
    /// If no order explains them.
    pub async fn round(&mut self) -> Result<(), String> {
        self.world.network.be_calm(false);
        let faults = tokio::spawn(inflict(
            self.world.clone(),
            RandomChoices::new(self.choices.roll(u64::MAX)),
        ));
        let racing: Vec<_> = self.clients.drain(..).collect();
        let racing = racing.into_iter().map(|client| {
            let (world, moments) = (self.world.clone(), self.moments.clone());
            tokio::spawn(run(client, world, moments))
        });
        let mut made = Vec::new();
        for racing in racing.collect::<Vec<_>>() {
            let (client, calls) = racing.await.expect("a client");
            self.clients.push(client);
            made.extend(calls);
        }
        faults.await.expect("faults");
        self.world.calm_down().await;
        self.calls += made.len() as u64;
        self.checker.take(&made)?;
        let server = self.any().await;
        self.followers.catch_up(&server.account, &server.container).await;
        Ok(())
    }

    async fn any(&mut self) -> super::world::Server {
        let place = self.choices.roll(self.world.places() as u64);
        self.world.server_near(place as usize).await
    }

    /// Checks that the purge has removed everything, that all entries agree, and that each item has ended once.
    ///
    /// # Errors
    /// If not.
    pub async fn end(&mut self) -> Result<(), String> {
        // Longer than any ttl, and than a dead server keeps the others from purging.
        pause(15_000).await;
        for place in 0..self.world.places() {
            let server = self.world.server_near(place).await;
            let report = server.account.ttl_report(&server.container).await;
            let report = report.map_err(|error| format!("a report: {error}"))?;
            if report.backlog_items != 0 {
                return Err(format!("expired items are left: {report:?}"));
            }
            let verified = server.account.verify(&server.container).await;
            let verified = verified.map_err(|error| format!("a check: {error}"))?;
            if !verified.problems.is_empty() {
                return Err(format!("stored entries do not agree: {:?}", verified.problems));
            }
        }
        let server = self.any().await;
        self.followers.assert_complete(&server.account, &server.container).await;
        Ok(())
    }
}

/// Kills and cuts off servers during a round.
async fn inflict(world: Arc<World>, mut choices: RandomChoices) {
    for _ in 0..choices.roll(3) {
        pause(choices.roll(800)).await;
        let place = choices.roll(world.places() as u64) as usize;
        let longest = if choices.percent(20) { 6_000 } else { 600 };
        let lasts = choices.roll(longest);
        if choices.percent(60) {
            world.kill(place);
            pause(lasts).await;
            world.start(place).await;
        } else if let Some(server) = world.server_at(place) {
            server.link.cut(true);
            pause(lasts).await;
            server.link.cut(false);
        }
    }
}

async fn run(mut client: Client, world: Arc<World>, moments: Arc<AtomicU64>) -> (Client, Vec<Made>) {
    let mut made = Vec::new();
    for _ in 0..=client.choices.roll(CALLS) {
        pause(client.choices.roll(300)).await;
        let call = match client.choose() {
            // Scripts have threads of their own.
            Call::Script(actions) => Call::Batch(actions),
            call => call,
        };
        if let Some(call) = make(&mut client, &world, &moments, call).await {
            made.push(call);
        }
    }
    (client, made)
}

/// Makes a call, unless the server dies before.
async fn attempt(track: &Track, call: &Call, link: &Link) -> Result<(Outcome, u64), ErrorKind> {
    match select(Box::pin(track.attempt(call)), Box::pin(link.death())).await {
        Either::Left((attempt, _)) => attempt.map_err(|error| error.kind),
        Either::Right(((), _)) => Err(ErrorKind::Timeout),
    }
}

/// Makes a call. `None`: it was not carried out, or showed nothing.
async fn make(client: &mut Client, world: &World, moments: &AtomicU64, call: Call) -> Option<Made> {
    let place = match client.choices.percent(80) {
        true => client.number,
        false => client.choices.roll(world.places() as u64) as usize,
    };
    let server = world.server_near(place).await;
    let track = Track {
        account: server.account.clone(),
        container: server.container.clone(),
    };
    let moment = || moments.fetch_add(1, Ordering::SeqCst);
    let (began, first) = (moment(), world.now().seconds().0);
    let attempt = attempt(&track, &call, &server.link).await;
    let (ended, now) = (moment(), world.now());
    let who = format!("client {} at {}", client.number, server.link.name());
    world.network.note(&who, &format!("{call:?} → {attempt:?}"));
    let (outcome, lsn, last) = match attempt {
        Ok((outcome, lsn)) => (outcome, Some(lsn), now),
        // What it has sent to the store may still be on its way.
        Err(ErrorKind::Timeout) if call.is_write() => {
            (Outcome::Unknown, None, UnixMillis(now.0 + 2 * LONGEST_WAY as i64))
        }
        Err(_) => return None,
    };
    client.learn(&call, &outcome);
    Some(Made {
        client: client.number,
        began,
        ended,
        seconds: (first, last.seconds().0),
        lsn,
        call,
        outcome,
    })
}
