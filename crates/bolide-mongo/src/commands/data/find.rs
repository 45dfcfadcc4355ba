//! The documents of one collection that match a filter, in natural order: for `find`, and for the walks of writes. They are found by their `_id`, by the
//! indexes of the collection, or by a scan; the order is the same.

use std::collections::VecDeque;
use std::sync::Arc;

use bolide_core::{
    CollectionDefinition, Container, DocumentId, DocumentScan, IndexPart, OrderedWalk, ReadScope, ScanDirection,
    Selection, StoredDocument, Walked,
};
use bolide_model::epk::Epk;
use bolide_mql::filter::Filter;
use bolide_mql::index::{self, IndexDefinition, Kind};
use bolide_mql::sort::Sort;
use bolide_mql::{Context, Result};

use super::collections;
use super::language::Hinted;
use crate::codes;

/// A scan of the documents that match a filter; between batches it keeps the documents that it has read and not returned.
#[derive(Clone)]
pub struct Matches {
    container: Arc<Container>,
    filter: Arc<Filter>,
    source: Source,
    /// Where all documents that match are; `None` in a sharded collection whose shard key the filter does not name.
    place: Option<Epk>,
    /// Documents that were read in this or in an earlier command.
    read: VecDeque<StoredDocument>,
    /// Whether the documents in `read` were read in an earlier command, so that some may have ended.
    is_resumed: bool,
    /// Number of live documents that the filter was asked about.
    examined: u64,
    /// The index that the command names, if it leaves documents out: these are not found.
    within: Option<Arc<IndexDefinition>>,
    /// What indexes can find.
    selection: Selection,
    /// Whether documents are read in the order of the collection, whatever indexes there are.
    is_natural: bool,
}

#[derive(Clone)]
enum Source {
    /// The documents at the place with one of these values of `_id`.
    Ids(VecDeque<DocumentId>),
    Scan(Box<DocumentScan>),
}

impl Matches {
    /// Creates a scan. Filters that name the values of `_id` read these documents only.
    ///
    /// # Errors
    /// `NamespaceNotFound` if the collection was removed.
    pub fn new(container: Arc<Container>, filter: Arc<Filter>, context: &Context) -> Result<Matches> {
        let definition = collections::definition(&container)?;
        let of_collection = definition.collation.as_deref();
        // The `_id`s are stored by the collation of the collection; another one may find more values equal.
        let is_same = match (context.collation.as_deref(), of_collection) {
            (None, None) => true,
            (Some(one), Some(other)) => one.to_document() == other.to_document(),
            _ => false,
        };
        let place = place_of(&definition, &filter, context);
        let ids = match is_same && place.is_some() {
            true => filter.id_in(of_collection),
            false => None,
        };
        let selection = Selection {
            filter: filter.clone(),
            collation: context.collation.clone(),
            hint: None,
        };
        let source = match ids {
            Some(ids) => {
                let ids = ids.into_iter();
                Source::Ids(
                    ids.map(|id| DocumentId::of(id.as_raw_bson_ref(), of_collection))
                        .collect(),
                )
            }
            None => Source::Scan(Box::new(
                scan_of(place.as_ref(), ScanDirection::Forward).selecting(selection.clone()),
            )),
        };
        Ok(Matches {
            container,
            filter,
            source,
            place,
            read: VecDeque::new(),
            is_resumed: false,
            examined: 0,
            within: None,
            selection,
            is_natural: false,
        })
    }

    /// Reads the whole collection, or all of the only place that matters, in this direction, whatever the filter says about `_id`. Before the first document is read.
    pub fn scan(&mut self, direction: ScanDirection) {
        self.source = Source::Scan(Box::new(scan_of(self.place.as_ref(), direction)));
        self.is_natural = true;
    }

    /// Reads as a hint says. Before the first document is read.
    pub fn follow(&mut self, hinted: &Hinted) {
        if let Some(direction) = hinted.direction {
            self.scan(direction);
        }
        let Some(index) = &hinted.index else { return };
        let definition = &index.definition;
        // As in MongoDB, documents that the index leaves out are not found.
        let leaves_out = definition.is_sparse() || definition.partial().is_some();
        if leaves_out && matches!(definition.kind(), Kind::Ordered | Kind::Hashed) {
            self.within = Some(definition.clone());
        }
        if !definition.is_id() {
            let selection = Selection {
                hint: Some(index.id),
                ..self.selection.clone()
            };
            let scan = scan_of(self.place.as_ref(), ScanDirection::Forward);
            self.source = Source::Scan(Box::new(scan.selecting(selection)));
        }
    }

    /// Decides how the first documents are found, without reading them.
    ///
    /// # Errors
    /// `NamespaceNotFound` if the collection was removed; those of the storage.
    pub async fn prepare(&mut self, scope: &ReadScope) -> Result<()> {
        let Source::Scan(scan) = &mut self.source else {
            return Ok(());
        };
        let prepared = scan.prepare(scope, &self.container).await;
        prepared.map_err(|error| codes::error(&error))
    }

    /// Returns how an index has the documents in the order of a sort; `None` if none has. Before the first document is read.
    pub fn walk(&self, sort: &Sort, hinted: &Hinted) -> Option<OrderedWalk> {
        if self.is_natural || self.within.is_some() || self.is_by_id() {
            return None;
        }
        let selection = Selection {
            hint: hinted.index.as_ref().map(|index| index.id),
            ..self.selection.clone()
        };
        OrderedWalk::plan(&self.container, selection, sort, self.place.as_ref())
    }

    /// Decides whether a walk reads in the order of its index. `wanted`: how many documents are wanted in all.
    ///
    /// # Errors
    /// `NamespaceNotFound` if the collection was removed; those of the storage.
    pub async fn begin(&self, walk: &mut OrderedWalk, scope: &ReadScope, wanted: Option<u64>) -> Result<()> {
        let begun = walk.begin(scope, &self.container, wanted).await;
        begun.map_err(|error| codes::error(&error))
    }

    /// Goes a step on a walk.
    ///
    /// # Errors
    /// As [`Matches::begin`].
    pub async fn step(&self, walk: &mut OrderedWalk, scope: &ReadScope) -> Result<Walked> {
        let walked = walk.next(scope, &self.container).await;
        walked.map_err(|error| codes::error(&error))
    }

    /// Compares a live document with the filter.
    ///
    /// # Errors
    /// Those of the filter.
    pub fn compare(&mut self, document: &StoredDocument, context: &Context) -> Result<bool> {
        self.examined += 1;
        self.filter.matches(document.document(), context)
    }

    /// The filter.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Returns the indexes by which it has found documents so far; empty if it reads the whole collection, or by `_id`.
    pub fn plan(&self) -> &[IndexPart] {
        match &self.source {
            Source::Scan(scan) => scan.plan(),
            Source::Ids(_) => &[],
        }
    }

    /// Returns how many keys of indexes it has read.
    pub fn keys_examined(&self) -> u64 {
        match &self.source {
            Source::Scan(scan) => scan.keys_examined(),
            Source::Ids(_) => self.examined,
        }
    }

    /// Whether it reads few documents only, so that it needs no thread of its own.
    pub fn is_short(&self) -> bool {
        matches!(&self.source, Source::Ids(ids) if ids.len() <= 1)
    }

    /// Returns all documents that it reads, whether they match or not: the caller applies the filter.
    pub fn return_all(&mut self) {
        self.filter = Arc::new(Filter::all());
    }

    /// Whether it reads documents by their `_id`.
    pub fn is_by_id(&self) -> bool {
        matches!(&self.source, Source::Ids(_))
    }

    /// Returns the `_id` of the only document that can match; `None` if the filter does not name one.
    pub fn only_id(&self) -> Option<DocumentId> {
        match &self.source {
            Source::Ids(ids) if ids.len() == 1 => ids.front().cloned(),
            _ => None,
        }
    }

    /// Returns where all documents that match are; `None` if they may be at several places.
    pub fn place(&self) -> Option<&Epk> {
        self.place.as_ref()
    }

    /// Returns how many values of `_id` it still reads by; `None` if it reads the whole collection.
    pub fn ids(&self) -> Option<usize> {
        match &self.source {
            Source::Ids(ids) => Some(ids.len()),
            Source::Scan(_) => None,
        }
    }

    /// Returns how many live documents were compared with the filter.
    pub fn examined(&self) -> u64 {
        self.examined
    }

    /// Continues in another command, at its time.
    pub fn resume(&mut self) {
        self.is_resumed = true;
    }

    /// Returns the next matching document; `None` at the end.
    ///
    /// # Errors
    /// Those of the storage and of the filter.
    pub async fn next(&mut self, scope: &ReadScope, context: &Context) -> Result<Option<StoredDocument>> {
        loop {
            while let Some(document) = self.read.pop_front() {
                context.interrupt.check(1)?;
                let is_gone = self.is_resumed && !self.is_live(scope, &document).await?;
                if is_gone {
                    continue;
                }
                if let Some(index) = &self.within
                    && index::keys(index, document.document()).is_ok_and(|keys| keys.keys.is_empty())
                {
                    continue;
                }
                self.examined += 1;
                if self.filter.matches(document.document(), context)? {
                    return Ok(Some(document));
                }
            }
            self.is_resumed = false;
            if !self.fill(scope).await? {
                return Ok(None);
            }
        }
    }

    /// Whether a document that was read in an earlier command is still there to be returned.
    ///
    /// # Errors
    /// `NamespaceNotFound` if the collection was removed.
    pub async fn is_live(&self, scope: &ReadScope, document: &StoredDocument) -> Result<bool> {
        let is_live = scope.is_live(&self.container, &document.lifetime()).await;
        is_live.map_err(|error| codes::error(&error))
    }

    /// Reads more documents. Returns `false` at the end.
    async fn fill(&mut self, scope: &ReadScope) -> Result<bool> {
        match &mut self.source {
            Source::Ids(ids) => {
                let Some(id) = ids.pop_front() else { return Ok(false) };
                let place = self.place.clone().unwrap_or_default();
                let found = scope.find(&self.container, &place, &id).await;
                self.read.extend(found.map_err(|error| codes::error(&error))?);
            }
            Source::Scan(scan) => {
                let page = scan.next_page(scope, &self.container).await;
                let Some(page) = page.map_err(|error| codes::error(&error))? else {
                    return Ok(false);
                };
                self.read.extend(page.documents);
            }
        }
        Ok(true)
    }
}

/// Returns where all documents are that a filter matches; `None` if they may be at several places of a sharded collection.
pub fn place_of(definition: &CollectionDefinition, filter: &Filter, context: &Context) -> Option<Epk> {
    match &definition.shard_key {
        None => Some(Epk::start()),
        Some(shard_key) => {
            let value = filter.value_at(&shard_key.path(), context.collation.as_deref())?;
            Some(shard_key.place_of(value.as_raw_bson_ref()))
        }
    }
}

fn scan_of(place: Option<&Epk>, direction: ScanDirection) -> DocumentScan {
    match place {
        Some(place) => DocumentScan::at_place(place, direction),
        None => DocumentScan::new(direction),
    }
}
