//! What one command reads: its time, and the collections that it has entered.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bolide_model::rid::ContainerRid;
use bolide_model::{Reason, RequestUnits, Result, UnixMillis, charge};
use parking_lot::Mutex;

use super::{Lifetime, OpenTransaction};
use crate::catalog::Catalog;
use crate::container::{Container, ContainerState, OwnedReadGuard, ReadPin};
use crate::items::Admission;
use crate::partition::Partition;
use crate::runtime::{RequestContext, Runtime};

/// How long a command waits for what another server has changed of a collection. It may be in other collections meanwhile, whose changes wait for it.
const SETTLE: Duration = Duration::from_secs(1);

/// The reads of one command (mongo.md §18.6): all are judged at one time, by one state of each collection, and the purge removes nothing that is still live
/// then. Dropping it lets changes of the collections continue.
pub struct ReadScope {
    now: UnixMillis,
    entered: Mutex<HashMap<ContainerRid, Entered>>,
    transaction: Option<Arc<OpenTransaction>>,
    /// Whether it is of a transaction or a snapshot, which have unsharded collections only.
    is_unsharded: bool,
    /// Present if the reads consume request units.
    admission: Option<Admission>,
    /// What they have consumed, for whoever asks.
    consumed: Consumed,
    /// Puts into force what another server has changed, if there may be one.
    catalog: Option<Arc<Catalog>>,
}

/// Request units that a command has consumed; its copies share one sum.
#[derive(Debug, Clone, Default)]
pub struct Consumed(Arc<Mutex<RequestUnits>>);

impl Consumed {
    /// Adds some.
    pub fn add(&self, units: RequestUnits) {
        let mut sum = self.0.lock();
        *sum += units;
    }

    /// Returns the sum.
    pub fn sum(&self) -> RequestUnits {
        *self.0.lock()
    }
}

struct Entered {
    guard: OwnedReadGuard,
    _pin: ReadPin,
    now: UnixMillis,
    /// Whether the start of a query was charged.
    is_queried: bool,
}

impl ReadScope {
    /// Creates a scope without collections whose reads consume no request units. `now`: the time of the command.
    pub fn new(now: UnixMillis) -> ReadScope {
        ReadScope {
            now,
            entered: Mutex::default(),
            transaction: None,
            is_unsharded: false,
            admission: None,
            consumed: Consumed::default(),
            catalog: None,
        }
    }

    /// The same, for a transaction or a snapshot that has not begun: sharded collections are refused.
    #[must_use]
    pub fn without_sharded(self) -> ReadScope {
        ReadScope {
            is_unsharded: true,
            ..self
        }
    }

    /// The same, which adds what it consumes to a sum.
    #[must_use]
    pub fn counted_by(self, consumed: Consumed) -> ReadScope {
        ReadScope { consumed, ..self }
    }

    /// Creates the scope of a user's command: its reads consume request units, and are refused while none are left.
    pub(crate) fn of_request(runtime: &Runtime, catalog: &Arc<Catalog>, ctx: &RequestContext) -> ReadScope {
        ReadScope {
            catalog: runtime.engine().is_shared().then(|| catalog.clone()),
            admission: (!ctx.is_admin).then(|| Admission::of(runtime, ctx)),
            ..ReadScope::new(ctx.now)
        }
    }

    /// Creates the scope of a command inside a transaction: it reads what the transaction reads.
    pub fn in_transaction(now: UnixMillis, transaction: Arc<OpenTransaction>) -> ReadScope {
        ReadScope {
            transaction: Some(transaction),
            ..ReadScope::new(now)
        }
    }

    pub(crate) fn transaction(&self) -> Option<&Arc<OpenTransaction>> {
        self.transaction.as_ref()
    }

    /// Enters a collection, if it is not entered yet. Returns its state, and the time at which it is judged.
    ///
    /// # Errors
    /// `NotFound` if it was removed; `Throttled` if its throughput is used up.
    pub(crate) async fn enter(&self, container: &Arc<Container>) -> Result<(Arc<ContainerState>, UnixMillis)> {
        if let Some(entered) = self.entered.lock().get(&container.rid()) {
            return Ok((entered.guard.state.clone(), entered.now));
        }
        match (self.enter_once(container).await, &self.catalog) {
            (Err(error), Some(catalog)) if error.is_of_changed_settings() => {
                let before = container.properties();
                let settled = tokio::time::timeout(SETTLE, catalog.settle(container)).await;
                if settled.is_err() || container.properties().id != before.id {
                    // The command names it by a name that it does not have any more.
                    return Err(error);
                }
                settled.unwrap_or(Ok(()))?;
                self.enter_once(container).await
            }
            (entered, _) => entered,
        }
    }

    async fn enter_once(&self, container: &Arc<Container>) -> Result<(Arc<ContainerState>, UnixMillis)> {
        let is_first = self.entered.lock().is_empty();
        let guard = match (&self.catalog, is_first) {
            // Two commands that each wait for a collection of the other would never end.
            (Some(_), false) => {
                let entering = tokio::time::timeout(SETTLE, container.enter_interruptible_owned());
                entering.await.map_err(|_| Reason::SettingsChanged)??
            }
            _ => container.enter_interruptible_owned().await?,
        };
        if self.is_unsharded && guard.state.shard_key().is_some() {
            return Err(Reason::OtherDatabase.into());
        }
        if let Some(admission) = &self.admission {
            let mut partitions = guard.state.layout.partitions.iter();
            partitions.try_for_each(|partition| admission.admit(partition, &guard.state))?;
        }
        let pin = container.pin_reads_at(self.now);
        // From here on the purge removes nothing that is live at `self.now`. What it has removed before had ended at the time of the newest commit.
        let mut now = self.now;
        // Nor does another server, once this one has told it of the registration; by then it removes what had ended before.
        let shared = guard
            .state
            .layout
            .partitions
            .first()
            .filter(|partition| partition.is_shared());
        if let Some(partition) = shared {
            now = now.max(partition.now().await?);
        }
        for partition in &guard.state.layout.partitions {
            now = now.max(partition.head().await?.stamp);
        }
        for partition in &guard.state.layout.partitions {
            partition.show_exactly(&guard.state.settings, now).await;
        }
        let state = guard.state.clone();
        let entered = Entered {
            guard,
            _pin: pin,
            now,
            is_queried: false,
        };
        self.entered.lock().insert(container.rid(), entered);
        Ok((state, now))
    }

    /// Charges a read of one document, or of none.
    pub(super) fn charge_read(&self, state: &ContainerState, partition: &Partition, bytes: usize) {
        self.charge(state, partition, charge::point_read(bytes));
    }

    /// Charges documents that a scan has read, and in each collection the start of a query before the first of them.
    pub(super) fn charge_scan(
        &self,
        container: &Container,
        (state, partition): (&ContainerState, &Partition),
        (documents, bytes): (usize, usize),
    ) {
        let is_queried = match self.entered.lock().get_mut(&container.rid()) {
            Some(entered) => std::mem::replace(&mut entered.is_queried, true),
            None => true,
        };
        let start = if is_queried {
            RequestUnits::ZERO
        } else {
            charge::QUERY_START
        };
        self.charge(state, partition, start + charge::query_work(documents, bytes, 0));
    }

    fn charge(&self, state: &ContainerState, partition: &Partition, units: RequestUnits) {
        if self.admission.is_some() {
            self.consumed.add(units);
        }
        if self.admission.is_some() && !state.pacing.count_only_load {
            partition.meter().lock().consume(self.now.seconds(), units);
        }
    }

    /// Tells whether a document that was read in an earlier scope is still live.
    ///
    /// # Errors
    /// `NotFound` if the collection was removed.
    pub async fn is_live(&self, container: &Arc<Container>, lifetime: &Lifetime) -> Result<bool> {
        if self.transaction.is_some() {
            return Ok(true);
        }
        let (state, now) = self.enter(container).await?;
        Ok(lifetime.lasts(&state.settings.horizon(now)))
    }
}
