//! The documents of events.

use std::sync::Arc;

use bolide_core::{
    CatalogEvent, CatalogEventKind, ChangeKind, DocumentChange, DocumentId, RequestContext, StreamScope,
};
use bolide_model::UnixMillis;
use bolide_model::epk::Epk;
use bolide_model::time::CommitTime;
use bolide_mql::{Code, Error, Result};
use bson::raw::cstr;
use bson::spec::BinarySubtype;
use bson::{Binary, DateTime, RawBson, RawDocument, RawDocumentBuf, rawdoc};
use uuid::Uuid;

use super::options::{BeforeChange, FullDocument, Options};
use super::token::Token;
use crate::codes;
use crate::state::{MongoState, timestamp};

/// When something happened: in the order of commits, and by the clock.
pub type At = (CommitTime, UnixMillis);

/// Makes the events of a stream.
pub struct Events<'a> {
    pub state: &'a Arc<MongoState>,
    pub scope: &'a StreamScope,
    pub options: &'a Options,
    /// The time of the command, at which documents are looked up.
    pub now: RequestContext,
}

impl Events<'_> {
    /// Returns the event of a change of a document.
    ///
    /// # Errors
    /// `NoMatchingDocument` if an image is required that is not kept; of the storage.
    pub async fn of_document(&self, token: Token, at: At, change: &DocumentChange) -> Result<RawDocumentBuf> {
        let name = match change.kind {
            ChangeKind::Create => "insert",
            ChangeKind::Replace if change.note.is_empty() => "replace",
            ChangeKind::Replace => "update",
            ChangeKind::Delete | ChangeKind::Expire => "delete",
        };
        let mut event = self.begin(token, name, at, change.uuid);
        let key = document_key(change)?;
        let full = match name {
            "insert" | "replace" => Some(document(change.current.as_deref())),
            "update" => self.after_update(change, &key).await?,
            _ => None,
        };
        if let Some(full) = full {
            event.append(cstr!("fullDocument"), full);
        }
        event.append(cstr!("ns"), namespace(&change.database, &change.collection));
        event.append(cstr!("documentKey"), key);
        if name == "update" {
            event.append(cstr!("updateDescription"), self.description(change)?);
        }
        if name != "insert"
            && let Some(before) = self.before(change)?
        {
            event.append(cstr!("fullDocumentBeforeChange"), before);
        }
        Ok(event)
    }

    /// Returns the event of a collection or database; `None` if the stream does not tell it.
    ///
    /// # Errors
    /// `InternalError` if the event is damaged.
    pub fn of_catalog(&self, token: Token, event: &CatalogEvent) -> Result<Option<RawDocumentBuf>> {
        let (name, is_expanded) = match event.kind {
            CatalogEventKind::Create => ("create", true),
            CatalogEventKind::CreateIndexes => ("createIndexes", true),
            CatalogEventKind::DropIndexes => ("dropIndexes", true),
            CatalogEventKind::Modify => ("modify", true),
            CatalogEventKind::Drop => ("drop", false),
            CatalogEventKind::Rename => ("rename", false),
            CatalogEventKind::DropDatabase => ("dropDatabase", false),
        };
        if is_expanded && !self.options.is_expanded {
            return Ok(None);
        }
        let at = (event.time(), event.happened());
        let mut document = self.begin(token, name, at, event.uuid);
        document.append(
            cstr!("ns"),
            match event.kind {
                CatalogEventKind::DropDatabase => rawdoc! { "db": event.database.as_str() },
                _ => namespace(&event.database, &event.collection),
            },
        );
        if let Some(to) = &event.to {
            let to = namespace(&event.database, to);
            document.append(cstr!("to"), to.clone());
            if self.options.is_expanded {
                let mut description = rawdoc! { "to": to };
                if let Some(replaced) = event.replaced {
                    description.append(cstr!("dropTarget"), identity(replaced));
                }
                document.append(cstr!("operationDescription"), description);
            }
        }
        if is_expanded {
            describe(&mut document, event)?;
        }
        Ok(Some(document))
    }

    /// Returns the event that ends the stream.
    pub fn invalidation(&self, token: Token, at: At) -> RawDocumentBuf {
        self.begin(token, "invalidate", at, None)
    }

    /// Whether the stream ends after an event.
    pub fn invalidates(&self, event: &CatalogEvent) -> bool {
        match self.scope {
            StreamScope::Collection { .. } => matches!(event.kind, CatalogEventKind::Drop | CatalogEventKind::Rename),
            StreamScope::Database(_) => event.kind == CatalogEventKind::DropDatabase,
            StreamScope::Cluster => false,
        }
    }

    fn begin(&self, token: Token, name: &str, (time, happened): At, uuid: Option<Uuid>) -> RawDocumentBuf {
        let mut event = rawdoc! {
            "_id": token.to_document(),
            "operationType": name,
            "clusterTime": timestamp(time),
        };
        if let Some(uuid) = uuid.filter(|_| self.options.is_expanded) {
            event.append(cstr!("collectionUUID"), identity(uuid));
        }
        event.append(cstr!("wallTime"), DateTime::from_millis(happened.0));
        event
    }

    /// Returns the document that an update event has; `None` if it has none.
    async fn after_update(&self, change: &DocumentChange, key: &RawDocument) -> Result<Option<RawBson>> {
        let is_kept = change.previous.is_some();
        match self.options.full_document {
            FullDocument::Default => Ok(None),
            FullDocument::UpdateLookup => self.look_up(change, key).await.map(Some),
            FullDocument::WhenAvailable | FullDocument::Required if is_kept => {
                Ok(Some(document(change.current.as_deref())))
            }
            FullDocument::WhenAvailable => Ok(Some(RawBson::Null)),
            FullDocument::Required => Err(missing("post-image", key)),
        }
    }

    /// Returns the document as it is stored now; null if there is none.
    async fn look_up(&self, change: &DocumentChange, key: &RawDocument) -> Result<RawBson> {
        let account = &self.state.account;
        let Some(container) = account.find_collection(&change.database, &change.collection) else {
            return Ok(RawBson::Null);
        };
        let Some(definition) = container.collection().filter(|now| Some(now.uuid) == change.uuid) else {
            return Ok(RawBson::Null);
        };
        let id = key.get("_id").ok().flatten().unwrap_or(bson::RawBsonRef::Null);
        let id = DocumentId::of(id, definition.collation.as_deref());
        let place = match change.current.as_deref().map(RawDocument::from_bytes) {
            Some(Ok(current)) => definition.place_of(current)?,
            _ => Epk::start(),
        };
        let found = account.read_scope(&self.now).find(&container, &place, &id).await;
        let found = found.map_err(|error| codes::error(&error))?;
        Ok(found.map_or(RawBson::Null, |found| found.document().to_owned().into()))
    }

    /// Returns the document before the change; `None` if the stream does not have it.
    fn before(&self, change: &DocumentChange) -> Result<Option<RawBson>> {
        match (self.options.before_change, &change.previous) {
            (BeforeChange::Off, _) => Ok(None),
            (BeforeChange::Required, None) => Err(missing("pre-image", &document_key(change)?)),
            (_, previous) => Ok(Some(document(previous.as_deref()))),
        }
    }

    fn description(&self, change: &DocumentChange) -> Result<RawDocumentBuf> {
        let stored = RawDocument::from_bytes(&change.note).map_err(|_| damaged())?;
        let mut description = RawDocumentBuf::new();
        for field in stored {
            let (name, value) = field.map_err(|_| damaged())?;
            if name != cstr!("disambiguatedPaths") || self.options.is_expanded {
                description.append(name, value);
            }
        }
        Ok(description)
    }
}

/// Adds what the event of a definition tells: `operationDescription` and `stateBeforeChange`.
fn describe(document: &mut RawDocumentBuf, event: &CatalogEvent) -> Result<()> {
    let stored = RawDocument::from_bytes(&event.description).map_err(|_| damaged())?;
    if event.kind != CatalogEventKind::Create {
        for field in stored {
            let (name, value) = field.map_err(|_| damaged())?;
            document.append(name, value);
        }
        return Ok(());
    }
    let mut description = stored.to_owned();
    description.append(
        cstr!("idIndex"),
        rawdoc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" },
    );
    document.append(cstr!("operationDescription"), description);
    Ok(())
}

/// Returns the `_id` of a changed document, as a document.
fn document_key(change: &DocumentChange) -> Result<RawDocumentBuf> {
    let key = RawDocument::from_bytes(&change.key).map_err(|_| damaged())?;
    Ok(key.to_owned())
}

fn document(bytes: Option<&[u8]>) -> RawBson {
    match bytes.map(RawDocument::from_bytes) {
        Some(Ok(document)) => document.to_owned().into(),
        _ => RawBson::Null,
    }
}

fn namespace(database: &str, collection: &str) -> RawDocumentBuf {
    rawdoc! { "db": database, "coll": collection }
}

fn identity(uuid: Uuid) -> Binary {
    Binary {
        subtype: BinarySubtype::Uuid,
        bytes: uuid.as_bytes().to_vec(),
    }
}

fn missing(image: &str, key: &RawDocument) -> Error {
    let text = format!(
        "Change stream was configured to require a {image} for all update, delete and replace events, but the {image} was not found for event: {key:?}"
    );
    Error::new(Code::NO_MATCHING_DOCUMENT, text)
}

fn damaged() -> Error {
    Error::new(Code::INTERNAL_ERROR, "a change is damaged")
}
