//! Opening a store: checking it against its durable watermark, and loading the state of the engine from it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bolide_model::time::{Clock, MonotoneClock};

use super::removal::Removal;
use super::{Committer, Compactor, DurableTime};
use crate::durable_watermark::{DurableWatermark, Numbers, Position};
use crate::error::open_error;
use crate::layout::Sequence;
use crate::snapshots::{self, Issued};
use crate::store::{Found, Store};
use crate::store_dir::StoreDir;
use crate::view::Views;
use crate::{LsmOptions, OpenError};

impl Committer {
    /// Locks the directory, opens the store in it, checks it against its durable watermark, and publishes the first view.
    pub(crate) fn open(
        dir: &std::path::Path,
        clock: Arc<Clock>,
        options: LsmOptions,
        views: Arc<Views>,
    ) -> Result<Committer, OpenError> {
        let (store_dir, watermark) = StoreDir::enter(dir, clock.now())?;
        let is_new = !store_dir.store_path().exists();
        let committer = Committer::open_in(store_dir, watermark, clock, options, views)?;
        if is_new {
            // Nothing is written to it yet. It only makes resets faster.
            let drafted = snapshots::draft_blank(dir, &committer.store_dir.store_path());
            if let Err(error) = drafted {
                tracing::debug!(%error, "there is no blank store");
            }
        }
        Ok(committer)
    }

    /// The same in a directory that is locked already.
    pub(crate) fn open_in(
        store_dir: StoreDir,
        watermark: Option<DurableWatermark>,
        clock: Arc<Clock>,
        mut options: LsmOptions,
        views: Arc<Views>,
    ) -> Result<Committer, OpenError> {
        let store = Store::open(&store_dir.store_path(), &options)?;
        // Only at this open: after a failure the store is opened again while users wait.
        options.verify_tables = false;
        let mut found = store.find(&store_dir.store_path())?;
        let watermark = check_watermark(&store_dir, watermark, &found, options.accept_data_loss)?;
        let durable_time = watermark.position().time.max(found.newest.stamp);
        let monotonic = options.monotonic.clone();
        let now = monotonic.now();
        let (free_space, path) = (options.free_space.clone(), store_dir.path().to_owned());
        // Below this, deletes are refused too.
        let reserve_bytes = options.reserve_bytes / 2;
        let spare_bytes = move || free_space.at(&path).saturating_sub(reserve_bytes);
        let compactor = Compactor::new(views.clone(), monotonic.clone(), spare_bytes);
        let mut committer = Committer {
            store_dir,
            presence: None,
            monotonic,
            looked_at: now,
            options,
            views,
            time: Arc::new(MonotoneClock::new(clock, durable_time)),
            durable_time: Arc::new(DurableTime::new(durable_time)),
            store: None,
            failure: None,
            is_closed: false,
            partitions: HashMap::new(),
            removals: VecDeque::new(),
            compactor,
            journal_ahead: None,
            newest: Sequence::NONE,
            written: Numbers::default(),
            durable: Numbers::default(),
            watermark,
            watermark_written_at: now,
            watermark_failed: false,
            persist_at: None,
            removal_at: now,
            refresh_at: None,
            rested_at: None,
            write_time: Duration::ZERO,
            wakes_at: None,
        };
        // Everything can be read, and nothing was written yet.
        committer.store_dir.raise_format()?;
        leave_out_issued(&committer.store_dir, &store, &mut found)?;
        committer.start_from(store, found);
        committer.store_dir.log_notice();
        Ok(committer)
    }

    /// Loads the state of the engine from a store that was just opened.
    pub(super) fn start_from(&mut self, store: Store, found: Found) {
        let store = Arc::new(store);
        self.presence = self.store_dir.presence();
        self.newest = found.newest;
        self.written = found.numbers;
        // Opening has synced the journal.
        self.durable = found.numbers;
        self.persist_at = None;
        self.removals = found.removals.into_iter().map(Removal::of).collect();
        self.partitions = found
            .heads
            .into_iter()
            .map(|(partition, row)| (partition, row.recent_commits()))
            .collect();
        self.time.observe(self.newest.stamp);
        self.start_from_views(&store);
        self.compactor.start();
        self.store = Some(store);
    }

    /// Publishes a view of the store with every head.
    pub(super) fn start_from_views(&self, store: &Arc<Store>) {
        self.views.publish(
            store,
            self.partitions
                .iter()
                .map(|(partition, recent_commits)| (*partition, Some(recent_commits.head()))),
        );
    }
}

/// If the content of the store was replaced and nobody has taken note of the issued numbers since: lets no partition count from a lower one.
fn leave_out_issued(store_dir: &StoreDir, store: &Store, found: &mut Found) -> Result<(), OpenError> {
    let issued = Issued::read(store_dir.path()).map_err(crate::store_dir::io_error(
        "reading the numbers that were issued",
        store_dir.path(),
    ))?;
    match issued {
        Some(issued) => store
            .raise_heads(found, issued.lsn)
            .map_err(|error| open_error(store_dir.store_path(), error)),
        None => Ok(()),
    }
}

/// Compares a store with its watermark, and returns the watermark to continue with.
fn check_watermark(
    store_dir: &StoreDir,
    watermark: Option<DurableWatermark>,
    found: &Found,
    accept_data_loss: bool,
) -> Result<DurableWatermark, OpenError> {
    let loss = match &watermark {
        None => Some(OpenError::Corrupt(
            "the durable watermark is missing or damaged; accept_data_loss opens without it".into(),
        )),
        Some(watermark) => missing(watermark.position().numbers, found.numbers),
    };
    let mut watermark = match (loss, watermark) {
        (None, Some(watermark)) => return Ok(watermark),
        (Some(loss), _) if !accept_data_loss => return Err(loss),
        (loss, watermark) => {
            let loss = loss.map(|loss| loss.to_string());
            tracing::warn!(loss, "the store is opened although data may be lost");
            watermark.map_or_else(|| store_dir.new_watermark(), Ok)?
        }
    };
    let written = watermark.write(Position {
        numbers: found.numbers,
        time: watermark.position().time,
    });
    written.map_err(crate::store_dir::io_error(
        "writing the durable watermark",
        store_dir.path(),
    ))?;
    Ok(watermark)
}

/// The error, if a store ends before its watermark.
pub(super) fn missing(watermark: Numbers, found: Numbers) -> Option<OpenError> {
    let short = watermark
        .into_iter()
        .zip(found)
        .find(|(expected, found)| found < expected);
    short.map(|(expected, found)| OpenError::LostCommits { expected, found })
}
