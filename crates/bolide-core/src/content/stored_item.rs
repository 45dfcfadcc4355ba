//! An item as clients see it.

use std::fmt::{self, Write};
use std::sync::Arc;

use bolide_model::document::Document;
use bolide_model::rid::{ContainerRid, ItemRid};
use bolide_model::ttl::Stamp;
use bolide_model::{Error, ErrorKind, Lsn, Result, UnixSeconds};
use bolide_mql::bson::RawDocument;
use bolide_mql::value::json;
use bolide_query::SystemProperties;
use bytes::{BufMut, Bytes, BytesMut};

use crate::format::etag::Etag;
use crate::format::record::{Content, Record};

/// Approximate size of the system properties, in bytes.
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
        let mut json = BytesMut::with_capacity(document.len() + SYSTEM_BYTES);
        json.put_slice(members);
        if members.len() > 1 {
            json.put_u8(b',');
        }
        // Writing to a growing buffer cannot fail.
        let _ = if has_links {
            self.write_system_properties(&mut json)
        } else {
            self.write_without_links(&mut json)
        };
        let _ = json.write_str(more);
        json.put_u8(b'}');
        json.freeze()
    }

    /// Writes `_rid`, `_self`, `_etag`, `_attachments` and `_ts` as members of an object.
    // Written in pieces: formatting them all at once took a fifteenth of the time of a point read.
    fn write_system_properties(&self, out: &mut dyn Write) -> fmt::Result {
        let rid = self.rid().text();
        let (database, container) = (self.container.database().text(), self.container.text());
        let etag = self.etag().text();
        let etag = str::from_utf8(&etag).map_err(|_| fmt::Error)?.trim_matches('"');
        let pieces = [
            "\"_rid\":\"",
            rid.as_str(),
            "\",\"_self\":\"dbs/",
            database.as_str(),
            "/colls/",
            container.as_str(),
            "/docs/",
            rid.as_str(),
            "/\",\"_etag\":\"\\\"",
            etag,
            "\\\"\",\"_attachments\":\"attachments/\",\"_ts\":",
        ];
        pieces.into_iter().try_for_each(|piece| out.write_str(piece))?;
        write!(out, "{}", self.last_modified().0)
    }

    /// Writes `_rid`, `_etag` and `_ts` as members of an object.
    fn write_without_links(&self, out: &mut dyn Write) -> fmt::Result {
        let etag = self.etag().text();
        let etag = str::from_utf8(&etag).map_err(|_| fmt::Error)?.trim_matches('"');
        let (rid, ts) = (self.rid().text(), self.last_modified().0);
        write!(
            out,
            "\"_rid\":\"{}\",\"_etag\":\"\\\"{etag}\\\"\",\"_ts\":{ts}",
            rid.as_str()
        )
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

    /// Computes the length without writing the members, because a scan calls this for every item. All members except `_ts` have a fixed length.
    fn members_bytes(&self) -> usize {
        const ALL_BUT_DIGITS: usize = 194;
        let ts = self.record.last_modified().0;
        let digits = ts.unsigned_abs().checked_ilog10().unwrap_or_default() as usize + 1;
        ALL_BUT_DIGITS + digits + usize::from(ts < 0)
    }

    fn write_members(&self, out: &mut String) {
        // Writing to a growing buffer cannot fail.
        let _ = self.write_system_properties(out);
    }
}

#[cfg(test)]
mod tests;
