//! Change streams: the changes of the documents of a collection, of a database or of all databases, and what happens to collections, in one order.
//!
//! ```text
//!   history of each partition (change_log) ─┐
//!   events of the catalog (partition 0) ────┴─▶ merged by (time, container, lsn, seq), up to the time at which all commits are settled
//! ```
//!
//! All commits of an account have times in one order (`partition::commit_times`). A stream hands out what lies behind its position and not after the
//! settled time; so what is committed later comes later, whichever partition it is in, and a position is all that is needed to go on: after a restart
//! too. The history of a dropped collection is kept for a while, so that streams that are behind still see what happened before the drop.

mod names;
mod position;
mod read;
mod source;

use std::collections::VecDeque;
use std::sync::Arc;

use bolide_model::rid::ContainerRid;
use bolide_model::time::CommitTime;
use bolide_model::{Lsn, Result, UnixMillis};
use bytes::Bytes;
use uuid::Uuid;

use crate::catalog::{Catalog, CatalogEvent};
use crate::change_log::ChangeKind;
use crate::format::keys::LogPosition;
pub use position::StreamPosition;
use source::Source;

/// What a stream is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamScope {
    /// The collection with a name, whichever it is at a time.
    Collection {
        /// The name of the database.
        database: String,
        /// The name of the collection.
        name: String,
    },
    /// The collections of a database.
    Database(String),
    /// The collections of all databases, except those of the server itself.
    Cluster,
}

/// Something that a stream tells.
#[derive(Debug, Clone)]
pub struct StreamEvent {
    /// Where the stream goes on after it.
    pub position: StreamPosition,
    /// When it happened, in the order of commits.
    pub time: CommitTime,
    /// When it happened, by the clock.
    pub happened: UnixMillis,
    /// What happened.
    pub content: StreamContent,
}

/// See [`StreamEvent`].
#[derive(Debug, Clone)]
pub enum StreamContent {
    /// A document changed.
    Document(Box<DocumentChange>),
    /// A collection or database changed.
    Catalog(Box<CatalogEvent>),
}

/// A change of a document.
#[derive(Debug, Clone)]
pub struct DocumentChange {
    /// What happened.
    pub kind: ChangeKind,
    /// The name of the database.
    pub database: String,
    /// The name that the collection had at the time of the change.
    pub collection: String,
    /// The identity of the collection.
    pub uuid: Option<Uuid>,
    /// What identifies the document, as a document: the value of the shard key, if the collection has one, and `_id`.
    pub key: Bytes,
    /// The document after the change, as BSON; `None` after deletes.
    pub current: Option<Bytes>,
    /// The document before the change, as BSON, if the collection keeps images.
    pub previous: Option<Bytes>,
    /// What an update changed; or the key of a deleted document. Empty if the whole document is new.
    pub note: Bytes,
}

/// Events, and how far the stream has come with them.
#[derive(Debug)]
pub struct StreamBatch {
    /// In their order.
    pub events: Vec<StreamEvent>,
    /// Where the stream goes on after them, and after what it has passed over.
    pub position: StreamPosition,
    /// Whether there may be more to read now.
    pub has_more: bool,
}

/// An open change stream; see the module.
pub struct ChangeStream {
    catalog: Arc<Catalog>,
    scope: StreamScope,
    position: StreamPosition,
    sources: Vec<Source>,
    /// Events of the catalog that were read and not handed out yet.
    events: VecDeque<(StreamPosition, CatalogEvent)>,
    /// Where the events of the catalog are read next; `None` before the first time.
    next_event: Option<LogPosition>,
    /// When collections got other names, and which.
    renames: Vec<Rename>,
    /// The commit of the catalog that the sources show.
    known: Option<Lsn>,
    is_hidden: IsHidden,
}

/// Tells whether a stream on a database, or on all of them, leaves out a collection: its database and its name.
pub type IsHidden = fn(&str, &str) -> bool;

struct Rename {
    rid: ContainerRid,
    at: CommitTime,
    from: String,
    to: String,
}

impl ChangeStream {
    /// Creates a stream that goes on after a position.
    pub(crate) fn new(
        catalog: Arc<Catalog>,
        scope: StreamScope,
        position: StreamPosition,
        is_hidden: IsHidden,
    ) -> ChangeStream {
        ChangeStream {
            catalog,
            scope,
            position,
            sources: Vec::new(),
            events: VecDeque::new(),
            next_event: None,
            renames: Vec::new(),
            known: None,
            is_hidden,
        }
    }

    /// Returns the next events, at most `max_events`, and of about `max_bytes` at most, at server time `now`. There may be none.
    ///
    /// # Errors
    /// `HistoryLeft` if changes behind the position are no longer kept; from the engine.
    pub async fn next(&mut self, now: UnixMillis, max_events: usize, max_bytes: usize) -> Result<StreamBatch> {
        read::next(self, now, (max_events, max_bytes)).await
    }

    /// Returns where the stream goes on.
    pub fn position(&self) -> StreamPosition {
        self.position
    }

    /// Returns the time before which no document ends that the stream is about, as far as is known: then there will be an event, without a commit.
    pub fn next_ending(&self) -> Option<UnixMillis> {
        let next = self.sources.iter().filter_map(Source::next_ending).min();
        next.filter(|next| next.0 < i64::MAX)
    }

    /// Resolves when there may be new events. Get it before the events are read that are there already.
    pub fn changed(&self) -> impl Future<Output = ()> + use<> {
        let mut changed = Box::pin(self.catalog.signals().times.changed());
        changed.as_mut().enable();
        changed
    }
}
