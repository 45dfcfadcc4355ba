//! The query language: text to plan to rows.
//!
//! ```text
//! text ──text::parse──▶ syntax tree ──bind──▶ program ──execution──▶ rows of a page + where it ended
//!                            │                   │
//!                            └──────plan─────────┴──▶ what a client needs to merge partitions
//! ```
//!
//! The crate is pure: it reads no clock and no storage. A [`Query`] is compiled once against a [`Schema`]; each page is an [`Execution`] to which
//! items are pushed and which returns rows:
//!
//! ```
//! use bolide_query::{Environment, PageLimit, Parameters, Progress, Query, Schema};
//!
//! let query = Query::compile("SELECT VALUE c.n * 2 FROM c WHERE c.n > @least", &Parameters::none().with("@least", &1.into()),
//!     &Schema::metadata())?;
//! let items = [r#"{"id":"a","n":1}"#, r#"{"id":"b","n":2}"#, r#"{"id":"c","n":3}"#];
//! let mut page = query.execution(Environment::default(), PageLimit::NONE, None)?;
//! let mut end_of_scan = true;
//! for (rid, item) in items.iter().enumerate() {
//!     if page.push(item.as_bytes(), rid as u64)? != Progress::Continue {
//!         end_of_scan = false;
//!         break;
//!     }
//! }
//! let finished = page.finish(end_of_scan)?;
//! assert_eq!(finished.rows.joined(), b"4,6");
//! assert_eq!(finished.resume, None);
//! # Ok::<(), bolide_query::QueryError>(())
//! ```
//!
//! # Pages
//!
//! [`Query::rescans`] tells how pages follow each other. Without rescans the caller continues the scan where it stopped: after [`Progress::PageFull`]
//! **at** the item pushed last, otherwise after it. With rescans (ORDER BY, DISTINCT, GROUP BY, aggregates, ranking) every page pushes all items from
//! the start, and rows that earlier pages returned are left out. DISTINCT alone is in between ([`Query::replays`]): items up to the position of the
//! previous page are passed to [`Execution::replay`], and the scan continues as without rescans. In all cases the next page gets
//! [`Finished::resume`], and the query is complete when that is `None`.

mod aggregate;
mod bind;
mod condition;
pub mod error;
mod eval;
mod execution;
mod fuel;
mod functions;
mod group;
pub mod index;
mod like;
mod limits;
mod memory;
mod number;
mod parameters;
mod path;
mod plan;
mod program;
mod query;
pub mod schema;
mod session;
mod text;
mod usage;
mod value;

pub use bind::check_computed;
pub use condition::Condition;
pub use error::{QueryError, Result};
pub use execution::{Ahead, Execution, Finished, ItemFilter, Metrics, PageLimit, Progress, ResumeFilter, Rows};
pub use fuel::{Interrupt, Interrupts};
pub use memory::MemorySource;
pub use number::Number;
pub use parameters::Parameters;
pub use path::PathStep;
pub use plan::{Feature, Info, KeyEnd, KeyRange, KeyRanges, KeyValue, Plan, SupportedFeatures};
pub use query::Query;
pub use schema::Schema;
pub use session::{Environment, Udfs};
pub use usage::Usage;
pub use value::{Item, SystemProperties};
