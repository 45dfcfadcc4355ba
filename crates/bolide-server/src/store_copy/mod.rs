//! `bolide copy` with `--to-store` or `--to-data-dir`: moves a whole store, while it is in use.
//!
//! ```text
//!   begin ─▶ all rows, page by page ─▶ changed rows, until few are left ─▶ seal ─▶ the last changed rows ─▶ check ─▶ finish ─▶ the target can be opened
//!            writes go on ····················································· refused for a moment ······· moved
//! ```
//!
//! The source is asked through its admin API (`bolide_core`'s `admin::copies` is the other side). The target is written row by row as an engine, without an
//! account, and so has the same resource ids, etags, times and log sequence numbers. Its last commit takes away the row by which a server recognises an
//! unfinished copy. Before that the source is sealed for good, so there is no moment in which both are written.

mod partition;
mod source;
mod target;

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bolide_core::{PartitionId, SealedPartition};
use bolide_model::time::Monotonic;

use self::source::Source;
use self::target::Target;
pub use self::target::TargetPlace;
use crate::admin_client::AdminClient;
use crate::server::Failure;

/// Number of changed rows that may be left for the time in which writes are refused.
const FEW_ROWS: u64 = 200;
/// How often changed rows are copied to get below it, if much is written all the time.
const ROUNDS: usize = 32;
/// Number of attempts to seal a store in which settings are being changed.
const SEAL_TRIES: usize = 20;
/// Time between two of them.
const SEAL_PAUSE: Duration = Duration::from_millis(100);
/// For how long it is tried to make the target ready to be opened, and the time between two attempts.
const COMPLETE_FOR: Duration = Duration::from_secs(60);
const COMPLETE_PAUSE: Duration = Duration::from_secs(1);
/// How often the lease of the seal is renewed, which lasts 20 seconds.
const RENEW_INTERVAL: Duration = Duration::from_secs(5);

/// What was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// Partitions, with that of the catalog.
    pub partitions: usize,
    /// Items, with those that have expired and are not purged yet.
    pub items: u64,
    /// For how long writes were refused.
    pub sealed: Duration,
}

/// Copies the store of a server to an empty place. With `unseal` the store is written on afterwards; otherwise it has moved.
///
/// # Errors
/// Why there is no copy. The source is then written on, as far as it can be told so, and the target cannot be opened. But if the source was sealed for good and
/// only the last commits of the target failed, it stays sealed, perhaps with a target that can be opened, as the line says.
pub fn run(from: AdminClient, to: &TargetPlace, unseal: bool) -> Result<Moved, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("cannot start threads: {error}")))?;
    runtime.block_on(async {
        to.check_empty()?;
        let source = Arc::new(Source::begin(from).await?);
        let copied = copy(&source, to, unseal).await;
        if copied.is_err() {
            source.end().await;
        }
        let mut copied = copied?;
        complete(&mut copied, unseal).await?;
        Ok(Moved {
            partitions: copied.partitions.len(),
            items: copied.partitions.iter().filter_map(|partition| partition.items).sum(),
            sealed: copied.sealed,
        })
    })
}

/// A target that has everything. The source has ended the copy.
struct Copied {
    target: Target,
    partitions: Vec<SealedPartition>,
    /// For how long writes were refused.
    sealed: Duration,
}

async fn copy(source: &Arc<Source>, to: &TargetPlace, unseal: bool) -> Result<Copied, Failure> {
    let clock = Monotonic::system();
    let mut target = Target::open(to, source.time()).await?;
    for _ in 0..ROUNDS {
        let changed = copy_round(source, &mut target).await?;
        if changed <= FEW_ROWS {
            break;
        }
    }
    let sealed_at = clock.now();
    let sealed = seal(source, &clock).await?;
    let renewals = Renewals::start(source.clone(), clock.clone());
    let finished = finish(source, &mut target, &sealed, unseal).await;
    renewals.stop().await;
    Ok(Copied {
        target,
        partitions: finished?,
        sealed: clock.since(sealed_at),
    })
}

/// Makes the target ready to be opened. The source may be sealed for good already, so it is tried for some time.
async fn complete(copied: &mut Copied, unseal: bool) -> Result<(), Failure> {
    let clock = Monotonic::system();
    let begun = clock.now();
    while let Err(error) = copied.target.finish(&copied.partitions).await {
        if clock.since(begun) >= COMPLETE_FOR {
            let source = match unseal {
                true => "the old store is written on",
                false => {
                    "the old store is sealed for good: see first whether the target can be opened, and only if it cannot, remove it and run `bolide unseal`"
                }
            };
            return Err(Failure::new(format!("{error}; {source}")));
        }
        clock.sleep(COMPLETE_PAUSE).await;
    }
    if let Err(error) = copied.target.close().await {
        // Everything is committed. If this cannot be said either, nothing is lost.
        let _ = writeln!(
            std::io::stderr(),
            "the target is complete, but could not be closed: {error}"
        );
    }
    Ok(())
}

/// Copies new partitions, and what has changed in the others. Returns how many rows have changed.
async fn copy_round(source: &Arc<Source>, target: &mut Target) -> Result<u64, Failure> {
    let partitions = source.partitions().await?;
    copy_partitions(source, target, &partitions).await
}

async fn copy_partitions(
    source: &Arc<Source>,
    target: &mut Target,
    partitions: &[PartitionId],
) -> Result<u64, Failure> {
    target.remove_others(partitions).await?;
    let mut changed = 0;
    for id in partitions {
        changed += target.partition(*id).await?.bring_up_to_date(source).await?;
    }
    Ok(changed)
}

/// Seals the store. Returns its partitions.
async fn seal(source: &Arc<Source>, clock: &Monotonic) -> Result<Vec<SealedPartition>, Failure> {
    for _ in 1..SEAL_TRIES {
        match source.seal().await {
            // Settings are being changed, or the store is away for a moment.
            Err(refused) if refused.status == Some(503) => clock.sleep(SEAL_PAUSE).await,
            sealed => return Ok(sealed?),
        }
    }
    Ok(source.seal().await?)
}

/// Copies the last changes of a sealed store, checks that everything is there, and ends the copy at the source.
async fn finish(
    source: &Arc<Source>,
    target: &mut Target,
    sealed: &[SealedPartition],
    unseal: bool,
) -> Result<Vec<SealedPartition>, Failure> {
    let partitions: Vec<PartitionId> = sealed.iter().map(|partition| partition.id).collect();
    // Nothing changes any more, so this ends.
    while copy_partitions(source, target, &partitions).await? > 0 {}
    for partition in sealed {
        target.check(partition).await?;
    }
    source.finish(unseal).await
}

/// Renews the lease of the seal until it is stopped.
struct Renewals {
    is_over: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
}

impl Renewals {
    fn start(source: Arc<Source>, clock: Monotonic) -> Renewals {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let task = tokio::spawn(async move {
            loop {
                clock.sleep(RENEW_INTERVAL).await;
                if over.load(Ordering::SeqCst) {
                    return;
                }
                // If it fails, the end of the copy finds out whether the seal still stands.
                let _ = source.renew().await;
            }
        });
        Renewals { is_over, task }
    }

    async fn stop(self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.task.abort();
        let _ = self.task.await;
    }
}
