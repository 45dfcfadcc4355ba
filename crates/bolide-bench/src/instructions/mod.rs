//! Operations to run under callgrind, which counts their instructions: see `cargo xtask instructions`.
//!
//! A process sets up a store, runs one operation a number of times, and ends. Of two such processes with different numbers, the difference of their instructions
//! divided by the difference of the numbers is the cost of one operation: everything else is the same in both, and cancels out.
//!
//! Clocks stand still and nothing works in the background, so that runs differ as little as possible.

mod store;

use clap::ValueEnum;
use http::StatusCode;

use self::store::{Contents, Store, WireStore};
use crate::query::data;
use crate::{Result, item};

/// Items of a store for operations on one item.
const FEW_ITEMS: u64 = 500;
/// Items that a filter reads.
const FILTERED_ITEMS: u64 = 1_000;
/// More items than a scan would read at once, so that an index is faster.
const INDEXED_ITEMS: u64 = 2_000;
/// Items that a step of the purge removes.
const ITEMS_OF_STEP: u64 = 10;
/// Maximum number of steps: all items must be there whatever the number, so that the set-up is the same.
const MAX_STEPS: u64 = 100;
/// Maximum number of creates, whose requests are all made before the first.
const MAX_CREATES: u64 = 1_000;

/// What to run.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The operation.
    #[arg(long, value_enum)]
    operation: Operation,
    /// How many times.
    #[arg(long)]
    times: u64,
}

/// The operations; on the memory engine unless they name another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Operation {
    /// Reads an item of 1 KB.
    PointRead,
    /// Replaces an item of 1 KB.
    PointWrite,
    /// The same on the embedded engine, without fsync.
    PointWriteLsm,
    /// A query with a filter that no index serves, over a thousand items of 1 KB.
    QueryFilter,
    /// A query that finds one of two thousand items by an index.
    IndexProbe,
    /// A query for the first twenty of two thousand items in the order of an index, whose entries have all that it selects.
    IndexOrder,
    /// Removes ten expired items.
    PurgeStep,
    /// Answers a signed request that reads an item of 1 KB.
    HttpRead,
    /// Answers a signed request that creates an item of 1 KB.
    HttpCreate,
    /// Answers a signed frame that reads an item of 1 KB, from the bytes of its head to those of the response.
    FrameRead,
}

/// Runs the operation.
pub fn run(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match options.operation {
            Operation::PointRead => point_reads(options.times).await,
            Operation::PointWrite => {
                point_writes(Store::in_memory(&Contents::few(FEW_ITEMS)).await?, options.times).await
            }
            Operation::PointWriteLsm => {
                let dir = tempfile::tempdir()?;
                point_writes(
                    Store::in_directory(dir.path(), &Contents::few(FEW_ITEMS)).await?,
                    options.times,
                )
                .await
            }
            Operation::QueryFilter => filters(options.times).await,
            Operation::IndexProbe => probes(options.times).await,
            Operation::IndexOrder => ordered(options.times).await,
            Operation::PurgeStep => purge_steps(options.times).await,
            Operation::HttpRead => wire_reads(options.times).await,
            Operation::HttpCreate => wire_creates(options.times).await,
            Operation::FrameRead => frame_reads(options.times).await,
        }
    })
}

async fn point_reads(times: u64) -> Result<()> {
    let store = Store::in_memory(&Contents::few(FEW_ITEMS)).await?;
    let reads: Vec<_> = ids().map(|id| store::read_of(&id)).collect::<Result<_>>()?;
    for read in in_turn(&reads, times) {
        store.read(read).await?;
    }
    Ok(())
}

async fn point_writes(store: Store, times: u64) -> Result<()> {
    let documents: Vec<_> = ids().map(|id| item::document(&id, None)).collect();
    for document in in_turn(&documents, times) {
        store.write(document).await?;
    }
    Ok(())
}

async fn filters(times: u64) -> Result<()> {
    let store = Store::in_memory(&Contents::orders(FILTERED_ITEMS, &[])).await?;
    for _ in 0..times {
        let query = "SELECT VALUE c.id FROM c WHERE c.customer.address.city = 'Oslo 1' AND c.total > 1000";
        let (_, retrieved) = store.query(query).await?;
        expect("items that the filter read", FILTERED_ITEMS, retrieved)?;
    }
    Ok(())
}

async fn probes(times: u64) -> Result<()> {
    let store = Store::in_memory(&Contents::orders(INDEXED_ITEMS, &["/created/?"])).await?;
    for number in 0..times {
        let created = data::FIRST_CREATED + number % INDEXED_ITEMS;
        let (rows, retrieved) = store
            .query_with(
                "SELECT * FROM c WHERE c.created = @created",
                &[("@created", created.into())],
            )
            .await?;
        expect("rows", 1, rows)?;
        expect("items that the query read through its index", 1, retrieved)?;
    }
    Ok(())
}

async fn ordered(times: u64) -> Result<()> {
    let store = Store::in_memory(&Contents::orders(INDEXED_ITEMS, &["/created/?"])).await?;
    let query = "SELECT TOP 20 c.id, c.created FROM c WHERE c.created >= @from ORDER BY c.created";
    for number in 0..times {
        let from = data::FIRST_CREATED + number % (INDEXED_ITEMS / 2);
        let (rows, retrieved) = store.query_with(query, &[("@from", from.into())]).await?;
        expect("rows", 20, rows)?;
        expect("items that the query read besides its entries", 0, retrieved)?;
    }
    Ok(())
}

async fn purge_steps(times: u64) -> Result<()> {
    at_most(MAX_STEPS, times)?;
    let store = Store::in_memory(&Contents::expiring(MAX_STEPS * ITEMS_OF_STEP)).await?;
    store.expire_all();
    for _ in 0..times {
        expect("purged items", ITEMS_OF_STEP, store.purge(ITEMS_OF_STEP).await?)?;
    }
    Ok(())
}

async fn wire_reads(times: u64) -> Result<()> {
    let store = WireStore::open(FEW_ITEMS).await?;
    let requests: Vec<_> = ids().map(|id| store.read(&id)).collect::<Result<_>>()?;
    for request in in_turn(&requests, times) {
        store.send(request.clone(), StatusCode::OK).await?;
    }
    Ok(())
}

async fn wire_creates(times: u64) -> Result<()> {
    at_most(MAX_CREATES, times)?;
    let store = WireStore::open(FEW_ITEMS).await?;
    let ids = (0..MAX_CREATES).map(|number| item::id(FEW_ITEMS + number));
    let requests: Vec<_> = ids.map(|id| store.create(&id)).collect::<Result<_>>()?;
    for request in in_turn(&requests, times) {
        store.send(request.clone(), StatusCode::CREATED).await?;
    }
    Ok(())
}

async fn frame_reads(times: u64) -> Result<()> {
    let store = WireStore::open(FEW_ITEMS).await?;
    let frames: Vec<_> = ids().map(|id| store.read_in_frame(&id)).collect();
    for frame in in_turn(&frames, times) {
        store.send_frame(frame).await?;
    }
    Ok(())
}

/// The ids of a store with few items.
fn ids() -> impl Iterator<Item = String> {
    (0..FEW_ITEMS).map(item::id)
}

/// The first `times` of what was prepared, which begins again at its end. What is prepared does not depend on `times`.
fn in_turn<T>(prepared: &[T], times: u64) -> impl Iterator<Item = &T> {
    (0..times as usize).map(|number| &prepared[number % prepared.len()])
}

fn at_most(most: u64, times: u64) -> Result<()> {
    match times <= most {
        true => Ok(()),
        false => Err(format!("at most {most} times").into()),
    }
}

/// An operation that does something else than its name says has no figure.
fn expect(what: &str, expected: u64, is: u64) -> Result<()> {
    match is == expected {
        true => Ok(()),
        false => Err(format!("{what}: {is}, not {expected}").into()),
    }
}
