//! The history of one range of a collection, as a stream reads it.

use std::collections::VecDeque;
use std::sync::Arc;

use bolide_model::rid::ContainerRid;
use bolide_model::time::CommitTime;
use bolide_model::{Error, ErrorKind, Lsn, Reason, Result, UnixMillis};
use bolide_mql::bson::RawDocument;
use bolide_storage::{Engine, PartitionId};
use bytes::Bytes;
use uuid::Uuid;

use super::names::Names;
use super::{DocumentChange, StreamPosition};
use crate::change_log::{ChangeKind, HistoryEntry, document_key};
use crate::container::Container;
use crate::content::ShardKey;
use crate::format::keys::{self, LogPosition};
use crate::format::record::Record;
use crate::partition::{HistoryPage, Partition, read_history};

/// Maximum number of entries of one read.
const ROWS: usize = 200;

/// Bytes of an empty BSON document: the description of an update that changed nothing.
const EMPTY_DOCUMENT_BYTES: usize = 5;

/// See the module.
pub(super) struct Source {
    pub rid: ContainerRid,
    pub database: String,
    pub names: Names,
    uuid: Option<Uuid>,
    shard_key: Option<Arc<ShardKey>>,
    place: Stored,
    /// Where the history is read next; `None` before the first time.
    next: Option<LogPosition>,
    /// Entries that were read in this batch and not taken yet.
    entries: VecDeque<(StreamPosition, LogPosition, Bytes)>,
    /// Whether the entries that were read are all up to the settled time.
    is_complete: bool,
}

/// An entry that was taken.
pub(super) struct Taken {
    pub change: DocumentChange,
    pub time: CommitTime,
    pub happened: UnixMillis,
    /// The size of the entry.
    pub bytes: usize,
}

/// Where the history is.
enum Stored {
    Open(Arc<Container>, Arc<Partition>),
    /// The collection was dropped.
    Retired(PartitionId),
}

impl Source {
    pub fn open(container: &Arc<Container>, partition: &Arc<Partition>) -> Source {
        let info = container.info();
        Source {
            rid: container.rid(),
            database: info.database_id,
            names: Names::new(&info.properties.id),
            uuid: container.collection().map(|collection| collection.uuid),
            shard_key: container.state().shard_key().cloned(),
            place: Stored::Open(container.clone(), partition.clone()),
            next: None,
            entries: VecDeque::new(),
            is_complete: false,
        }
    }

    pub fn retired(
        rid: ContainerRid,
        (database, name): (&str, &str),
        (uuid, shard_key): (Option<Uuid>, Option<Arc<ShardKey>>),
        partition: PartitionId,
    ) -> Source {
        Source {
            rid,
            database: database.to_owned(),
            names: Names::new(name),
            uuid,
            shard_key,
            place: Stored::Retired(partition),
            next: None,
            entries: VecDeque::new(),
            is_complete: false,
        }
    }

    /// Writes the ends of documents up to a settled time into the history.
    ///
    /// # Errors
    /// From the engine.
    pub async fn tell_endings(&self, settled: CommitTime) -> Result<()> {
        let Stored::Open(container, partition) = &self.place else {
            return Ok(());
        };
        if partition.next_ending() > settled.millis() {
            return Ok(());
        }
        if !container.state().is_unsharded() && !container.state().is_deleted {
            // The range is not split meanwhile: its children would tell the ends again.
            let _guard = container.enter().await?;
            if self.is_split() {
                return Err(Error::internal("a range was split"));
            }
            return partition.tell_endings(settled).await;
        }
        partition.tell_endings(settled).await
    }

    /// Returns the time before which no document ends, as far as is known.
    pub fn next_ending(&self) -> Option<UnixMillis> {
        match &self.place {
            Stored::Open(_, partition) => Some(partition.next_ending()),
            Stored::Retired(_) => None,
        }
    }

    /// Tells whether its range is no longer one of its collection, because it was split; then the children have its history.
    pub fn is_split(&self) -> bool {
        match &self.place {
            Stored::Open(container, own) => {
                let state = container.state();
                !state.layout.partitions.iter().any(|partition| partition.id == own.id)
            }
            Stored::Retired(_) => false,
        }
    }

    /// Tells whether it reads a range.
    pub fn reads(&self, partition: &Partition) -> bool {
        matches!(&self.place, Stored::Open(_, own) if own.id == partition.id)
    }

    /// Returns the ranges of its collection that are not among `known`.
    pub fn children(self, known: &[Source]) -> Vec<Source> {
        let Stored::Open(container, _) = &self.place else {
            return Vec::new();
        };
        let state = container.state();
        let new = state
            .layout
            .partitions
            .iter()
            .filter(|partition| !known.iter().any(|source| source.reads(partition)));
        let child = |partition| Source {
            names: self.names.clone(),
            ..Source::open(container, partition)
        };
        new.map(child).collect()
    }

    /// Forgets how far it has read: the next batch begins behind the position of the stream.
    pub fn start_again(&mut self) {
        self.begin();
        self.next = None;
    }

    /// Begins a batch.
    pub fn begin(&mut self) {
        self.entries.clear();
        self.is_complete = false;
    }

    /// Returns the position of the next entry behind `position` and not after `settled`; `None` if there is none.
    ///
    /// # Errors
    /// `HistoryLeft` if entries behind the position are no longer kept; from the engine.
    pub async fn peek(
        &mut self,
        engine: &Arc<dyn Engine>,
        position: StreamPosition,
        settled: CommitTime,
        max_bytes: usize,
    ) -> Result<Option<StreamPosition>> {
        while self.entries.is_empty() && !self.is_complete {
            self.read(engine, position, settled, max_bytes).await?;
        }
        Ok(self.entries.front().map(|(position, _, _)| *position))
    }

    /// Takes the next entry.
    ///
    /// # Errors
    /// `Corrupt` if it is damaged.
    pub fn take(&mut self) -> Result<Option<Taken>> {
        let Some((_, version, value)) = self.entries.pop_front() else {
            return Ok(None);
        };
        self.next = Some(version.next());
        let entry = HistoryEntry::decode(&value)?;
        let changes_nothing = entry.kind == ChangeKind::Replace && entry.note.len() == EMPTY_DOCUMENT_BYTES;
        if changes_nothing {
            return Ok(None);
        }
        let current = entry.current.as_ref().map(Record::document);
        let key = match &current {
            Some(current) => {
                let document = RawDocument::from_bytes(current).map_err(|_| damaged())?;
                document_key(document, self.shard_key.as_deref()).into_bytes().into()
            }
            None => entry.note.clone(),
        };
        let change = DocumentChange {
            kind: entry.kind,
            database: self.database.clone(),
            collection: self.names.at(entry.time).to_owned(),
            uuid: self.uuid,
            key,
            current,
            previous: entry.previous.as_ref().map(Record::document),
            note: entry.note,
        };
        Ok(Some(Taken {
            change,
            time: entry.time,
            happened: entry.happened,
            bytes: value.len(),
        }))
    }

    async fn read(
        &mut self,
        engine: &Arc<dyn Engine>,
        position: StreamPosition,
        settled: CommitTime,
        max_bytes: usize,
    ) -> Result<()> {
        let from = match self.next {
            Some(next) => next,
            None => self.start(engine, position).await?,
        };
        self.next = Some(from);
        if let Stored::Open(_, partition) = &self.place
            && partition.lsn() < from.lsn
        {
            self.is_complete = true;
            return Ok(());
        }
        let page = self.page(engine, from, ROWS, max_bytes).await?;
        let mut next = LogPosition {
            lsn: page.head.lsn.next(),
            seq: 0,
        };
        for (key, value) in page.rows {
            let version = keys::history_position(&key).ok_or_else(damaged)?;
            let time = HistoryEntry::time_of(&value).ok_or_else(damaged)?;
            if time > settled {
                next = version;
                self.is_complete = true;
                break;
            }
            let behind = StreamPosition::of_change(time, self.number(), version);
            if behind > position {
                self.entries.push_back((behind, version, value));
            }
            if page.more {
                next = version.next();
            }
        }
        self.is_complete |= !page.more;
        if self.entries.is_empty() {
            self.next = Some(next);
        }
        Ok(())
    }

    /// Returns the position of an entry that is not behind `position`, and after which all that are behind it follow.
    async fn start(&self, engine: &Arc<dyn Engine>, position: StreamPosition) -> Result<LogPosition> {
        let page = self.page(engine, LogPosition::default(), 1, 1).await?;
        if position.time() < page.complete_after {
            return Err(Reason::HistoryLeft.into());
        }
        let (mut low, mut high) = (page.from.lsn.0, page.head.lsn.0 + 1);
        if position.time() > page.last {
            return Ok(LogPosition { lsn: Lsn(high), seq: 0 });
        }
        // Times rise in a partition, so a binary search finds the first entry of this time or a later one.
        while low < high {
            let middle = low + (high - low) / 2;
            let from = LogPosition {
                lsn: Lsn(middle),
                seq: 0,
            };
            let page = self.page(engine, from, 1, 1).await?;
            let time = page.rows.first().and_then(|(_, value)| HistoryEntry::time_of(value));
            match time {
                Some(time) if time < position.time() => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(LogPosition { lsn: Lsn(low), seq: 0 })
    }

    async fn page(
        &self,
        engine: &Arc<dyn Engine>,
        from: LogPosition,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<HistoryPage> {
        match &self.place {
            Stored::Open(_, partition) => {
                read_history(engine.as_ref(), partition.id, from, (max_rows, max_bytes)).await
            }
            Stored::Retired(partition) => {
                match read_history(engine.as_ref(), *partition, from, (max_rows, max_bytes)).await {
                    Err(error) if error.kind == ErrorKind::NotFound => Err(Reason::HistoryLeft.into()),
                    page => page,
                }
            }
        }
    }

    fn number(&self) -> u64 {
        u64::from_be_bytes(self.rid.bytes())
    }
}

fn damaged() -> Error {
    Error::new(ErrorKind::Corrupt, "a key of the history is damaged")
}
