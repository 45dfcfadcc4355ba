//! Claims about server time (TTL-202).

use bolide_model::{Lsn, UnixMillis};

use super::test_engine::{PARTITION, START};
use super::{EngineFixture, TestEngine};
use crate::{Batch, Outcome};

/// If the clock goes back, server time stands still until the clock has caught up.
pub async fn server_time_never_runs_back(fixture: &dyn EngineFixture) {
    let engine = TestEngine::new(fixture);
    let before = engine.time();
    assert!(before.lo <= before.hi);
    engine.clock.advance(-60_000);
    let after = engine.time();
    assert!(
        after.lo >= before.lo && after.hi >= before.hi,
        "before={before:?} after={after:?}"
    );
    engine.clock.advance(120_000);
    assert!(engine.time().hi >= UnixMillis(START.0 + 60_000));
}

/// A commit with a stamp in the future moves server time forward: nothing is stamped before it afterwards.
pub async fn server_time_is_not_below_a_commit(fixture: &dyn EngineFixture) {
    let engine = TestEngine::with_partition(fixture).await;
    let stamp = UnixMillis(START.0 + 5_000);
    let batch = Batch {
        stamp,
        ..engine.batch(Lsn(0), vec![], vec![])
    };
    assert!(matches!(engine.commit(PARTITION, batch).await, Ok(Outcome::Done(_))));
    assert!(engine.time().hi >= stamp);
}
