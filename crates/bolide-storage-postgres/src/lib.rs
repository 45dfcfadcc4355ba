//! The engine over PostgreSQL 15 or newer, or Citus: one table, which the servers of an account share.
//!
//! A partition is a range of rows of one home, and a home lies on one shard ([`rows`]). Nothing is kept on the server but rows: no functions, no triggers, no locks
//! that outlive a statement.
//!
//! ```text
//!   read ───▶ one statement: keys or a range, and the newest commit record
//!   commit ─▶ one statement: locks the newest record, writes all rows and the next record ──▶ Done │ Stale │ Unknown ──resolve──▶ fence
//! ```
//!
//! - [`engine`] is what callers use. [`reads`] and [`commits`] are the two paths, [`lookups`] sends small reads together, [`row_cache`] keeps what they have read, [`removals`] what happens to partitions that are not needed any more.
//! - [`partitions`] is what this process knows of each partition's newest commit; a wrong guess makes a commit stale.
//! - [`locks`] are for writers who would make each other's commits stale.
//! - [`holds`] are snapshots that outlive a call, [`time`] is the server's clock as all nodes see it.
//! - [`schema`] makes and checks the table. [`statements`] are the files in `sql/`, [`connection`] sends them, [`error`] says what a failure means.
//!
//! Out of scope: everything above keys and bytes, as for every engine.
mod commits;
mod connection;
mod engine;
mod error;
mod flights;
mod holds;
mod locks;
mod lookups;
mod options;
mod partitions;
mod reads;
mod removals;
mod routes;
mod row_cache;
mod rows;
mod schema;
mod statements;
mod time;

pub use engine::PostgresEngine;
pub use error::OpenError;
pub use options::PostgresOptions;
pub use schema::{Init, init};
