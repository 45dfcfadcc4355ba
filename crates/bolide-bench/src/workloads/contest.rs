//! One workload on all systems that are there, in alternating rounds.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::cosmos::CosmosSystem;
use super::measure;
use super::plan::{Popularity, Workload};
use super::report::{Absent, Measured, REFERENCE, Settings, Side};
use super::system::System as _;
use crate::Result;
use crate::process::proportional_kib;
use crate::query::postgres::Postgres;
use crate::redis::Redis;

/// Pause after loading, in which systems finish what they do in the background; in seconds.
const REST: f64 = 2.0;
const KIB_OF_MIB: f64 = 1024.0;

/// Why a system is not there, if nobody says more.
const REASONS: [(&str, &str); 4] = [
    ("postgres", "it is not installed (Debian: apt install postgresql)"),
    (
        "redis",
        "there is no redis-server on the path (Debian: apt install redis-server)",
    ),
    ("cosmium", "no executable was given"),
    ("vercel", "no directory with its module was given"),
];

/// A system that can be started.
pub enum Candidate {
    Bolide(PathBuf),
    Postgres,
    Redis,
    /// The executable.
    Cosmium(PathBuf),
    /// The directory with the node modules.
    Vercel(PathBuf),
}

/// A running system.
enum Running {
    Cosmos(CosmosSystem),
    Postgres(Postgres),
    Redis(Redis),
}

/// The systems that can be measured here, in the order of the rounds, and those that cannot, with their reasons.
///
/// `absent`: reasons that are known already.
pub fn candidates(
    bolide: PathBuf,
    cosmium: Option<PathBuf>,
    vercel: Option<PathBuf>,
    mut absent: Vec<Absent>,
) -> (Vec<Candidate>, Vec<Absent>) {
    let mut candidates = vec![Candidate::Bolide(bolide)];
    candidates.extend(Postgres::is_installed().then_some(Candidate::Postgres));
    candidates.extend(Redis::is_installed().then_some(Candidate::Redis));
    candidates.extend(cosmium.map(Candidate::Cosmium));
    candidates.extend(vercel.map(Candidate::Vercel));
    for (name, reason) in REASONS {
        let is_there = candidates.iter().any(|candidate| candidate.name() == name);
        if !is_there && !absent.iter().any(|other| other.name == name) {
            absent.push(Absent::new(name, reason));
        }
    }
    (candidates, absent)
}

impl Candidate {
    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Candidate::Bolide(_) => REFERENCE,
            Candidate::Postgres => "postgres",
            Candidate::Redis => "redis",
            Candidate::Cosmium(_) => "cosmium",
            Candidate::Vercel(_) => "vercel",
        }
    }

    async fn start(&self) -> Result<Running> {
        Ok(match self {
            Candidate::Bolide(executable) => Running::Cosmos(CosmosSystem::bolide(executable)?),
            Candidate::Postgres => Running::Postgres(Postgres::start()?),
            Candidate::Redis => Running::Redis(Redis::start()?),
            Candidate::Cosmium(executable) => Running::Cosmos(CosmosSystem::cosmium(executable)?),
            Candidate::Vercel(directory) => Running::Cosmos(CosmosSystem::vercel(directory)?),
        })
    }
}

/// A system that takes part in a workload, and its figures so far.
struct Contestant {
    /// `None` after a failure.
    running: Option<Running>,
    side: Side,
}

impl Contestant {
    async fn enter(candidate: &Candidate, workload: &'static Workload, settings: &Settings) -> Contestant {
        let prepared = async {
            let running = candidate.start().await?;
            match &running {
                Running::Cosmos(system) => measure::prepare(system, workload, settings).await?,
                Running::Postgres(system) => measure::prepare(system, workload, settings).await?,
                Running::Redis(system) => measure::prepare(system, workload, settings).await?,
            }
            Result::Ok(running)
        };
        let (running, failure) = match prepared.await {
            Ok(running) => (Some(running), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let side = Side {
            system: candidate.name().to_owned(),
            memory_mib: None,
            failure,
            rounds: Vec::new(),
        };
        Contestant { running, side }
    }

    /// Where the memory cannot be read, there is no figure.
    fn look_at_memory(&mut self) {
        let pid = self.running.as_ref().map(|running| match running {
            Running::Cosmos(system) => system.pid(),
            Running::Postgres(system) => system.pid(),
            Running::Redis(system) => system.pid(),
        });
        let kib = pid.and_then(|pid| proportional_kib(pid).ok());
        self.side.memory_mib = kib.map(|kib| kib as f64 / KIB_OF_MIB);
    }

    /// Measures a round. A failure ends the system, and is kept.
    async fn play(
        &mut self,
        workload: &'static Workload,
        popularity: &Arc<Popularity>,
        settings: &Settings,
        number: u64,
    ) {
        let round = match &self.running {
            Some(Running::Cosmos(system)) => measure::round(system, workload, popularity, settings, number).await,
            Some(Running::Postgres(system)) => measure::round(system, workload, popularity, settings, number).await,
            Some(Running::Redis(system)) => measure::round(system, workload, popularity, settings, number).await,
            None => return,
        };
        match round {
            Ok(round) => self.side.rounds.push(round),
            Err(error) => {
                self.side.failure = Some(error.to_string());
                self.running = None;
            }
        }
    }
}

/// Runs a workload: all systems are started and loaded, then they take turns.
pub async fn run(candidates: &[Candidate], workload: &'static Workload, settings: &Settings) -> Measured {
    let popularity = Arc::new(Popularity::of(settings.items));
    let mut contestants = Vec::new();
    for candidate in candidates {
        contestants.push(Contestant::enter(candidate, workload, settings).await);
    }
    // A run that only tries everything out does not need it.
    tokio::time::sleep(Duration::from_secs_f64(REST.min(settings.seconds))).await;
    for contestant in &mut contestants {
        contestant.look_at_memory();
    }
    for number in 0..settings.rounds as u64 {
        for contestant in &mut contestants {
            contestant.play(workload, &popularity, settings, number).await;
        }
    }
    Measured {
        name: workload.name.to_owned(),
        description: workload.description.to_owned(),
        rate: workload.rate,
        sides: contestants.into_iter().map(|contestant| contestant.side).collect(),
    }
}
