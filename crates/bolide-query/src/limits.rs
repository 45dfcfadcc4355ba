//! Limits of the query language and of its execution (cosmos-sql §21).

use bolide_model::limits::COMPOSITE_INDEX_PATHS;
pub use bolide_model::limits::QUERY_CHARS;

/// Maximum number of JOINs in a query.
pub const JOINS: usize = 10;
/// Maximum number of calls of user-defined functions in a query.
pub const UDF_CALLS: usize = 10;
/// Maximum number of ORDER BY keys: several need a composite index with exactly their paths.
pub const ORDER_BY_KEYS: usize = COMPOSITE_INDEX_PATHS;
/// Maximum of TOP, OFFSET or LIMIT.
pub const COUNT: u64 = 2_147_483_647;
/// Maximum of TOP or LIMIT in the rewritten query of a ranking's component, which asks for twice as many candidates as rows.
pub const CANDIDATES: u64 = u32::MAX as u64;
/// Maximum number of scores that RRF combines. A plan repeats all of them in the query of each.
pub const RANK_SCORES: usize = 100;
/// Memory for groups, distinct values and sorted rows of one execution.
pub const STATE_BYTES: usize = 256 * 1024 * 1024;
/// Maximum size of a value made by an expression, and of a row.
pub const VALUE_BYTES: usize = 64 * 1024 * 1024;
/// Maximum number of rows that FROM, JOIN and subqueries visit for one item. A cross join of an item's arrays multiplies their lengths, and cannot be paused.
pub const ITEM_ROWS: u64 = 10_000_000;
/// Maximum units of work (see `fuel`) for one item, and for compiling a query: some hundred milliseconds.
pub const ITEM_WORK: u64 = 500_000_000;
/// Maximum length of REPLICATE's result, in characters.
pub const REPLICATE_CHARS: usize = 10_000;
/// Maximum number of positions of a polygon.
pub const POLYGON_POINTS: usize = 4096;
/// Maximum length of the resume state, in bytes: with the rest of a continuation it stays within the kilobyte that clients ask for.
pub const RESUME_BYTES: usize = 740;

/// Rows of a sorted query that are kept for later pages, and about how many bytes of them.
pub const AHEAD_ROWS: usize = 1_000;
pub const AHEAD_BYTES: usize = 1024 * 1024;
