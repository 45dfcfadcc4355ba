//! Executes a program on an account and on the model at the same time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bolide_core::{Account, Container, Cost, PurgeMode, RequestContext, StoredItem};
use bolide_model::epk::EpkRange;
use bolide_model::time::Clock;
use bolide_model::{Error, UnixMillis};

use super::checks::differ;
use super::faults::is_fault;
use super::feeds::{Following, Listing};
use super::life::{Splitting, create, ranges_of};
use super::program::{KEYS, Match, Op, Program, RandomChoices, SLOTS, Setup, Where};
use super::store::{Kind, Store};
use super::versions::Watching;
use crate::model::{Budget, Model, Part, Write};

/// How a program is executed.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub kind: Kind,
    pub purging: Purging,
}

impl Options {
    pub fn on(kind: Kind) -> Options {
        Options {
            kind,
            purging: Purging::AsWritten,
        }
    }
}

/// When ghosts are purged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Purging {
    /// In the program's own steps.
    AsWritten,
    /// All of them, after each step.
    AtOnce,
    Never,
}

/// The error, and the step in which it occurred.
#[derive(Debug, Clone)]
pub struct Failure {
    pub step: usize,
    pub what: String,
}

/// Why a step ended early.
#[derive(Debug)]
pub enum Stop {
    /// The answer differs from the model's.
    Wrong(String),
    /// The engine could not serve the request.
    Fault,
}

impl From<String> for Stop {
    fn from(what: String) -> Stop {
        Stop::Wrong(what)
    }
}

/// The answer to a step, limited to what two servers must agree on.
pub type Stepped = Result<String, Stop>;

/// Executes a program. Returns the answers.
pub fn run(program: &Program, options: Options) -> Result<Vec<String>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut runner = Runner::start(program.setup, options).await;
        let mut answers = Vec::new();
        for (step, op) in program.ops.iter().enumerate() {
            let failed = |what| Failure { step, what };
            let audit = step % 4 == 3;
            answers.push(runner.step(op, audit).await.map_err(failed)?);
        }
        let step = program.ops.len().saturating_sub(1);
        runner.finish().await.map_err(|what| Failure { step, what })?;
        Ok(answers)
    })
}

/// The state of an execution; see the module.
pub struct Runner {
    pub(super) options: Options,
    pub(super) model: Model,
    pub(super) store: Store,
    pub(super) clock: Arc<Clock>,
    pub(super) setup: Setup,
    /// The accounts over the store, each with its container; none while they are down.
    pub(super) servers: Vec<(Arc<Account>, Arc<Container>)>,
    /// Which of them carries out the step.
    serving: usize,
    /// Chooses it.
    choices: RandomChoices,
    /// All versions of a name so far, oldest first.
    pub(super) known: HashMap<(&'static str, &'static str), Vec<String>>,
    pub(super) etags: HashSet<String>,
    /// Versions that an answer has shown as missing (P2).
    pub(super) gone: HashSet<String>,
    /// All ranges so far.
    pub(super) ranges: Vec<u32>,
    pub(super) listings: [Option<Listing>; SLOTS],
    pub(super) followings: [Option<Following>; SLOTS],
    pub(super) watchings: [Option<Watching>; SLOTS],
    pub(super) splitting: Option<Splitting>,
    pub(super) counts_only_load: bool,
    /// The latest second in which a request was answered.
    pub(super) answered_by: i64,
    pub(super) fences: i64,
}

impl Runner {
    async fn start(setup: Setup, options: Options) -> Runner {
        let clock = Arc::new(Clock::virtual_at(UnixMillis(100_550)));
        let store = Store::new(options.kind, clock.clone());
        let servers = create(&store, setup, options.kind).await;
        let ranges: Vec<(u32, EpkRange)> = ranges_of(&servers[0].1);
        let budget = if setup.has_several_ranges {
            Budget::Provisioned(20_000.0)
        } else {
            Budget::Unlimited
        };
        let mut runner = Runner {
            model: Model::new(
                clock.now().0,
                setup.default_ttl,
                setup.has_unique_key,
                budget,
                ranges.clone(),
            ),
            options,
            store,
            clock,
            setup,
            servers,
            serving: 0,
            choices: RandomChoices::new(1),
            known: HashMap::new(),
            etags: HashSet::new(),
            gone: HashSet::new(),
            ranges: ranges.into_iter().map(|(id, _)| id).collect(),
            listings: Default::default(),
            followings: Default::default(),
            watchings: Default::default(),
            splitting: None,
            counts_only_load: false,
            answered_by: 0,
            fences: 0,
        };
        if let Kind::InTrouble(_) | Kind::SharedInTrouble(..) = options.kind {
            // After a commit of unknown outcome, the ghosts that it removed are found out in a later second than the one in which they were paid.
            runner
                .pace(Budget::Unlimited, None, false)
                .await
                .expect("a calm engine");
        }
        runner.be_calm(false);
        runner
    }

    pub(super) fn account(&self) -> &Arc<Account> {
        &self.servers[self.serving].0
    }

    pub(super) fn container(&self) -> &Arc<Container> {
        &self.servers[self.serving].1
    }

    /// Lets one of several accounts carry out what follows. It has read what the others have changed in the catalog, as servers do all the time.
    async fn choose_server(&mut self) -> Result<(), String> {
        if self.servers.len() > 1 {
            self.serving = self.choices.roll(self.servers.len() as u64) as usize;
            self.be_calm(true);
            let refreshed = self.account().refresh_catalog().await;
            refreshed.map_err(|error| format!("the catalog: {error}"))?;
            self.be_calm(false);
        }
        Ok(())
    }

    /// Begins or ends a period without engine faults, if there are any, for steps whose success the program needs.
    pub(super) fn be_calm(&self, is_calm: bool) {
        self.store.engine().be_calm(is_calm);
    }

    async fn step(&mut self, op: &Op, audit: bool) -> Result<String, String> {
        self.choose_server().await?;
        if let Some(splitting) = &mut self.splitting {
            // Otherwise a crash ends it.
            let must_end = matches!(op, Op::Split(_) | Op::Restart | Op::CrashInPurge(_));
            if must_end || splitting.steps_left == 0 && !matches!(op, Op::Crash) {
                self.end_split().await?;
                self.choose_server().await?;
            } else {
                splitting.steps_left = splitting.steps_left.saturating_sub(1);
            }
        }
        let answer = match self.carry_out(op).await {
            Ok(answer) => answer,
            Err(Stop::Fault) => "fault".to_owned(),
            Err(Stop::Wrong(what)) => return Err(what),
        };
        if self.options.purging == Purging::AtOnce {
            self.purge_quietly().await?;
        }
        if audit {
            self.choose_server().await?;
            self.be_calm(true);
            self.audit().await?;
            self.be_calm(false);
        }
        Ok(answer)
    }

    /// Checks at the end of every program that the server can still do everything.
    async fn finish(&mut self) -> Result<(), String> {
        self.end_split().await?;
        self.be_calm(true);
        for pk in KEYS {
            self.fence(pk).await?;
        }
        self.audit().await?;
        self.verify().await.map(|_| ()).map_err(what)?;
        if self.options.purging != Purging::Never {
            self.purge_quietly().await?;
            self.verify().await.map(|_| ()).map_err(what)?;
        }
        Ok(())
    }

    async fn carry_out(&mut self, op: &Op) -> Stepped {
        match op.clone() {
            op @ (Op::Create(..) | Op::Upsert(..) | Op::Replace(..) | Op::Patch(..) | Op::Delete(..)) => {
                let write = self.write_of(op).expect("these are writes");
                self.write(write).await
            }
            Op::Batch(pk, ops) => self.batch(pk, ops).await,
            Op::Script(pk, ops, ending) => self.script(pk, ops, ending).await,
            Op::DropKey(pk) => self.drop_key(pk).await,
            Op::Read(pk, id, on) => self.read(pk, id, on).await,
            Op::List(slot, part, size) => {
                let part = self.part(part);
                self.listings[slot] = Some(Listing {
                    part,
                    done: Vec::new(),
                    continuation: None,
                });
                self.list(slot, size).await
            }
            Op::ListOn(slot, size) => self.list(slot, size).await,
            Op::Changes(slot, part, since, size) => {
                self.followings[slot] = Some(self.following(part, since));
                self.follow(slot, size).await
            }
            Op::ChangesOn(slot, size) => self.follow(slot, size).await,
            Op::Versions(slot, part, size) => {
                self.watchings[slot] = Some(self.watching(part));
                self.watch(slot, size).await
            }
            Op::VersionsOn(slot, size) => self.watch(slot, size).await,
            Op::Select(part, least, size) => self.select(part, least, size).await,
            Op::Count(pk) => self.count(pk).await,
            Op::Top(pk, rows) => self.top(pk, rows).await,
            Op::Usage => self.usage().await,
            Op::Report => self.report().await,
            Op::Preview(default_ttl) => self.preview(default_ttl).await,
            Op::Why(pk, id) => self.why(pk, id).await,
            Op::Verify => self.verify().await,
            Op::PurgeAll => self.purge(PurgeMode::Force, None).await,
            Op::PurgeSome(most) => self.purge(PurgeMode::Force, Some(most)).await,
            Op::PurgePaced(most) => self.purge(PurgeMode::Paced, most).await,
            Op::Consume(units) => self.consume(units),
            Op::Pace(budget, price, counts_only_load) => self.pace(budget, price, counts_only_load).await,
            Op::SetDefault(default_ttl) => self.set_default(default_ttl).await,
            Op::Clock(by_ms) => self.move_clock(by_ms),
            Op::Split(nth) => self.begin_split(nth).await,
            Op::Restart => self.restart(true).await,
            Op::Crash => self.restart(false).await,
            Op::CrashInPurge(commits) => self.crash_in_purge(commits).await,
        }
    }

    /// Returns the write of an operation, if it is one.
    pub(super) fn write_of(&self, op: Op) -> Option<Write> {
        Some(match op {
            Op::Create(doc) => Write::Create(doc),
            Op::Upsert(doc, on) => {
                let header = self.header(doc.pk, doc.id, on);
                Write::Upsert(doc, header)
            }
            Op::Replace(id, doc, on) => {
                let header = self.header(doc.pk, id, on);
                Write::Replace(id, doc, header)
            }
            Op::Patch(pk, id, changes, on) => Write::Patch(pk, id, changes, self.header(pk, id, on)),
            Op::Delete(pk, id, on) => Write::Delete(pk, id, self.header(pk, id, on)),
            _ => return None,
        })
    }

    /// Begins a request; server time must be that of the model.
    pub(super) async fn begin(&mut self) -> Result<RequestContext, Stop> {
        let ctx = self.account().begin().await.map_err(trouble_or_wrong)?;
        differ("server time", ctx.now.0, self.model.now_ms)?;
        self.answered_by = self.model.now();
        Ok(ctx)
    }

    /// Checks that a version that is shown was never reported as missing before (P2).
    pub(super) fn shown(&self, item: &StoredItem) -> Result<(), String> {
        let etag = item.etag().to_string();
        if self.gone.contains(&etag) {
            return Err(format!("P2: {} was missing and is back as version {etag}", item.id()));
        }
        Ok(())
    }

    /// Records versions as reported missing.
    pub(super) fn missed(&mut self, is_missing: impl Fn(&str) -> bool) {
        self.gone
            .extend(self.etags.iter().filter(|etag| is_missing(etag)).cloned());
    }

    pub(super) fn charged(&mut self, cost: &Cost) {
        if !self.counts_only_load {
            for position in &cost.touched {
                self.model.charged(position.charge.0, position.range);
            }
        }
    }

    pub(super) fn header(&self, pk: &'static str, id: &'static str, on: Match) -> Option<String> {
        const FOREIGN: &str = "\"00000000-0000-0000-0000-00000000beef\"";
        let known = self.known.get(&(pk, id)).map_or(&[][..], Vec::as_slice);
        let version = match on {
            Match::None => return None,
            Match::Any => return Some("*".into()),
            Match::Newest => known.last(),
            Match::Oldest => known.first(),
            Match::Foreign => None,
        };
        Some(version.map_or(FOREIGN, String::as_str).to_owned())
    }

    pub(super) fn part(&self, part: Where) -> Part {
        match part {
            Where::All => Part::All,
            Where::Key(pk) => Part::Key(pk),
            Where::Range(nth) => Part::Range(self.ranges[nth % self.ranges.len()]),
        }
    }
}

pub(super) fn trouble_or_wrong(error: Error) -> Stop {
    if is_fault(&error) {
        Stop::Fault
    } else {
        Stop::Wrong(format!("{error:?}"))
    }
}

pub(super) fn what(stop: Stop) -> String {
    match stop {
        Stop::Wrong(what) => what,
        Stop::Fault => "an engine without injected faults failed".into(),
    }
}
