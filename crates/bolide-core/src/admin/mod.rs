//! Administration of containers: full checks, exports, imports that keep the age of items, splits of ranges, and statistics.

mod copies;
mod export;
mod import;
mod indexes;
mod split;
pub(crate) mod statistics;
mod verify;

pub use copies::{COPIED_SPACES, CopyBegun, CopyPage, PagePosition, SealInfo, SealedPartition, unfinished_copy};
pub(crate) use copies::{CopiedStore, Copies};
pub use export::{ExportPage, ExportPosition};
pub use indexes::{IndexFigures, IndexReport};
pub use split::SplitReport;
pub(crate) use split::Splits;
pub use statistics::{ContainerFigures, ForecastSlice, TtlPreview, TtlReport, TtlRule, TtlState, TtlWhy, Usage};
pub use verify::VerifyReport;

use std::sync::Arc;

use bolide_model::Result;
use bolide_model::rid::ContainerRid;

use crate::background::Background;
use crate::catalog::Catalog;
use crate::container::Container;
use crate::memory::MemoryBudget;
use crate::runtime::Runtime;

/// The parts of an account that administration uses.
#[derive(Clone, Copy)]
pub(crate) struct Admin<'a> {
    pub runtime: &'a Runtime,
    pub catalog: &'a Arc<Catalog>,
    pub background: &'a Background,
    pub splits: &'a Arc<Splits>,
}

impl Admin<'_> {
    fn memory(&self) -> &MemoryBudget {
        self.runtime.memory()
    }

    fn all_containers(&self) -> Vec<Arc<Container>> {
        self.catalog.all_containers()
    }

    fn container_by_rid(&self, rid: ContainerRid) -> Result<Arc<Container>> {
        self.catalog.container_by_rid(rid)
    }
}
