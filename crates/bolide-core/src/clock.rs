//! Server time for requests and commits.

use std::time::Duration;

use bolide_model::{Error, ErrorKind, Result, UnixMillis};
use bolide_storage::Engine;

/// Longest wait for an interval to leave a second's boundary behind. An engine whose clock is less certain than this cannot serve.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// Server time, with its second certain: an interval around a second's boundary is waited out (design §3), since nodes could
/// otherwise disagree on what expires in that second (TTL-050). On one machine there is nothing to wait for.
///
/// # Errors
/// `Unavailable` if the engine's clock stays uncertain.
pub(crate) async fn exact_now(engine: &dyn Engine) -> Result<UnixMillis> {
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
