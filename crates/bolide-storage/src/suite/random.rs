//! Random histories, compared with a plain map.

use std::collections::BTreeMap;
use std::sync::Arc;

use bolide_model::{Lsn, UnixMillis};
use bytes::Bytes;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::test_engine::START;
use super::{EngineFixture, TestEngine};
use crate::{
    Batch, EngineError, Head, HeldSnapshot, HoldError, HomeId, JointOutcome, Key, Outcome, PartitionId, Put,
    ReadRequest, ReadResponse, Scan, Space,
};

/// Number of histories, and operations of the longest.
const HISTORIES: usize = 24;
const OPERATIONS: usize = 60;
/// Number of partitions that a history works on.
const SLOTS: usize = 3;
/// The home of these partitions.
const HOME: HomeId = HomeId(1);

/// A key, its space included, as the model holds it.
type PlainKey = (Space, Vec<u8>);
/// Everything in a partition, as the model holds it.
type Rows = BTreeMap<PlainKey, Vec<u8>>;
/// Keys to put, and keys to delete.
type Changes = BTreeMap<PlainKey, Option<Vec<u8>>>;

#[derive(Debug, Clone)]
enum Operation {
    Create(usize),
    /// A removed partition is never created again: the slot gets a new one.
    Remove(usize),
    /// Rows to put or delete, and how far the base is behind the head.
    Commit(usize, Changes, u64),
    /// Commits of several slots, all or none.
    CommitTogether(BTreeMap<usize, (Changes, u64)>),
    Read(usize, Vec<PlainKey>, Scan),
    /// Holds the home of all slots, replacing the snapshot held before.
    Hold,
    ReadHeld(usize, Vec<PlainKey>, Scan),
    MoveClock(i64),
    Restart,
}

/// For random histories, restarts included, the engine gives the same results as a plain map.
///
/// Seeds are fixed; a failing history is shrunk before it is shown.
pub async fn random_histories_agree_with_a_plain_map(fixture: &dyn EngineFixture) {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[42; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let histories = proptest::collection::vec(operation(), 1..OPERATIONS);
    for round in 0..HISTORIES {
        let mut history = histories.new_tree(&mut runner).expect("the strategy rejects nothing");
        // Each run uses new partitions, because durable engines keep data from run to run.
        let mut run = round as u32 * 1_000_000;
        let Err(mut why) = play(fixture, &history.current(), run).await else {
            continue;
        };
        let mut smallest = history.current();
        let mut can_go_on = history.simplify();
        while can_go_on && run % 1_000_000 < 300_000 {
            run += 1000;
            can_go_on = match play(fixture, &history.current(), run).await {
                Ok(()) => history.complicate(),
                Err(reason) => {
                    (why, smallest) = (reason, history.current());
                    history.simplify()
                }
            };
        }
        panic!("{why}\nafter {smallest:#?}");
    }
}

fn operation() -> impl Strategy<Value = Operation> {
    let slot = || 0..SLOTS;
    let rows = || proptest::collection::btree_map((space(), key()), proptest::option::of(value()), 0..8);
    let behind = || prop_oneof![9 => Just(0u64), 1 => 1..3u64];
    let gets = || proptest::collection::vec((space(), key()), 0..5);
    let several = proptest::collection::btree_map(slot(), (rows(), behind()), 0..=SLOTS);
    prop_oneof![
        2 => slot().prop_map(Operation::Create),
        1 => slot().prop_map(Operation::Remove),
        12 => (slot(), rows(), behind()).prop_map(|(slot, rows, behind)| Operation::Commit(slot, rows, behind)),
        4 => several.prop_map(Operation::CommitTogether),
        12 => (slot(), gets(), scan()).prop_map(|(slot, gets, scan)| Operation::Read(slot, gets, scan)),
        1 => Just(Operation::Hold),
        6 => (slot(), gets(), scan()).prop_map(|(slot, gets, scan)| Operation::ReadHeld(slot, gets, scan)),
        1 => (-5_000..5_000i64).prop_map(Operation::MoveClock),
        1 => Just(Operation::Restart),
    ]
}

fn space() -> impl Strategy<Value = Space> {
    // With two spaces, collisions are more likely than with five.
    prop_oneof![Just(Space::Item), Just(Space::Log)]
}

/// A few keys, the edges among them, so that operations hit what earlier ones wrote.
fn key() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255)], 0..3)
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..20)
}

fn scan() -> impl Strategy<Value = Scan> {
    let bounds = (key(), proptest::option::of(key()));
    (space(), bounds, any::<bool>(), 0..6usize, 0..60usize, any::<bool>()).prop_map(
        |(space, (from, to), reverse, max_rows, max_bytes, keys_only)| Scan {
            from: from.into(),
            to: to.map(Bytes::from),
            reverse,
            max_rows,
            max_bytes,
            keys_only,
            ..Scan::whole(space)
        },
    )
}

/// The expected content of the engine.
struct Model {
    slots: [Slot; SLOTS],
    /// A held snapshot, and the content of the slots when it was taken.
    held: Option<(Arc<dyn HeldSnapshot>, [Slot; SLOTS])>,
}

#[derive(Clone)]
struct Slot {
    partition: PartitionId,
    content: Option<(Head, Rows)>,
}

async fn play(fixture: &dyn EngineFixture, history: &[Operation], run: u32) -> Result<(), String> {
    let mut engine = TestEngine::new(fixture);
    let slot = |slot: usize| Slot {
        partition: PartitionId::in_home(HOME, 2 + run + slot as u32).expect("home 0 is another one"),
        content: None,
    };
    let mut model = Model {
        slots: [slot(0), slot(1), slot(2)],
        held: None,
    };
    for (at, operation) in history.iter().enumerate() {
        match operation {
            Operation::Restart if fixture.is_durable() => {
                let now = engine.clock.now();
                model.held = None;
                engine = engine.restart(fixture, now).await;
            }
            Operation::Restart => {}
            Operation::MoveClock(by_ms) => {
                engine.clock.advance(*by_ms);
            }
            Operation::Create(slot) => model.create(*slot, &engine).await,
            Operation::Remove(slot) => model.remove(*slot, &engine).await,
            Operation::Commit(slot, rows, behind) => {
                let done = model.commit(*slot, rows, *behind, &engine).await;
                done.map_err(|why| format!("operation {at}: {why}"))?;
            }
            Operation::CommitTogether(parts) => {
                let done = model.commit_together(parts, &engine).await;
                done.map_err(|why| format!("operation {at}: {why}"))?;
            }
            Operation::Read(slot, gets, scan) => {
                let Slot { partition, content } = &model.slots[*slot];
                let response = engine.try_read(*partition, request_of(gets, scan)).await;
                let read = check_response(*partition, content.as_ref(), response, gets, scan);
                read.map_err(|why| format!("operation {at}: {why}"))?;
            }
            Operation::Hold => model.held = Some((engine.hold(HOME).await, model.slots.clone())),
            Operation::ReadHeld(slot, gets, scan) => {
                let read = model.read_held(*slot, gets, scan, &engine).await;
                read.map_err(|why| format!("operation {at}: {why}"))?;
            }
        }
    }
    engine.engine.close().await.map_err(|error| error.to_string())
}

impl Model {
    async fn create(&mut self, slot: usize, engine: &TestEngine) {
        let slot = &mut self.slots[slot];
        let first = Head::first(UnixMillis(START.0 - 1));
        engine.create_at(slot.partition, first).await;
        slot.content.get_or_insert_with(|| (first, BTreeMap::new()));
    }

    async fn remove(&mut self, slot: usize, engine: &TestEngine) {
        let slot = &mut self.slots[slot];
        engine.remove(slot.partition).await;
        if slot.content.take().is_some() {
            slot.partition.0 += SLOTS as u64;
        }
    }

    async fn commit(&mut self, slot: usize, rows: &Changes, behind: u64, engine: &TestEngine) -> Result<(), String> {
        let slot = &mut self.slots[slot];
        let mut batch = slot.batch(rows, behind, engine);
        if engine.engine.checks_new_keys() {
            let puts = batch.puts.iter().map(|put| &put.key);
            batch.new_keys = puts.filter(|key| key.space == Space::Log).cloned().collect();
        }
        let expected = match slot.head() {
            None => Err(EngineError::NoPartition(slot.partition)),
            Some(head) if batch.base != head.lsn => Ok(Outcome::Stale),
            Some(_) if batch.new_keys.iter().any(|key| slot.has(key)) => Ok(Outcome::Exists),
            Some(_) => Ok(Outcome::Done(batch.head())),
        };
        let next = batch.head();
        same("commit", &engine.commit(slot.partition, batch).await, &expected)?;
        if matches!(expected, Ok(Outcome::Done(_))) {
            slot.apply(rows, next);
        }
        Ok(())
    }

    async fn commit_together(
        &mut self,
        parts: &BTreeMap<usize, (Changes, u64)>,
        engine: &TestEngine,
    ) -> Result<(), String> {
        let batches: Vec<_> = parts
            .iter()
            .map(|(slot, (rows, behind))| {
                let slot = &self.slots[*slot];
                (slot.partition, slot.batch(rows, *behind, engine))
            })
            .collect();
        let heads: Vec<_> = parts.keys().map(|slot| self.slots[*slot].head()).collect();
        let missing = heads.iter().position(Option::is_none);
        let mut bases = batches.iter().zip(&heads);
        let expected = match missing {
            Some(at) => Err(EngineError::NoPartition(batches[at].0)),
            None if bases.any(|((_, batch), head)| head.is_some_and(|head| head.lsn != batch.base)) => {
                Ok(JointOutcome::Stale)
            }
            None => Ok(JointOutcome::done(&batches)),
        };
        same("joint commit", &engine.commit_together(batches).await, &expected)?;
        if let Ok(JointOutcome::Done(heads)) = expected {
            for ((slot, (rows, _)), head) in parts.iter().zip(heads) {
                self.slots[*slot].apply(rows, head);
            }
        }
        Ok(())
    }

    async fn read_held(
        &mut self,
        slot: usize,
        gets: &[PlainKey],
        scan: &Scan,
        engine: &TestEngine,
    ) -> Result<(), String> {
        let Some((held, slots)) = &self.held else { return Ok(()) };
        let Slot { partition, content } = &slots[slot];
        match engine
            .read_held(held.as_ref(), *partition, request_of(gets, scan))
            .await
        {
            Ok(response) => check_response(*partition, content.as_ref(), Ok(response), gets, scan),
            Err(HoldError::Engine(error)) => check_response(*partition, content.as_ref(), Err(error), gets, scan),
            Err(HoldError::Expired) => {
                self.held = None;
                Ok(())
            }
        }
    }
}

impl Slot {
    fn head(&self) -> Option<Head> {
        self.content.as_ref().map(|(head, _)| *head)
    }

    fn has(&self, key: &Key) -> bool {
        let rows = self.content.as_ref().map(|(_, rows)| rows);
        rows.is_some_and(|rows| rows.contains_key(&(key.space, key.bytes.to_vec())))
    }

    /// A batch that makes these changes, with a base `behind` commits before the head.
    fn batch(&self, rows: &Changes, behind: u64, engine: &TestEngine) -> Batch {
        let head = self.head().map_or(Lsn(0), |head| head.lsn);
        let of = |(space, bytes): &PlainKey| Key::new(*space, bytes.clone());
        let put = |(key, value): (&PlainKey, &Option<Vec<u8>>)| {
            value.as_ref().map(|value| Put {
                key: of(key),
                value: value.clone().into(),
            })
        };
        let puts = rows.iter().filter_map(put).collect();
        let deletes = rows
            .iter()
            .filter(|(_, value)| value.is_none())
            .map(|(key, _)| of(key))
            .collect();
        engine.batch(Lsn(head.0.saturating_sub(behind)), puts, deletes)
    }

    fn apply(&mut self, rows: &Changes, next: Head) {
        let Some((head, map)) = &mut self.content else { return };
        *head = next;
        for (key, value) in rows {
            match value {
                Some(value) => map.insert(key.clone(), value.clone()),
                None => map.remove(key),
            };
        }
    }
}

fn request_of(gets: &[PlainKey], scan: &Scan) -> ReadRequest {
    ReadRequest {
        gets: gets
            .iter()
            .map(|(space, bytes)| Key::new(*space, bytes.clone()))
            .collect(),
        scans: vec![scan.clone()],
        ..ReadRequest::default()
    }
}

/// Compares a response with the model.
fn check_response(
    partition: PartitionId,
    content: Option<&(Head, Rows)>,
    response: Result<ReadResponse, EngineError>,
    gets: &[PlainKey],
    scan: &Scan,
) -> Result<(), String> {
    let Some((head, map)) = content else {
        return same("read", &response.map(drop), &Err(EngineError::NoPartition(partition)));
    };
    let response = response.map_err(|error| error.to_string())?;
    same("head", &response.head, head)?;
    let expected: Vec<_> = gets.iter().map(|key| map.get(key).cloned().map(Bytes::from)).collect();
    same("gets", &response.gets, &expected)?;
    let page = &response.pages[0];
    same("page", &(page.rows.clone(), page.more), &page_of(map, scan))
}

/// The expected page of a scan, straight from the definition.
fn page_of(map: &Rows, scan: &Scan) -> (Vec<(Bytes, Bytes)>, bool) {
    let is_in_range = |key: &[u8]| key >= &scan.from[..] && scan.to.as_ref().is_none_or(|to| key < &to[..]);
    let mut range: Vec<_> = map
        .iter()
        .filter(|((space, key), _)| *space == scan.space && is_in_range(key))
        .collect();
    if scan.reverse {
        range.reverse();
    }
    let mut rows: Vec<(Bytes, Bytes)> = Vec::new();
    let mut bytes = 0;
    let total = range.len();
    for ((_, key), value) in range {
        if !rows.is_empty() && (rows.len() >= scan.max_rows || bytes >= scan.max_bytes) {
            break;
        }
        let value = if scan.keys_only {
            Bytes::new()
        } else {
            Bytes::from(value.clone())
        };
        bytes += key.len() + value.len();
        rows.push((Bytes::from(key.clone()), value));
    }
    let is_more = rows.len() < total;
    (rows, is_more)
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}: found {found:?}, expected {expected:?}"))
    }
}
