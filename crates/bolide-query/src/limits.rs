//! Limits of the query language and of its execution (cosmos-sql §21).

use bolide_model::limits::COMPOSITE_INDEX_PATHS;
pub use bolide_model::limits::QUERY_CHARS;

/// Most JOINs in a query.
pub const JOINS: usize = 10;
/// Most calls of user-defined functions in a query text.
pub const UDF_CALLS: usize = 10;
/// Most keys of ORDER BY: several need a composite index with exactly their paths.
pub const ORDER_BY_KEYS: usize = COMPOSITE_INDEX_PATHS;
/// Largest TOP, OFFSET or LIMIT.
pub const COUNT: u64 = 2_147_483_647;
/// Largest TOP or LIMIT in the rewritten query of a ranking's component, which asks for twice as many candidates as are wanted.
pub const CANDIDATES: u64 = u32::MAX as u64;
/// Most scores that RRF fuses. A plan repeats all of them in the query of each.
pub const RANK_SCORES: usize = 100;
/// Memory for groups, distinct values and sorted rows of one execution.
pub const STATE_BYTES: usize = 256 * 1024 * 1024;
/// Largest value that an expression may make, and largest row.
pub const VALUE_BYTES: usize = 64 * 1024 * 1024;
/// Most rows that FROM, JOIN and subqueries go through for one item. A cross join of an item's arrays multiplies their lengths, and nothing
/// else can run while it is gone through.
pub const ITEM_ROWS: u64 = 10_000_000;
/// Most units of work (see `fuel`) for one item, and for compiling a query: some hundred milliseconds.
pub const ITEM_WORK: u64 = 500_000_000;
/// Longest result of REPLICATE, in characters.
pub const REPLICATE_CHARS: usize = 10_000;
/// Most positions of a polygon.
pub const POLYGON_POINTS: usize = 4096;
/// Longest resume state handed out, in bytes: with the rest of a continuation it stays within the kilobyte that clients ask for.
pub const RESUME_BYTES: usize = 740;

/// Rows of a sorted query that are kept for the pages after the next one, and about how many bytes of them.
pub const AHEAD_ROWS: usize = 1_000;
pub const AHEAD_BYTES: usize = 1024 * 1024;
