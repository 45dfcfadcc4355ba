//! Rounds: clients call servers while these have faults; then the faults end, and what was seen is checked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bolide_core::Container;
use bolide_model::{ErrorKind, UnixMillis};
use futures_util::future::{Either, select};

use super::defaults::Defaults;
use super::faults::{Trouble, inflict};
use super::network::{LONGEST_WAY, Link};
use super::text_of;
use super::transactions::{self, Transactions};
use super::world::{Server, World, pause};
use crate::linear::action::{Action, Body, Call, IDS, Listing, Outcome};
use crate::linear::checker::{Checker, Made};
use crate::linear::followers::Followers;
use crate::linear::racers::Client;
use crate::linear::track::{NO_POSITION, Track};
use crate::random::RandomChoices;

const CLIENTS: usize = 4;
/// Maximum number of calls of one client in one round.
const CALLS: u64 = 5;

/// What clients do more often than usual.
#[derive(Debug, Clone, Copy)]
enum Theme {
    Usual,
    Settings,
    Deletions,
    /// Reads and writes of items that end soon.
    Ends,
}

/// A simulation; see the module.
pub struct Simulation {
    pub world: Arc<World>,
    clients: Vec<Client>,
    moments: Arc<AtomicU64>,
    choices: RandomChoices,
    /// What clients do more often than usual.
    theme: Theme,
    /// `None` while they read.
    followers: Option<Followers>,
    checker: Checker,
    transactions: Transactions,
    defaults: Defaults,
    /// Number of calls so far, by their outcome.
    pub outcomes: BTreeMap<&'static str, u64>,
}

impl Simulation {
    /// Begins the simulation of a seed, with two or three servers.
    pub async fn begin(seed: u64) -> Simulation {
        let mut choices = RandomChoices::new(seed);
        let world = World::begin(seed, 2 + choices.roll(2) as usize).await;
        let server = world.server_near(0).await;
        Simulation {
            theme: [Theme::Usual, Theme::Settings, Theme::Deletions, Theme::Ends][choices.roll(4) as usize],
            followers: Some(Followers::from_now(&server.account, &server.container).await),
            clients: (0..CLIENTS).map(|number| Client::new(number, seed)).collect(),
            moments: Arc::default(),
            checker: Checker::default(),
            transactions: Transactions::default(),
            defaults: Defaults::of_creation(Some(-1)),
            outcomes: BTreeMap::new(),
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
        let mut choices = || RandomChoices::new(self.choices.roll(u64::MAX));
        let faults = tokio::spawn(inflict(self.world.clone(), choices()));
        let is_over = Arc::new(AtomicBool::new(false));
        let followers = self.followers.take().expect("nobody else has them");
        let following = tokio::spawn(follow(followers, self.world.clone(), choices(), is_over.clone()));
        let transactions = transactions::Round::begin(&self.world, &self.moments, &mut choices());
        let racing: Vec<_> = self.clients.drain(..).collect();
        let racing = racing.into_iter().map(|client| {
            let (world, moments, theme) = (self.world.clone(), self.moments.clone(), self.theme);
            tokio::spawn(run(client, world, moments, theme))
        });
        let mut made = Vec::new();
        for racing in racing.collect::<Vec<_>>() {
            let (client, calls) = racing.await.expect("a client");
            self.clients.push(client);
            made.extend(calls);
        }
        let transactions = transactions.end().await?;
        faults.await.expect("faults");
        is_over.store(true, Ordering::SeqCst);
        let mut followers = following.await.map_err(|panic| text_of(panic.into_panic()))?;
        self.world.calm_down().await;
        for call in &made {
            *self.outcomes.entry(call.outcome.name()).or_default() += 1;
        }
        self.checker.take(&made)?;
        self.defaults.take(&made);
        for made in &transactions {
            *self.outcomes.entry(made.name()).or_default() += 1;
        }
        let reader = transactions::Client::new(self.world.clone(), self.moments.clone(), choices());
        self.transactions.take(transactions, reader).await?;
        let server = self.any().await;
        followers.catch_up(&server.account, &server.container).await;
        for removed in followers.take_removed() {
            self.defaults.check(&removed)?;
        }
        verify(&server, &server.container).await?;
        self.followers = Some(followers);
        Ok(())
    }

    async fn any(&mut self) -> Server {
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
            for container in server.account.all_containers() {
                verify(&server, &container).await?;
            }
        }
        let server = self.any().await;
        let followers = self.followers.as_mut().expect("nobody else has them");
        followers.assert_complete(&server.account, &server.container).await;
        let mut removed = followers.take_removed().into_iter();
        removed.try_for_each(|removed| self.defaults.check(&removed))
    }
}

/// Checks that all stored entries agree (P5).
async fn verify(server: &Server, container: &Arc<Container>) -> Result<(), String> {
    let verified = server.account.verify(container).await;
    let verified = verified.map_err(|error| format!("a check: {error}"))?;
    match verified.problems.is_empty() {
        true => Ok(()),
        false => Err(format!("P5: stored entries do not agree: {:?}", verified.problems)),
    }
}

/// Reads the feeds while clients write, through one server after the other.
async fn follow(
    mut followers: Followers,
    world: Arc<World>,
    mut choices: RandomChoices,
    is_over: Arc<AtomicBool>,
) -> Followers {
    while !is_over.load(Ordering::SeqCst) {
        let server = world.server_near(choices.roll(world.places() as u64) as usize).await;
        let following = followers.follow(&server.account, &server.container);
        let followed = select(Box::pin(following), Box::pin(server.link.death())).await;
        if let Either::Left((Err(error), _)) = followed {
            let who = format!("readers at {}", server.link.name());
            world.network.note(&who, &error.to_string());
        }
        pause(choices.roll(400)).await;
    }
    followers
}

async fn run(mut client: Client, world: Arc<World>, moments: Arc<AtomicU64>, theme: Theme) -> (Client, Vec<Made>) {
    let mut made = Vec::new();
    for _ in 0..=client.choices.roll(CALLS) {
        let call = choose(&mut client, theme);
        pause(thinking_time(&mut client.choices, world.now(), theme, &call)).await;
        if matches!(call, Call::DefaultTtl(_)) && client.choices.percent(30) {
            // Most likely it is the server that carries out the change, and is between two steps.
            let (world, place) = (world.clone(), client.number % world.places());
            let trouble = Trouble::within(80, &mut client.choices);
            tokio::spawn(async move { trouble.befall(&world, place).await });
        }
        if let Some(call) = make(&mut client, &world, &moments, call).await {
            made.extend(call.parts());
        }
    }
    (client, made)
}

/// Returns how long a client waits before its next call, in milliseconds: often until about the end of a second, when items end.
fn thinking_time(choices: &mut RandomChoices, now: UnixMillis, theme: Theme, call: &Call) -> u64 {
    let left = 1_000 - now.0.rem_euclid(1_000) as u64;
    match theme {
        // Writes of an item that is about to end are on their way when others find that it has ended.
        Theme::Ends if call.is_write() => left.saturating_sub(choices.roll(60)),
        Theme::Ends => left + choices.roll(100),
        _ if choices.percent(50) => choices.roll(300),
        _ => (left + choices.roll(160)).saturating_sub(120),
    }
}

/// Returns an id, most often the same one.
fn id_of(choices: &mut RandomChoices) -> &'static str {
    let among = if choices.percent(60) { 1 } else { IDS.len() };
    IDS[choices.roll(among as u64) as usize]
}

/// Returns a call that reads several items.
fn query(choices: &mut RandomChoices) -> Call {
    match choices.roll(8) {
        0 => Call::Count,
        1 => Call::Find(choices.roll(4) as i64),
        2 => Call::List(Listing::Query),
        3..6 => Call::Changes,
        6 => Call::Usage,
        _ => Call::List(Listing::ReadFeed),
    }
}

fn choose(client: &mut Client, theme: Theme) -> Call {
    match theme {
        Theme::Settings if client.choices.percent(20) => {
            Call::DefaultTtl([None, Some(-1), Some(1), Some(2), Some(3)][client.choices.roll(5) as usize])
        }
        Theme::Deletions if client.choices.percent(10) => Call::DropAll,
        Theme::Ends if client.choices.percent(40) => match client.choices.percent(50) {
            true => Call::One(Action::Read(id_of(&mut client.choices))),
            false => query(&mut client.choices),
        },
        Theme::Ends if client.choices.percent(60) => {
            let brief = Body {
                id: id_of(&mut client.choices),
                n: client.choices.roll(1_000) as i64,
                u: client.choices.roll(1_000) as i64,
                ttl: Some(1 + client.choices.roll(3) as i64),
            };
            match client.choices.percent(50) {
                true => Call::One(Action::Upsert(brief)),
                false => Call::One(Action::Replace(brief, None)),
            }
        }
        _ => match client.choose() {
            // Scripts have threads of their own.
            Call::Script(actions) => Call::Batch(actions),
            Call::List(_) => query(&mut client.choices),
            call => call,
        },
    }
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
        Ok((outcome, lsn)) => (outcome, (lsn != NO_POSITION).then_some(lsn), now),
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
