//! The contract suite: the claims that every engine must pass.
//!
//! A claim is an `async fn(&dyn EngineFixture)`. [`engine_suite!`](crate::engine_suite) makes a test of each, from an engine's `tests/it/`:
//!
//! ```text
//! bolide_storage::engine_suite!(MyFixture::new());
//! ```
//!
//! Claims use a [`TestEngine`], which retries spurious conflicts, unknown outcomes and unavailable engines as the core does. So they also hold on
//! engines wrapped in [`crate::faults::FaultyEngine`].

mod commits;
mod concurrency;
mod holds;
mod joint;
mod partitions;
mod random;
mod reads;
mod restarts;
mod test_engine;
mod time;

use std::sync::Arc;

use bolide_model::time::Clock;

use crate::Engine;

pub use commits::*;
pub use concurrency::*;
pub use holds::*;
pub use joint::*;
pub use partitions::*;
pub use random::*;
pub use reads::*;
pub use restarts::*;
pub use test_engine::TestEngine;
pub use time::*;

/// Opens the engine under test, and owns the directory or server it keeps its data in.
pub trait EngineFixture: Send + Sync {
    /// Opens the engine. The first call finds no data; later calls find what the previous engine left, which was closed and dropped.
    fn open(&self, clock: Arc<Clock>) -> Arc<dyn Engine>;

    /// Whether data survives closing the engine.
    fn is_durable(&self) -> bool;
}

/// Makes a test of every claim of the suite. The argument is an expression that makes a new [`EngineFixture`].
#[macro_export]
macro_rules! engine_suite {
    ($fixture:expr) => {
        $crate::engine_suite! { $fixture;
            missing_partition_is_named
            new_partition_is_empty_and_at_its_first_head
            create_and_remove_may_be_repeated
            removed_partition_takes_its_keys_along_and_no_others
            gets_answer_in_the_order_they_were_asked
            spaces_and_partitions_do_not_meet
            keys_are_ordered_bytewise
            scan_bounds_are_inclusive_below_and_exclusive_above
            pages_hold_what_their_bounds_allow
            a_response_holds_what_its_bound_allows
            pages_put_together_are_the_range
            keys_only_scans_leave_values_out
            longest_keys_and_largest_values_come_back
            commit_puts_and_deletes_together
            edition_is_what_the_newest_commit_says
            commit_on_an_old_head_is_stale_and_changes_nothing
            commit_with_a_new_key_that_is_there_changes_nothing
            locked_partition_makes_others_wait_who_ask_for_its_lock
            unfit_commit_is_refused_and_changes_nothing
            commits_sent_at_once_happen_in_their_order
            resolve_knows_a_commit_that_was_done
            resolve_knows_a_commit_that_never_arrived
            joint_commit_is_done_in_all_its_partitions
            joint_commit_with_an_old_head_is_stale_and_changes_nothing
            unfit_joint_commit_is_refused_and_changes_nothing
            joint_commit_without_a_partition_names_it_and_changes_nothing
            any_ticket_of_a_joint_commit_resolves_all
            joint_commits_lose_no_transfer_and_no_hold_sees_half_of_one
            hold_shows_no_later_commit
            hold_shows_a_partition_that_was_removed_since
            hold_shows_no_other_home
            hold_expires_at_its_end_and_no_later_than_the_limit
            holds_are_bounded_in_number_and_dropping_one_makes_room
            read_shows_one_snapshot_of_a_busy_partition
            counters_lose_no_step_under_contention
            partitions_commit_side_by_side
            server_time_never_runs_back
            server_time_is_not_below_a_commit
            commits_survive_a_restart
            edition_survives_a_restart
            joint_commit_survives_a_restart
            hold_does_not_outlive_its_engine
            server_time_survives_a_restart
            time_made_durable_survives_a_restart
            removal_survives_a_restart
            merged_commits_of_one_key_are_right_after_a_restart
            random_histories_agree_with_a_plain_map
        }
    };
    ($fixture:expr; $($claim:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $claim() {
                $crate::suite::$claim(&$fixture).await;
            }
        )*
    };
}
