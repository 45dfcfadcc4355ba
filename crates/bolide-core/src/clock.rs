//! Server time for requests and commits.
//!
//! A second is made durable before any item is found live or expired by it (TTL-203): a crash, with the wall clock set back meanwhile, must not
//! bring back items that were seen expired. That is one small write for each second with requests. While requests follow each other, users do not
//! wait for it, because the background does it shortly before the second begins (`crate::background`).
//!
//! Date rules end documents at a millisecond. What is judged by them is shown once the millisecond is durable (`Partition::show_exactly`), and while
//! such requests follow each other the background keeps [`EXACT_AHEAD`] durable in advance.

use std::time::Duration;

use bolide_model::{Error, ErrorKind, Result, UnixMillis};
use bolide_storage::Engine;

/// Maximum time to wait until the clock's interval no longer contains a second's boundary. An engine whose clock is less certain cannot serve.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// How long before a second begins it is made durable: a write to the disk takes a few milliseconds. If the server crashes in this time, server
/// time may stand still for the rest of it after the restart, which is less than a restart takes.
pub(crate) const AHEAD: Duration = Duration::from_millis(50);

/// How long in advance the background makes milliseconds durable while requests are judged by date rules: a small write for about each of these
/// intervals. Server time may stand still for as long after a crash.
pub(crate) const EXACT_AHEAD: Duration = Duration::from_millis(200);

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
    after(now, AHEAD)
}

/// Returns whether so little of the time that is durable in advance is left at `now` that the background should make more durable, for requests that
/// are judged by date rules.
pub(crate) fn is_exact_time_short(engine: &dyn Engine, now: UnixMillis) -> bool {
    engine.durable_time() < after(now, EXACT_AHEAD / 2)
}

/// Makes milliseconds durable in advance at `now`, for requests that are judged by date rules.
pub(crate) async fn keep_exact(engine: &dyn Engine, now: UnixMillis) {
    if is_exact_time_short(engine, now) {
        make_durable(engine, after(now, EXACT_AHEAD)).await;
    }
}

fn after(now: UnixMillis, duration: Duration) -> UnixMillis {
    UnixMillis(now.0.saturating_add(duration.as_millis() as i64))
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
