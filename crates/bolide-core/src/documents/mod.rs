//! The documents of MongoDB collections: read, scanned and written.
//!
//! A collection is a container whose items are BSON documents. In an unsharded one the documents have no logical partitions: an item key is the document's
//! number, which is the natural order. In a sharded one all documents with the same value of the shard key are at one place, which an item key begins with
//! ([`crate::content::ShardKey`]), and a commit writes the documents of one place. Filters and updates are the front end's: it reads documents here ([`DocumentScan`], `Account::find_document`), and decides writes
//! in the partition's worker through a [`DocumentBatch`].

mod conflicts;
mod description;
mod draft;
mod open_transaction;
mod ordered;
mod read;
mod scan;
mod scope;
mod selection;
pub(crate) mod sessions;
mod transaction;
mod write;

use bolide_model::epk::Epk;
use bolide_model::ttl::{Deadline, Horizon, Stamp};
use bolide_model::{Lsn, UnixSeconds};
use bolide_mql::bson::{RawDocument, RawDocumentBuf};
use bytes::Bytes;

pub use crate::content::{DocumentId, ShardKey};
pub(crate) use draft::index_fields;
pub use draft::{DocumentDraft, DraftOptions};
pub use open_transaction::OpenTransaction;
pub use ordered::{OrderedWalk, Walked};
pub use scan::{DocumentPage, DocumentScan, ScanDirection};
pub use scope::{Consumed, ReadScope};
pub use selection::{IndexPart, ScanPlan, Selection};
pub use sessions::SessionRecord;
pub use transaction::DocumentTransaction;
pub(crate) use transaction::SnapshotTerms;
pub(crate) use write::add_document;
pub use write::{DocumentBatch, Duplicate, Undecided};

use crate::format::keys;
use crate::format::record::Record;

static EMPTY: std::sync::LazyLock<RawDocumentBuf> = std::sync::LazyLock::new(RawDocumentBuf::new);

/// A stored document that was visible when it was read.
#[derive(Debug, Clone)]
pub struct StoredDocument {
    key: Bytes,
    record: Record,
}

/// What decides when a version ends: kept with documents that wait for a client, so that they can be judged again.
#[derive(Debug, Clone)]
pub struct Lifetime {
    stamp: Stamp,
    deadlines: Vec<Deadline>,
}

impl StoredDocument {
    pub(crate) fn new(key: Bytes, record: Record) -> StoredDocument {
        StoredDocument { key, record }
    }

    /// Returns the document.
    pub fn document(&self) -> &RawDocument {
        // Drafts are valid BSON, and checksums of the storage engine guard what is stored.
        RawDocument::from_bytes(self.record.document_bytes()).unwrap_or_else(|_| &*EMPTY)
    }

    /// Returns the document's bytes, which share the stored bytes.
    pub fn bytes(&self) -> Bytes {
        self.record.document()
    }

    /// Returns the number of the document: the order of insertion.
    pub fn number(&self) -> u64 {
        self.record.number()
    }

    /// Returns where the document is: see [`DocumentDraft::place`].
    pub fn place(&self) -> Epk {
        Epk::from_bytes(keys::epk_of_item(&self.key))
    }

    /// Returns what tells this version from all others of the partition.
    pub fn version(&self) -> (Lsn, u32) {
        let version = self.record.version();
        (version.lsn, version.seq)
    }

    /// Returns when it was last changed.
    pub fn last_modified(&self) -> UnixSeconds {
        self.record.last_modified()
    }

    /// Returns what decides when this version ends.
    pub fn lifetime(&self) -> Lifetime {
        Lifetime {
            stamp: self.record.stamp(),
            deadlines: self.record.deadlines().collect(),
        }
    }

    pub(crate) fn key(&self) -> &Bytes {
        &self.key
    }

    pub(crate) fn record(&self) -> &Record {
        &self.record
    }
}

impl Lifetime {
    /// Tells whether the version is still visible, if it was before.
    pub(crate) fn lasts(&self, horizon: &Horizon) -> bool {
        horizon.shows(self.stamp, self.deadlines.iter().copied())
    }
}
