//! Work of commands that may take long, on the threads for queries.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bolide_core::Task;
use bolide_mql::Result;
use bolide_mql::context::Interrupt;

use crate::codes;
use crate::state::MongoState;

/// The longest time of a command without `maxTimeMS`. Cosmos DB ends requests after a minute, too (mongo.md §16).
const LONGEST: Duration = Duration::from_secs(60);

/// Runs work on a thread for queries. Dropping the future ends it.
///
/// # Errors
/// Those of the work; too many tasks run already; the server stops.
pub async fn run<T: Send + 'static>(
    state: &Arc<MongoState>,
    work: impl FnOnce(&Task) -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = state.account.run_task(LONGEST, move |task| Ok(work(task))).await;
    done.map_err(|error| codes::error(&error))?
}

/// Lets other tasks run between the steps of the work, and ends it when `command` or the task must end.
pub fn interrupt(task: &Task, command: Arc<dyn Interrupt>) -> Arc<dyn Interrupt> {
    Arc::new(TaskInterrupt {
        task: task.clone(),
        command,
        steps: AtomicU64::new(0),
    })
}

/// Number of steps between two checks of the task.
const STEPS: u64 = 64;

struct TaskInterrupt {
    task: Task,
    command: Arc<dyn Interrupt>,
    steps: AtomicU64,
}

impl Interrupt for TaskInterrupt {
    fn check(&self, steps: u64) -> Result<()> {
        self.command.check(steps)?;
        let before = self.steps.fetch_add(steps, Ordering::Relaxed);
        if before / STEPS == before.wrapping_add(steps) / STEPS {
            return Ok(());
        }
        self.task.check().map_err(|error| codes::error(&error))
    }
}
