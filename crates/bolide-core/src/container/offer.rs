//! The offer of a container or database, as its state holds it.

use bolide_model::UnixSeconds;

use crate::format::etag::Etag;
use crate::throughput::{OfferType, Throughput};

/// The offer of a container or database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResourceOffer {
    pub number: u32,
    /// `None`: created without throughput; the default is shown.
    pub throughput: Option<Throughput>,
    pub kind: OfferType,
    pub etag: Etag,
    pub last_modified: UnixSeconds,
}
