//! Opening a store: checking it against its durable mark, and taking it as the state of the engine.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bolide_model::time::{Clock, MonotoneClock};

use super::removal::Removal;
use super::{Committer, Compactor, DurableTime};
use crate::home::Home;
use crate::layout::Sequence;
use crate::mark::{Mark, Marked, Numbers};
use crate::store::{Found, Store};
use crate::view::Views;
use crate::{LsmOptions, OpenError};

impl Committer {
    /// Takes the directory, opens the store in it, checks it against its durable mark, and publishes the first view.
    pub(crate) fn open(
        dir: &std::path::Path,
        clock: Arc<Clock>,
        mut options: LsmOptions,
        views: Arc<Views>,
    ) -> Result<Committer, OpenError> {
        let (home, mark) = Home::enter(dir, clock.now())?;
        let store = Store::open(&home.store_path(), &options)?;
        // Once is enough: a store that failed is opened again while users wait.
        options.verify_tables = false;
        let found = store.find(&home.store_path())?;
        let mark = check_mark(&home, mark, &found, options.accept_data_loss)?;
        let durable_time = mark.marked().time.max(found.newest.stamp);
        let monotonic = options.monotonic.clone();
        let now = monotonic.now();
        let (free_space, path) = (options.free_space.clone(), home.path().to_owned());
        // Below that not even deletes are taken.
        let reserve_bytes = options.reserve_bytes / 2;
        let spare_bytes = move || free_space.at(&path).saturating_sub(reserve_bytes);
        let compactor = Compactor::new(views.clone(), monotonic.clone(), spare_bytes);
        let mut committer = Committer {
            home,
            presence: None,
            monotonic,
            looked_at: now,
            options,
            views,
            time: Arc::new(MonotoneClock::new(clock, durable_time)),
            durable_time: Arc::new(DurableTime::new(durable_time)),
            store: None,
            trouble: None,
            is_closed: false,
            partitions: HashMap::new(),
            removals: VecDeque::new(),
            compactor,
            journal_ahead: None,
            newest: Sequence::NONE,
            written: Numbers::default(),
            durable: Numbers::default(),
            mark,
            mark_written_at: now,
            mark_failed: false,
            persist_at: None,
            removal_at: now,
            refresh_at: None,
            rested_at: None,
            write_time: Duration::ZERO,
            wakes_at: None,
        };
        // Everything is there and can be read, and nothing was written yet.
        committer.home.raise_format()?;
        committer.start_from(store, found);
        committer.home.log_notice();
        Ok(committer)
    }

    /// Takes a store just opened as the state of the engine.
    pub(super) fn start_from(&mut self, store: Store, found: Found) {
        let store = Arc::new(store);
        self.presence = self.home.presence();
        self.newest = found.newest;
        self.written = found.numbers;
        // Opening has synced the journal.
        self.durable = found.numbers;
        self.persist_at = None;
        self.removals = found.removals.into_iter().map(Removal::of).collect();
        self.partitions = found
            .heads
            .into_iter()
            .map(|(partition, row)| (partition, row.history()))
            .collect();
        self.time.observe(self.newest.stamp);
        self.start_from_views(&store);
        self.compactor.start();
        self.store = Some(store);
    }

    /// Shows a store and every head.
    pub(super) fn start_from_views(&self, store: &Arc<Store>) {
        self.views.publish(
            store,
            self.partitions
                .iter()
                .map(|(partition, history)| (*partition, Some(history.head()))),
        );
    }
}

/// Compares a store with its mark, and gives the mark to go on with.
fn check_mark(home: &Home, mark: Option<Mark>, found: &Found, accept_data_loss: bool) -> Result<Mark, OpenError> {
    let flaw = match &mark {
        None => Some(OpenError::Corrupt(
            "the durable mark is missing or damaged; accept_data_loss opens without it".into(),
        )),
        Some(mark) => missing(mark.marked().numbers, found.numbers),
    };
    let mut mark = match (flaw, mark) {
        (None, Some(mark)) => return Ok(mark),
        (Some(flaw), _) if !accept_data_loss => return Err(flaw),
        (flaw, mark) => {
            let flaw = flaw.map(|flaw| flaw.to_string());
            tracing::warn!(flaw, "the store is opened although data may be lost");
            mark.map_or_else(|| home.new_mark(), Ok)?
        }
    };
    let written = mark.write(Marked {
        numbers: found.numbers,
        time: mark.marked().time,
    });
    written.map_err(crate::home::io_error("writing the durable mark", home.path()))?;
    Ok(mark)
}

/// The loss, if a store ends before its mark.
pub(super) fn missing(mark: Numbers, found: Numbers) -> Option<OpenError> {
    let short = mark.into_iter().zip(found).find(|(expected, found)| found < expected);
    short.map(|(expected, found)| OpenError::LostCommits { expected, found })
}
