//! Looking after containers: full checks, loading data that keeps its age, splitting ranges, and figures.

mod import;
mod split;
pub(crate) mod statistics;
mod verify;

pub use split::SplitReport;
pub(crate) use split::Splits;
pub use statistics::{ContainerFigures, ForecastSlice, TtlPreview, TtlReport, TtlRule, TtlState, TtlWhy, Usage};
pub use verify::VerifyReport;
