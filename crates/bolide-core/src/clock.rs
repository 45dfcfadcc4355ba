//! Server time for requests and commits.
//!
//! A second by which anything is judged is made durable first (TTL-203): a crash, and a wall clock that is set back meanwhile, must not
//! bring back what was seen expired. That is one small write in a second with requests. Users do not wait for it where requests follow
//! each other, because the background does it shortly before the second begins (`crate::background`).

use std::time::Duration;

use bolide_model::{Error, ErrorKind, Result, UnixMillis};
use bolide_storage::Engine;

/// Longest wait for an interval to leave a second's boundary behind. An engine whose clock is less certain than this cannot serve.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// How long before a second begins it is made durable: a write to the disk takes a few milliseconds. After a crash in this time, server
/// time may stand still for the rest of it, which is less than a restart takes.
pub(crate) const AHEAD: Duration = Duration::from_millis(50);

/// Server time, with its second certain and durable: an interval around a second's boundary is waited out (design §3), since nodes could
/// otherwise disagree on what expires in that second (TTL-050). On one machine there is nothing to wait for, but what makes the second
/// durable. Where that fails, reads go on: a disk that cannot be written any more must not bring them down.
///
/// # Errors
/// `Unavailable` if the engine's clock stays uncertain.
pub(crate) async fn exact_now(engine: &dyn Engine) -> Result<UnixMillis> {
    let now = certain_now(engine).await?;
    if engine.durable_time().seconds() < now.seconds() {
        make_durable(engine, now).await;
    }
    Ok(now)
}

/// Makes server time durable up to `until`, if it is not. The engine logs why it could not; requests go on.
pub(crate) async fn make_durable(engine: &dyn Engine, until: UnixMillis) {
    if engine.durable_time() >= until {
        return;
    }
    if let Err(error) = engine.make_time_durable(until).await {
        tracing::debug!(%error, "server time could not be made durable");
    }
}

/// What may be made durable at `now`, ahead of the time.
pub(crate) fn ahead_of(now: UnixMillis) -> UnixMillis {
    UnixMillis(now.0.saturating_add(AHEAD.as_millis() as i64))
}

async fn certain_now(engine: &dyn Engine) -> Result<UnixMillis> {
    let mut waited = Duration::ZERO;
    loop {
        let span = engine.time();
        if span.lo.seconds() == span.hi.seconds() {
            return Ok(UnixMillis(span.lo.0 + (span.hi.0 - span.lo.0) / 2));
        }
        if waited >= LONGEST_WAIT {
            return Err(Error::new(
                ErrorKind::Unavailable,
                "the storage engine's clock is too uncertain to serve",
            ));
        }
        let pause = Duration::from_millis((span.hi.0 - span.lo.0).clamp(1, 10) as u64);
        tokio::time::sleep(pause).await;
        waited += pause;
    }
}
