//! Writes items to a container, many at the same time, in an order that keeps the last of several versions of one item the last.
//!
//! ```text
//!   source ──▶ [`Batches`]: one for each range and lane ──▶ [`Lane`]s: threads, one request at a time ──▶ server
//!                                 [`Ledger`]: which items are done ◀──────┘
//! ```
//!
//! An item's lane depends on its partition key and id, so that of two versions of an item in a file the second is written after the first.

mod batches;
mod lane;
mod ledger;

use std::path::Path;
use std::sync::mpsc;

use parking_lot::RwLock;

use self::batches::Batches;
use self::lane::Lane;
use self::ledger::Ledger;
pub(crate) use self::ledger::{Acknowledged, Counts};
use crate::client::Client;
use crate::container::{Container, Ranges};
use crate::failure::{Failure, Result};
use crate::input::Position;
use crate::item::Item;

/// Requests at the same time.
const LANES: usize = 48;
/// Items and bytes that are sent or wait in a lane: more make no lane faster.
const SENT_ITEMS: usize = LANES * 250;
const SENT_BYTES: usize = 32 * 1024 * 1024;
/// Items between the first that is not done and the last that was read.
const WINDOW_ITEMS: u64 = 200_000;

/// What to do with an item that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnConflict {
    /// Name it and end.
    Fail,
    /// Leave it as it is.
    Skip,
    /// Replace it.
    Replace,
}

/// An item to write.
pub(crate) struct Incoming {
    pub item: Item,
    /// The item as JSON.
    pub text: Vec<u8>,
    /// Where it is in its file.
    pub start: Position,
    /// Where the file goes on after it.
    pub end: Position,
    /// Whether an earlier run may have written it: then an item with the same content is no conflict.
    pub may_be_own: bool,
}

/// Items in order.
pub(crate) trait Source {
    /// The next item; `None` at the end.
    fn next(&mut self) -> Result<Option<Incoming>>;

    /// Is told what is done, before the item with the number `next` is sent. Returns the number before which it wants to be told again.
    fn checkpoint(&mut self, done: Acknowledged, next: u64) -> Result<u64>;
}

/// Where and how items are written.
pub(crate) struct Target<'a> {
    pub client: &'a Client,
    pub container: &'a Container,
    pub on_conflict: OnConflict,
    /// The file that they are from, for messages.
    pub file: Option<&'a Path>,
}

impl Target<'_> {
    /// Names a place in the file.
    pub fn place(&self, at: Position) -> String {
        match self.file {
            Some(file) => format!("{}: line {}, column {}: ", file.display(), at.line, at.column),
            None => format!("{}: ", self.container.name),
        }
    }
}

/// Writes all items of a source; the first has the number of `from`.
///
/// # Errors
/// The first failure of the source or of a write; what was done until then is in the second part.
pub(crate) fn run(
    target: &Target<'_>,
    source: &mut dyn Source,
    from: Acknowledged,
) -> (Result<()>, Acknowledged, Counts) {
    let ledger = Ledger::new(from);
    let fed = Ranges::read(target.client, &target.container.name).and_then(|ranges| {
        let shared = RwLock::new(ranges.clone());
        std::thread::scope(|scope| {
            let mut lanes = Vec::with_capacity(LANES);
            for _ in 0..LANES {
                let (sender, batches) = mpsc::channel();
                let lane = Lane::new(target, &ledger, &shared);
                scope.spawn(move || lane.run(&batches));
                lanes.push(sender);
            }
            let mut batches = Batches::new(ranges, lanes);
            let fed = feed(target, source, &mut batches, &ledger, from.count);
            // What comes before an error of the source is written.
            batches.send_all(&ledger);
            // Lanes end when there are no more batches.
            drop(batches);
            fed
        })
    });
    let (done, counts, failure) = ledger.close();
    let outcome = match (fed, failure) {
        (Err(fed), Some(failure)) if fed.is_of_other() => Err(failure),
        (Ok(()), Some(failure)) => Err(failure),
        (fed, _) => fed,
    };
    (outcome, done, counts)
}

fn feed(
    target: &Target<'_>,
    source: &mut dyn Source,
    batches: &mut Batches,
    ledger: &Ledger,
    first: u64,
) -> Result<()> {
    let mut number = first;
    let mut checkpoint = first;
    while let Some(incoming) = source.next()? {
        if number >= checkpoint {
            checkpoint = source.checkpoint(ledger.acknowledged(), number)?;
        }
        let operation = operation(target, incoming, number)?;
        ledger.begin(operation.end);
        batches.add(operation, ledger);
        number += 1;
        if !ledger.wait_for_room(SENT_ITEMS, SENT_BYTES) {
            return Err(Failure::of_other());
        }
        if number - ledger.acknowledged().count > WINDOW_ITEMS {
            batches.send_all(ledger);
            ledger.wait_until_done(number - WINDOW_ITEMS / 2);
        }
    }
    batches.send_all(ledger);
    if !ledger.wait_until_done(number) {
        return Err(Failure::of_other());
    }
    source.checkpoint(ledger.acknowledged(), number).map(drop)
}

/// A write of one item.
pub(crate) struct Operation {
    pub number: u64,
    pub id: String,
    pub key: bolide_model::partition_key::PartitionKey,
    pub epk: bolide_model::epk::Epk,
    pub text: Vec<u8>,
    pub start: Position,
    pub end: Position,
    pub may_be_own: bool,
}

fn operation(target: &Target<'_>, incoming: Incoming, number: u64) -> Result<Operation> {
    let Some(id) = incoming.item.get("id").and_then(|id| id.as_str()) else {
        return Err(Failure::new(format!(
            "{}an item needs an `id` that is a string",
            target.place(incoming.start)
        )));
    };
    let key = target.container.key_of(&incoming.item);
    Ok(Operation {
        number,
        id: id.to_owned(),
        epk: bolide_model::epk::Epk::of(&target.container.key, &key),
        key,
        text: incoming.text,
        start: incoming.start,
        end: incoming.end,
        may_be_own: incoming.may_be_own,
    })
}
