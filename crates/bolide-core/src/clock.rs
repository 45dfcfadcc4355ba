//! Server time for requests and commits.
//!
//! A second is made durable before any item is found live or expired by it (TTL-203): a crash, with the wall clock set back meanwhile, must not
//! bring back items that were seen expired. That is one small write for each second with requests. While requests follow each other, users do not
//! wait for it, because the background does it shortly before the second begins (`crate::background`).

use std::time::Duration;

use bolide_model::{Error, ErrorKind, Result, UnixMillis};
use bolide_storage::Engine;

/// Maximum time to wait until the clock's interval no longer contains a second's boundary. An engine whose clock is less certain cannot serve.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// How long before a second begins it is made durable: a write to the disk takes a few milliseconds. If the server crashes in this time, server
/// time may stand still for the rest of it after the restart, which is less than a restart takes.
pub(crate) const AHEAD: Duration = Duration::from_millis(50);

/// Returns server time whose second is certain and durable. If the clock's interval contains a second's boundary, waits until it no longer does
/// (design §3), because nodes could otherwise disagree on what expires in that second (TTL-050). On one machine only making the second durable
/// takes time. If that fails, reads still work: a disk that can no longer be written must not stop them.
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

/// Makes server time durable up to `until`, if it is not yet. If that fails, the engine logs the reason, and requests continue.
pub(crate) async fn make_durable(engine: &dyn Engine, until: UnixMillis) {
    if engine.durable_time() >= until {
        return;
    }
    if let Err(error) = engine.make_time_durable(until).await {
        tracing::debug!(%error, "server time could not be made durable");
    }
}

/// Returns the time that may be made durable in advance at `now`.
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
