//! What a line describes: an item of a container, or a document of a collection.

use std::sync::Arc;

use bolide_model::document::Document;
use bolide_model::epk::Epk;
use bolide_model::ttl::{Own, Stamp};
use bolide_model::{Error, Result, UnixSeconds};
use bolide_mql::{document, value};

use crate::container::{CollectionDefinition, ContainerState};
use crate::content::logical;
use crate::documents::{DocumentDraft, DraftOptions};
use crate::format::etag::Etag;
use crate::format::keys::{LogPosition, UniqueKey};
use crate::format::record::{Content, Parts, Record};
use crate::items::{number_in_range, unique_keys};
use crate::partition::Partition;

/// An item or a document to load.
pub(super) struct Loaded {
    pub last_modified: UnixSeconds,
    /// What begins its item key.
    pub epk: Epk,
    content: LoadedContent,
}

enum LoadedContent {
    Item(Document),
    Document(Box<DocumentDraft>),
}

impl Loaded {
    /// Parses a line, and checks it. A time later than `now` becomes `now`.
    ///
    /// # Errors
    /// `BadRequest` if it is not an item of the container; the errors of items.
    pub fn new(state: &ContainerState, options: DraftOptions, text: &[u8], now: UnixSeconds) -> Result<Loaded> {
        match &state.collection {
            None => Loaded::item(state, text, now),
            Some(collection) => Loaded::document(collection, options, text, now),
        }
    }

    fn item(state: &ContainerState, text: &[u8], now: UnixSeconds) -> Result<Loaded> {
        let last_modified = serde_json::from_slice::<serde_json::Value>(text)
            .ok()
            .and_then(|item| item.get("_ts")?.as_i64())
            .ok_or_else(|| Error::bad_request("every item needs an integer _ts"))?;
        let document = Document::parse_shown(text)?;
        document.id()?;
        own_ttl(&document, state)?;
        let definition = &state.properties.partition_key;
        let key = document.partition_key(definition);
        definition.check_full(&key)?;
        let epk = logical::of(definition, &key);
        Ok(Loaded {
            last_modified: UnixSeconds(last_modified).min(now),
            epk,
            content: LoadedContent::Item(document),
        })
    }

    fn document(
        collection: &Arc<CollectionDefinition>,
        options: DraftOptions,
        text: &[u8],
        now: UnixSeconds,
    ) -> Result<Loaded> {
        let refused = |error: bolide_mql::Error| Error::bad_request(error.to_string());
        let (last_modified, document) = value::json::read_line(text).map_err(Error::bad_request)?;
        document::check_stored(&document).map_err(refused)?;
        let draft = DocumentDraft::new(document, collection, options).map_err(refused)?;
        Ok(Loaded {
            last_modified: UnixSeconds(last_modified).min(now),
            epk: draft.place.clone(),
            content: LoadedContent::Document(Box::new(draft)),
        })
    }

    /// Returns the id, or the encoded `_id`.
    ///
    /// # Errors
    /// `BadRequest` if an item has none.
    pub fn id(&self) -> Result<&[u8]> {
        match &self.content {
            LoadedContent::Item(item) => Ok(item.id()?.as_bytes()),
            LoadedContent::Document(draft) => Ok(&draft.id.0),
        }
    }

    /// Returns the unique keys.
    pub fn unique(&self, state: &ContainerState) -> Vec<UniqueKey> {
        match &self.content {
            LoadedContent::Item(item) => unique_keys(item, state),
            LoadedContent::Document(draft) => draft.unique.clone(),
        }
    }

    /// Returns whether it is a document of a collection.
    pub fn is_document(&self) -> bool {
        matches!(self.content, LoadedContent::Document(_))
    }

    /// Returns the record as which it is stored. `number`: its place in the order of the items of the partition.
    ///
    /// # Errors
    /// As [`Loaded::new`].
    pub fn record(
        &self,
        state: &ContainerState,
        partition: &Partition,
        version: LogPosition,
        number: u64,
    ) -> Result<Record> {
        let unique = self.unique(state);
        let text;
        let (own, deadlines, content, document) = match &self.content {
            LoadedContent::Item(item) => {
                text = item.to_stored_text()?;
                (own_ttl(item, state)?, &[][..], Content::Json, text.as_bytes())
            }
            LoadedContent::Document(draft) => {
                let bytes = draft.document.as_bytes();
                (draft.own, &draft.deadlines[..], Content::Bson, bytes)
            }
        };
        Ok(Record::new(&Parts {
            version,
            last_modified: self.last_modified,
            stamp: Stamp::new(self.last_modified, own),
            etag: Etag::of_write(u64::from(partition.id.number()), version.lsn, version.seq),
            number: number_in_range(partition.range, number),
            id: self.id()?,
            deadlines,
            unique: &unique,
            content,
            document,
        }))
    }
}

/// Returns an item's own ttl. Where TTL is off, stores may contain invalid ones (TTL-217), and an import must accept what was exported from them.
fn own_ttl(document: &Document, state: &ContainerState) -> Result<Own> {
    match document.own_ttl() {
        Err(_) if !state.properties.policy.is_on() => Ok(Own::Absent),
        own => own,
    }
}
