//! Statistics about containers and their expiry.

mod dates;
mod figures;
pub(crate) mod forecast;
pub(crate) mod ghosts;
pub(crate) mod report;

pub use figures::{ContainerFigures, Usage};
pub use report::{ForecastSlice, TtlPreview, TtlReport, TtlRule, TtlState, TtlWhy};
