//! Documents of another collection, for `$lookup`, `$graphLookup` and `$unionWith`.
//!
//! The first use of a whole collection keeps its documents, and an index on the field of the join, if they fit in the memory of a stage; so
//! a join reads the collection once. The others read it for every document. A join on `_id` always reads, as that is one read each.

use std::collections::HashMap;
use std::sync::Arc;

use bson::raw::{CString, RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, cstr};

use crate::aggregation::document::Document;
use crate::aggregation::limits::MAX_SUB_PIPELINE_DEPTH;
use crate::aggregation::namespace::Namespace;
use crate::aggregation::parser::Parser;
use crate::aggregation::source::{BoxSource, Documents};
use crate::aggregation::stage::{Each, Run, connect};
use crate::collation::Collation;
use crate::context::memory::StageMemory;
use crate::error::{Code, Error, Result};
use crate::filter::Filter;
use crate::path::field::FieldPath;
use crate::value::key;

/// Opens a collection or view.
pub(in crate::aggregation) fn open_collection(
    run: &Arc<Run>,
    namespace: &Namespace,
    filter: Option<&Filter>,
) -> Result<BoxSource> {
    open_at_depth(run, namespace, filter, 0)
}

fn open_at_depth(run: &Arc<Run>, namespace: &Namespace, filter: Option<&Filter>, depth: usize) -> Result<BoxSource> {
    let Some(view) = run.collections.view(namespace)? else {
        return run.collections.open(namespace, filter);
    };
    if depth == MAX_SUB_PIPELINE_DEPTH {
        let text = format!("View depth limit exceeded; maximum depth is {MAX_SUB_PIPELINE_DEPTH}");
        return Err(Error::new(Code::VIEW_DEPTH_LIMIT_EXCEEDED, text));
    }
    let pipeline = Parser::for_view(view.source.clone(), depth, &run.context).pipeline(&view.pipeline)?;
    let input = match pipeline.source() {
        Some(stage) => run.collections.open_stage(&view.source, stage)?,
        None => open_at_depth(run, &view.source, pipeline.leading_filter(), depth + 1)?,
    };
    connect(&pipeline.stages, input, run)
}

/// A collection that is joined with.
pub(super) struct Foreign {
    run: Arc<Run>,
    namespace: Namespace,
    field: Option<FieldPath>,
    /// Number of values that were looked for.
    lookups: u64,
    cache: Cache,
}

enum Cache {
    Unread,
    Kept {
        documents: Arc<[Document]>,
        by_key: HashMap<Vec<u8>, Vec<usize>>,
    },
    TooLarge,
}

impl Foreign {
    /// Returns a collection, and the field by which documents are found.
    pub(super) fn new(run: &Arc<Run>, namespace: Namespace, field: Option<FieldPath>) -> Foreign {
        Foreign {
            run: Arc::clone(run),
            namespace,
            field,
            lookups: 0,
            cache: Cache::Unread,
        }
    }

    /// Returns all documents.
    pub(super) fn all(&mut self, filter: Option<&Filter>) -> Result<BoxSource> {
        let collation = self.run.collation();
        let names_documents =
            |filter: &Filter| filter.id_equality(collation).is_some() || filter.id_in(collation).is_some();
        if filter.is_some_and(names_documents) {
            return open_collection(&self.run, &self.namespace, filter);
        }
        self.read()?;
        match &self.cache {
            Cache::Kept { documents, .. } => {
                let indexes = 0..documents.len();
                Ok(self.kept(documents, indexes))
            }
            _ => open_collection(&self.run, &self.namespace, filter),
        }
    }

    /// Returns the documents whose field equals one of the values, as `$eq` says.
    pub(super) fn matching(&mut self, values: &[RawBson]) -> Result<BoxSource> {
        let Some(field) = self.field.clone() else {
            return self.all(None);
        };
        let filter = Arc::new(equality(&field, values)?);
        let is_id = field.text() == "_id";
        if !is_id && let Some(found) = self.by_index(&filter, values.len())? {
            return Ok(self.filtered(found, filter));
        }
        if !is_id {
            self.read()?;
        }
        let candidates = match &self.cache {
            Cache::Kept { documents, by_key } if !is_id => {
                let mut indexes = Vec::new();
                for value in values {
                    let key = key::of(undefined_as_null(value.as_raw_bson_ref()), self.run.collation());
                    indexes.extend(by_key.get(&key).into_iter().flatten().copied());
                }
                indexes.sort_unstable();
                indexes.dedup();
                self.kept(documents, indexes)
            }
            _ => open_collection(&self.run, &self.namespace, Some(&filter))?,
        };
        Ok(self.filtered(candidates, filter))
    }

    /// Opens the documents of a filter, if an index finds them with less work than reading the collection once for all values. Not if that was done.
    fn by_index(&mut self, filter: &Filter, values: usize) -> Result<Option<BoxSource>> {
        if !matches!(self.cache, Cache::Unread) || self.run.collections.view(&self.namespace)?.is_some() {
            return Ok(None);
        }
        self.lookups += values as u64;
        self.run
            .collections
            .open_by_index(&self.namespace, filter, self.lookups)
    }

    fn filtered(&self, candidates: BoxSource, filter: Arc<Filter>) -> BoxSource {
        let run = Arc::clone(&self.run);
        Each::source(candidates, move |document| {
            let matches = filter.matches(&document.bytes, &run.context)?;
            Ok(matches.then_some(document))
        })
    }

    /// Returns kept documents that are still alive.
    fn kept<I>(&self, documents: &Arc<[Document]>, indexes: I) -> BoxSource
    where
        I: IntoIterator<Item = usize>,
        I::IntoIter: Send + 'static,
    {
        let documents = Arc::clone(documents);
        let all = Documents::new(
            indexes
                .into_iter()
                .filter_map(move |index| documents.get(index).cloned()),
        );
        let run = Arc::clone(&self.run);
        Each::source(Box::new(all), move |document| {
            run.context.interrupt.check(1)?;
            let is_live = document
                .lifetime
                .as_ref()
                .is_none_or(|lifetime| run.collections.is_live(lifetime));
            Ok(is_live.then_some(document))
        })
    }

    /// Reads the collection, if it has not been read yet.
    fn read(&mut self) -> Result<()> {
        if !matches!(self.cache, Cache::Unread) {
            return Ok(());
        }
        self.cache = Cache::TooLarge;
        let mut source = open_collection(&self.run, &self.namespace, None)?;
        let mut memory = StageMemory::new("$lookup");
        let mut documents = Vec::new();
        let mut by_key: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
        while let Some(document) = source.next()? {
            self.run.context.interrupt.check(1)?;
            let keys = match &self.field {
                Some(field) => keys(&document.bytes, field.names(), self.run.collation())?,
                None => Vec::new(),
            };
            let key_bytes: usize = keys.iter().map(|key| key.len() + size_of::<Vec<u8>>() * 2).sum();
            let bytes = key_bytes + document.memory();
            if !memory.has_room_for(bytes) {
                return Ok(());
            }
            memory.add(bytes)?;
            for key in keys {
                by_key.entry(key).or_default().push(documents.len());
            }
            documents.push(document);
        }
        self.cache = Cache::Kept {
            documents: documents.into(),
            by_key,
        };
        Ok(())
    }
}

/// Returns the filter of a join: `$in`, or `$or` where a value is a regular expression, which `$in` would match strings with.
fn equality(field: &FieldPath, values: &[RawBson]) -> Result<Filter> {
    let name = CString::try_from(field.text())?;
    let has_expression = values
        .iter()
        .any(|value| matches!(value, RawBson::RegularExpression(_)));
    let mut filter = RawDocumentBuf::new();
    if has_expression {
        let mut alternatives = RawArrayBuf::new();
        for value in values {
            let mut operator = RawDocumentBuf::new();
            operator.append(cstr!("$eq"), value);
            let mut condition = RawDocumentBuf::new();
            condition.append(&name, RawBson::Document(operator));
            alternatives.push(RawBson::Document(condition));
        }
        filter.append(cstr!("$or"), RawBson::Array(alternatives));
    } else {
        let mut operator = RawDocumentBuf::new();
        match values {
            [value] => operator.append(cstr!("$eq"), undefined_as_null(value.as_raw_bson_ref())),
            values => {
                let mut array = RawArrayBuf::new();
                for value in values {
                    array.push(undefined_as_null(value.as_raw_bson_ref()));
                }
                operator.append(cstr!("$in"), RawBson::Array(array));
            }
        }
        filter.append(&name, RawBson::Document(operator));
    }
    Filter::parse(&filter)
}

fn undefined_as_null(value: RawBsonRef<'_>) -> RawBsonRef<'_> {
    match value {
        RawBsonRef::Undefined => RawBsonRef::Null,
        other => other,
    }
}

/// Returns the keys by which a document may be found: of all values at the path, and of null where something is missing.
fn keys(document: &RawDocument, path: &[CString], collation: Option<&Collation>) -> Result<Vec<Vec<u8>>> {
    let mut keys = Vec::new();
    let mut add = |value: Option<RawBsonRef<'_>>| {
        keys.push(key::of(undefined_as_null(value.unwrap_or(RawBsonRef::Null)), collation));
    };
    visit(RawBsonRef::Document(document), path, true, &mut add)?;
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}

/// Returns the values of a path for a join: the elements of an array instead of the array.
pub(super) fn join_values(document: &RawDocument, path: &[CString]) -> Result<Vec<RawBson>> {
    let mut values = Vec::new();
    let mut add = |value: Option<RawBsonRef<'_>>| values.extend(value.map(RawBson::from));
    visit(RawBsonRef::Document(document), path, false, &mut add)?;
    Ok(values)
}

/// Visits the values at a path. Arrays on the way are opened, by elements and by number; at the end, their elements are visited, and with
/// `whole_arrays` they themselves. `None` stands for a missing value. Every step into an array is followed by a name of the path.
fn visit(
    value: RawBsonRef<'_>,
    path: &[CString],
    whole_arrays: bool,
    add: &mut dyn FnMut(Option<RawBsonRef<'_>>),
) -> Result<()> {
    let Some((name, rest)) = path.split_first() else {
        let RawBsonRef::Array(array) = value else {
            add(Some(value));
            return Ok(());
        };
        if whole_arrays {
            add(Some(value));
        }
        for element in array {
            add(Some(element?));
        }
        return Ok(());
    };
    match value {
        RawBsonRef::Document(document) => match document.get(name.as_str())? {
            Some(inner) => visit(inner, rest, whole_arrays, add),
            None => {
                add(None);
                Ok(())
            }
        },
        RawBsonRef::Array(array) => {
            let index = name.as_str().parse::<usize>().ok();
            let mut is_missing = true;
            for (place, element) in array.into_iter().enumerate() {
                let element = element?;
                if index == Some(place) {
                    visit(element, rest, whole_arrays, add)?;
                }
                if matches!(element, RawBsonRef::Document(_)) {
                    is_missing = false;
                    visit(element, path, whole_arrays, add)?;
                }
            }
            if is_missing {
                add(None);
            }
            Ok(())
        }
        _ => {
            add(None);
            Ok(())
        }
    }
}
