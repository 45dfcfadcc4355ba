//! An item as clients see it.

use std::sync::Arc;

use bolide_model::document::Document;
use bolide_model::rid::{ContainerRid, ItemRid};
use bolide_model::ttl::Stamp;
use bolide_model::{Error, ErrorKind, Lsn, Result, UnixSeconds};
use bolide_mql::bson::RawDocument;
use bolide_mql::value::json;
use bolide_query::SystemProperties;
use bytes::Bytes;

use crate::format::etag::Etag;
use crate::format::record::{Content, Record};

/// The system properties are not longer, in bytes.
const SYSTEM_BYTES: usize = 256;

/// A stored item. Its document stays as it was written; system properties are added when it is returned to clients.
#[derive(Debug, Clone)]
pub struct StoredItem {
    container: ContainerRid,
    record: Record,
    /// What stands for the document if that is BSON.
    view: Option<Arc<DocumentView>>,
}

/// A document of a MongoDB collection as a JSON item (docs/mongodb.md, "One data set through both APIs").
#[derive(Debug)]
struct DocumentView {
    id: String,
    json: Vec<u8>,
}

impl DocumentView {
    fn of(record: &Record) -> Arc<DocumentView> {
        // Checksums guard what is stored; of a document that is damaged all the same, an object without members is left.
        let document = RawDocument::from_bytes(record.document_bytes()).ok();
        let id = document.and_then(|document| document.get("_id").ok().flatten());
        Arc::new(DocumentView {
            id: id.map(json::item_id).unwrap_or_default(),
            json: document.map_or_else(|| b"{}".to_vec(), json::item),
        })
    }
}

impl StoredItem {
    pub(crate) fn new(container: ContainerRid, record: Record) -> StoredItem {
        let view = match record.content() {
            Content::Json => None,
            Content::Bson => Some(DocumentView::of(&record)),
        };
        StoredItem {
            container,
            record,
            view,
        }
    }

    /// Returns the resource id.
    pub fn rid(&self) -> ItemRid {
        ItemRid::new(self.container, self.record.number())
    }

    /// Returns the version.
    pub fn etag(&self) -> Etag {
        self.record.etag()
    }

    /// Returns `_ts`: when the item was last written.
    pub fn last_modified(&self) -> UnixSeconds {
        self.record.last_modified()
    }

    /// Returns the log sequence number of the last write.
    pub fn lsn(&self) -> Lsn {
        self.record.version().lsn
    }

    /// Returns the id that the client gave the item.
    pub fn id(&self) -> &str {
        match &self.view {
            None => self.record.id(),
            Some(view) => &view.id,
        }
    }

    /// Returns the document as the text of a JSON object, without system properties.
    pub(crate) fn document_json(&self) -> &[u8] {
        match &self.view {
            None => self.record.document_bytes(),
            Some(view) => &view.json,
        }
    }

    /// Returns the bytes that the item takes in memory beside its record.
    pub(crate) fn view_bytes(&self) -> usize {
        self.view.as_ref().map_or(0, |view| view.id.len() + view.json.len())
    }

    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// Returns the size of the document in bytes, which is approximately that of its JSON text.
    pub fn document_bytes(&self) -> usize {
        self.document_json().len()
    }

    /// Returns `_self`: the item's link by resource ids.
    pub(crate) fn self_link(&self) -> String {
        format!("{}docs/{}/", self.container.self_link(), self.rid())
    }

    /// Returns the whole item as JSON text: the document, then `_rid`, `_self`, `_etag`, `_attachments` and `_ts` (cosmos-rest §3.1).
    pub fn to_json(&self) -> Bytes {
        self.to_json_with(true, "")
    }

    /// As [`StoredItem::to_json`], without `_self` and `_attachments`, for clients that exclude system properties.
    pub fn to_json_without_links(&self) -> Bytes {
        self.to_json_with(false, "")
    }

    /// As [`StoredItem::to_json`], with `_lsn` at the end, for change feeds.
    pub fn to_json_with_lsn(&self) -> Bytes {
        self.to_json_with(true, &format!(",\"_lsn\":{}", self.lsn()))
    }

    fn to_json_with(&self, has_links: bool, more: &str) -> Bytes {
        let document = self.document_json();
        let members = document.strip_suffix(b"}").unwrap_or(document);
        let system = if has_links {
            self.system_properties()
        } else {
            self.system_properties_without_links()
        };
        let comma: &[u8] = if members.len() > 1 { b"," } else { b"" };
        let pieces: [&[u8]; 5] = [members, comma, system.as_bytes(), more.as_bytes(), b"}"];
        // Of exactly the length of the text: of a longer vector, bytes would be made with a second allocation.
        pieces.concat().into()
    }

    /// Returns `_rid`, `_self`, `_etag`, `_attachments` and `_ts` as members of an object.
    // Copied in pieces: formatting them took a fifteenth of the time of a point read.
    fn system_properties(&self) -> SystemText {
        let rid = self.rid().text();
        let (database, container) = (self.container.database().text(), self.container.text());
        let etag = self.etag().text();
        SystemText::of(&[
            b"\"_rid\":\"",
            rid.as_str().as_bytes(),
            b"\",\"_self\":\"dbs/",
            database.as_str().as_bytes(),
            b"/colls/",
            container.as_str().as_bytes(),
            b"/docs/",
            rid.as_str().as_bytes(),
            b"/\",\"_etag\":\"\\\"",
            Etag::guid(&etag),
            b"\\\"\",\"_attachments\":\"attachments/\",\"_ts\":",
            itoa::Buffer::new().format(self.last_modified().0).as_bytes(),
        ])
    }

    /// Returns `_rid`, `_etag` and `_ts` as members of an object.
    fn system_properties_without_links(&self) -> SystemText {
        let etag = self.etag().text();
        SystemText::of(&[
            b"\"_rid\":\"",
            self.rid().text().as_str().as_bytes(),
            b"\",\"_etag\":\"\\\"",
            Etag::guid(&etag),
            b"\\\"\",\"_ts\":",
            itoa::Buffer::new().format(self.last_modified().0).as_bytes(),
        ])
    }

    /// Parses the document of a record, for changing it.
    ///
    /// # Errors
    /// `Corrupt` if the stored text is not an object.
    pub(crate) fn document(record: &Record) -> Result<Document> {
        Document::parse(&record.document())
            .map_err(|_| Error::new(ErrorKind::Corrupt, "a stored item is not a JSON object"))
    }
}

impl SystemProperties for StoredItem {
    fn last_modified(&self) -> i64 {
        self.record.last_modified().0
    }

    fn stamp(&self) -> Stamp {
        self.record.stamp()
    }

    /// Computes the length without writing the members, because a scan calls this for every item.
    fn members_bytes(&self) -> usize {
        self.record.system_members_bytes()
    }

    fn write_members(&self, out: &mut String) {
        out.push_str(self.system_properties().as_str());
    }
}

/// System properties as members of an object, without an allocation.
struct SystemText {
    text: [u8; SYSTEM_BYTES],
    length: usize,
}

impl SystemText {
    /// Joins pieces, which are ASCII.
    fn of(pieces: &[&[u8]]) -> SystemText {
        let (mut text, mut length) = ([0; SYSTEM_BYTES], 0);
        for piece in pieces {
            text[length..length + piece.len()].copy_from_slice(piece);
            length += piece.len();
        }
        SystemText { text, length }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.text[..self.length]
    }

    fn as_str(&self) -> &str {
        str::from_utf8(self.as_bytes()).expect("all of it is ASCII")
    }
}

#[cfg(test)]
mod tests;
