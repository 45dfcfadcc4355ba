//! Reading a stream: its sources are brought up to date, and their entries merged.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::sync::Arc;

use bolide_model::rid::ContainerRid;
use bolide_model::time::CommitTime;
use bolide_model::{Lsn, Reason, Result, UnixMillis};
use bolide_storage::{Engine, PartitionId};

use super::source::Source;
use super::{ChangeStream, Rename, StreamBatch, StreamContent, StreamEvent, StreamPosition, StreamScope};
use crate::catalog::{CatalogEvent, CatalogEventKind};
use crate::container::Container;
use crate::format::keys::LogPosition;
use crate::partition::read_history;

/// Maximum number of events of the catalog in one read, and of their bytes.
const EVENT_ROWS: usize = 1_000;
const EVENT_BYTES: usize = 1024 * 1024;

/// Bytes of the entries of all sources that are read ahead, and the least of each source.
const READ_BYTES: usize = 2 * 1024 * 1024;
const LEAST_READ_BYTES: usize = 16 * 1024;

/// How often a batch is read again because a range was split meanwhile.
const SPLIT_TRIES: usize = 5;

/// Maximum number of entries that one batch passes over because they are not in the scope of the stream.
const PASSED_OVER: usize = 10_000;

/// See [`ChangeStream::next`].
pub(super) async fn next(
    stream: &mut ChangeStream,
    now: UnixMillis,
    (max_events, max_bytes): (usize, usize),
) -> Result<StreamBatch> {
    for _ in 0..SPLIT_TRIES {
        match read(stream, now, (max_events, max_bytes)).await {
            // A range was split while it was read: nothing was handed out, and its children have the same history.
            Err(_) if stream.sources.iter().any(Source::is_split) => {
                stream.events.clear();
                stream.next_event = None;
                stream.known = None;
                stream.sources.iter_mut().for_each(Source::start_again);
            }
            read => return read,
        }
    }
    read(stream, now, (max_events, max_bytes)).await
}

async fn read(
    stream: &mut ChangeStream,
    now: UnixMillis,
    (max_events, max_bytes): (usize, usize),
) -> Result<StreamBatch> {
    // First: what is committed after this has a later time, and so has what is not yet in the sources.
    let settled = stream.catalog.signals().times.settled(now);
    stream.update_sources().await?;
    let mut merge = Merge::begin(stream, settled).await?;
    let (mut events, mut bytes, mut passed) = (Vec::new(), 0, 0);
    let has_more = loop {
        let Some(next) = merge.peek() else { break false };
        if events.len() >= max_events || bytes >= max_bytes || passed >= PASSED_OVER {
            break true;
        }
        match merge.take(next).await? {
            Some((event, size)) => {
                events.push(event);
                bytes += size;
            }
            None => passed += 1,
        }
    };
    let mut position = merge.position;
    if !has_more {
        position = position.max(StreamPosition::after(settled));
    }
    stream.end_batch(position);
    Ok(StreamBatch {
        events,
        position,
        has_more,
    })
}

/// The sources of a stream, while a batch is read.
struct Merge<'s> {
    stream: &'s mut ChangeStream,
    engine: Arc<dyn Engine>,
    settled: CommitTime,
    /// The next entry of each source that has one, with the index of the source.
    heads: BinaryHeap<Reverse<(StreamPosition, usize)>>,
    read_bytes: usize,
    /// The position behind what was taken.
    position: StreamPosition,
}

/// What comes next.
#[derive(Clone, Copy)]
enum Next {
    OfCatalog(StreamPosition),
    OfSource(StreamPosition),
}

impl Merge<'_> {
    async fn begin(stream: &mut ChangeStream, settled: CommitTime) -> Result<Merge<'_>> {
        let read_bytes = (READ_BYTES / stream.sources.len().max(1)).max(LEAST_READ_BYTES);
        let mut merge = Merge {
            engine: stream.catalog.engine().clone(),
            settled,
            heads: BinaryHeap::new(),
            read_bytes,
            position: stream.position,
            stream,
        };
        for at in 0..merge.stream.sources.len() {
            if let Some(source) = merge.stream.sources.get_mut(at) {
                source.begin();
                source.tell_endings(settled).await?;
            }
            merge.push(at).await?;
        }
        Ok(merge)
    }

    /// Adds the next entry of a source to the heads.
    async fn push(&mut self, at: usize) -> Result<()> {
        let Some(source) = self.stream.sources.get_mut(at) else {
            return Ok(());
        };
        let behind = self.stream.position;
        let head = source.peek(&self.engine, behind, self.settled, self.read_bytes).await?;
        self.heads.extend(head.map(|head| Reverse((head, at))));
        Ok(())
    }

    fn peek(&self) -> Option<Next> {
        let of_catalog = self.stream.events.front().map(|(position, _)| *position);
        let of_catalog = of_catalog.filter(|position| position.time() <= self.settled);
        let of_source = self.heads.peek().map(|Reverse((head, _))| *head);
        match (of_catalog, of_source) {
            (Some(event), Some(head)) if head < event => Some(Next::OfSource(head)),
            (Some(event), _) => Some(Next::OfCatalog(event)),
            (None, head) => head.map(Next::OfSource),
        }
    }

    /// Takes what comes next. Returns `None` if the stream does not tell it.
    async fn take(&mut self, next: Next) -> Result<Option<(StreamEvent, usize)>> {
        match next {
            Next::OfCatalog(position) => {
                self.position = position;
                Ok(self.take_event(position).map(|event| (event, 0)))
            }
            Next::OfSource(position) => {
                self.position = position;
                self.take_change(position).await
            }
        }
    }

    fn take_event(&mut self, position: StreamPosition) -> Option<StreamEvent> {
        let (_, event) = self.stream.events.pop_front()?;
        let is_told = !event.is_silent && is_told(&self.stream.scope, self.stream.is_hidden, &event);
        is_told.then(|| StreamEvent {
            position,
            time: position.time(),
            happened: event.happened(),
            content: StreamContent::Catalog(Box::new(event)),
        })
    }

    async fn take_change(&mut self, position: StreamPosition) -> Result<Option<(StreamEvent, usize)>> {
        let Some(Reverse((_, at))) = self.heads.pop() else {
            return Ok(None);
        };
        let taken = match self.stream.sources.get_mut(at) {
            Some(source) => source.take()?,
            None => None,
        };
        self.push(at).await?;
        let in_scope = taken.filter(|taken| match &self.stream.scope {
            StreamScope::Collection { name, .. } => taken.change.collection == *name,
            _ => !(self.stream.is_hidden)(&taken.change.database, &taken.change.collection),
        });
        Ok(in_scope.map(|taken| {
            let event = StreamEvent {
                position,
                time: taken.time,
                happened: taken.happened,
                content: StreamContent::Document(Box::new(taken.change)),
            };
            (event, taken.bytes)
        }))
    }
}

impl ChangeStream {
    /// Ends a batch: the stream goes on after a position.
    fn end_batch(&mut self, position: StreamPosition) {
        self.position = position;
        self.renames.retain(|rename| rename.at > position.time());
        for source in &mut self.sources {
            source.begin();
            source.names.forget_before(position.time());
        }
    }

    /// Finds the collections that the stream reads: those that exist, and those that were dropped behind its position.
    async fn update_sources(&mut self) -> Result<()> {
        let shown = self.catalog.shown_lsn();
        if self.known != Some(shown) {
            let known: HashSet<ContainerRid> = self.sources.iter().map(|source| source.rid).collect();
            for container in self.catalog.all_containers() {
                if !known.contains(&container.rid()) && container.collection().is_some() {
                    self.open_sources(&container);
                }
            }
            self.known = Some(shown);
        }
        self.follow_splits();
        self.read_events().await?;
        if let StreamScope::Collection { name, .. } = &self.scope {
            let name = name.clone();
            // A collection that never had the name cannot have it before it gets it, which is an event.
            self.sources.retain(|source| source.names.include(&name));
        }
        Ok(())
    }

    fn open_sources(&mut self, container: &Arc<Container>) {
        for partition in &container.state().layout.partitions {
            let source = Source::open(container, partition);
            if reads_database(&self.scope, &source.database) {
                self.sources.push(source);
            }
        }
    }

    /// Reads the ranges of collections whose ranges were split: these begin behind the position of the stream, wherever the others are.
    fn follow_splits(&mut self) {
        let split: Vec<Source> = self.sources.extract_if(.., |source| source.is_split()).collect();
        for source in split {
            for child in source.children(&self.sources) {
                self.sources.push(child);
            }
        }
    }

    /// Reads the new events of the catalog.
    async fn read_events(&mut self) -> Result<()> {
        let (partition, engine) = (self.catalog.partition().clone(), self.catalog.engine().clone());
        let mut from = match self.next_event {
            Some(next) => next,
            None => self.first_event(engine.as_ref(), partition.id).await?,
        };
        while partition.lsn() >= from.lsn {
            let page = read_history(engine.as_ref(), partition.id, from, (EVENT_ROWS, EVENT_BYTES)).await?;
            for (key, value) in &page.rows {
                let (version, event) = CatalogEvent::decode(key, value)?;
                from = version.next();
                if reads_database(&self.scope, &event.database) {
                    let position = StreamPosition::of_change(event.time(), 0, version);
                    self.apply(&event, position);
                    if position > self.position {
                        self.events.push_back((position, event));
                    }
                }
            }
            if !page.more {
                from = from.max(behind(page.head.lsn));
            }
            self.next_event = Some(from);
        }
        Ok(())
    }

    /// Returns where the events behind the position of the stream begin, or a place before.
    async fn first_event(&self, engine: &dyn Engine, partition: PartitionId) -> Result<LogPosition> {
        let page = read_history(engine, partition, LogPosition::default(), (1, 1)).await?;
        if self.position.time() >= page.last {
            return Ok(behind(page.head.lsn));
        }
        let oldest = page.rows.first().map(|(key, value)| CatalogEvent::decode(key, value));
        let oldest = oldest.transpose()?.map(|(_, event)| event.time());
        // Others before it may have been forgotten.
        let is_forgotten = self.catalog.may_have_forgotten_events(page.head.lsn)
            && oldest.is_none_or(|oldest| self.position.time() < oldest);
        match is_forgotten {
            true => Err(Reason::HistoryLeft.into()),
            false => Ok(LogPosition::default()),
        }
    }

    /// Applies an event to the sources.
    fn apply(&mut self, event: &CatalogEvent, position: StreamPosition) {
        let Some(rid) = event.rid() else { return };
        let is_known = self.sources.iter().any(|source| source.rid == rid);
        match (event.kind, &event.to) {
            (CatalogEventKind::Rename, Some(to)) => {
                for source in self.sources.iter_mut().filter(|source| source.rid == rid) {
                    source.names.renamed(event.time(), &event.collection, to);
                }
                self.renames.push(Rename {
                    rid,
                    at: event.time(),
                    from: event.collection.clone(),
                    to: to.clone(),
                });
            }
            (CatalogEventKind::Drop, _) if !is_known && position > self.position => {
                let names = (&event.database[..], &event.collection[..]);
                for partition in event.retired() {
                    let mut source = Source::retired(rid, names, (event.uuid, event.shard_key()), partition);
                    for rename in self.renames.iter().filter(|rename| rename.rid == rid) {
                        source.names.renamed(rename.at, &rename.from, &rename.to);
                    }
                    self.sources.push(source);
                }
            }
            _ => {}
        }
    }
}

/// Returns the position behind everything of a commit.
fn behind(lsn: Lsn) -> LogPosition {
    LogPosition {
        lsn: lsn.next(),
        seq: 0,
    }
}

fn reads_database(scope: &StreamScope, database: &str) -> bool {
    match scope {
        StreamScope::Collection { database: own, .. } | StreamScope::Database(own) => own == database,
        StreamScope::Cluster => true,
    }
}

/// Tells whether a stream tells an event of the catalog.
fn is_told(scope: &StreamScope, is_hidden: fn(&str, &str) -> bool, event: &CatalogEvent) -> bool {
    match scope {
        StreamScope::Collection { name, .. } => {
            let names = [Some(&event.collection), event.to.as_ref()];
            event.rid().is_some() && names.contains(&Some(name))
        }
        _ => !is_hidden(&event.database, &event.collection),
    }
}
