//! Looking after containers: full checks, loading data that keeps its age, splitting ranges, and figures.

mod figures;
mod import;
mod split;
mod verify;

pub(crate) use figures::amounts;
pub use figures::{ContainerFigures, Usage};
pub use split::SplitReport;
pub use verify::VerifyReport;
