//! An item as clients see it.

use std::fmt::Write;

use bolide_model::document::Document;
use bolide_model::rid::{ContainerRid, ItemRid};
use bolide_model::{Error, ErrorKind, Lsn, Result, UnixSeconds};
use bytes::{BufMut, Bytes, BytesMut};

use crate::etag::Etag;
use crate::record::Record;

/// A stored item. Its document stays as it was written; system properties are added when it is shown.
#[derive(Debug, Clone)]
pub struct StoredItem {
    container: ContainerRid,
    record: Record,
}

impl StoredItem {
    pub(crate) fn new(container: ContainerRid, record: Record) -> StoredItem {
        StoredItem { container, record }
    }

    /// The resource id.
    pub fn rid(&self) -> ItemRid {
        ItemRid::new(self.container, self.record.number())
    }

    /// The version.
    pub fn etag(&self) -> Etag {
        self.record.etag()
    }

    /// `_ts`: when the item was last written.
    pub fn last_modified(&self) -> UnixSeconds {
        self.record.last_modified()
    }

    /// The log sequence number of the last write.
    pub fn lsn(&self) -> Lsn {
        self.record.version().lsn
    }

    /// The caller's name for it.
    pub fn id(&self) -> &str {
        self.record.id()
    }

    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// The whole item as JSON text: the document, then `_rid`, `_self`, `_etag`, `_attachments` and `_ts` (cosmos-rest §3.1).
    pub fn to_json(&self) -> Bytes {
        self.to_json_with("")
    }

    /// As [`StoredItem::to_json`], with `_lsn` at the end, as change feeds show it.
    pub fn to_json_with_lsn(&self) -> Bytes {
        self.to_json_with(&format!(",\"_lsn\":{}", self.lsn()))
    }

    fn to_json_with(&self, more: &str) -> Bytes {
        const SYSTEM_PROPERTIES: usize = 256;
        let document = self.record.document();
        let members = document.strip_suffix(b"}").unwrap_or(&document);
        let mut json = BytesMut::with_capacity(document.len() + SYSTEM_PROPERTIES);
        json.put_slice(members);
        let comma = if members.len() > 1 { "," } else { "" };
        let rid = self.rid();
        let database = self.container.database();
        let container = self.container;
        let etag = self.etag().to_string();
        let etag = etag.trim_matches('"');
        let ts = self.last_modified().0;
        // Writing to a growing buffer cannot fail.
        let _ = write!(
            json,
            "{comma}\"_rid\":\"{rid}\",\"_self\":\"dbs/{database}/colls/{container}/docs/{rid}/\",\
             \"_etag\":\"\\\"{etag}\\\"\",\"_attachments\":\"attachments/\",\"_ts\":{ts}{more}}}"
        );
        json.freeze()
    }

    /// The document as a tree, for changing it.
    ///
    /// # Errors
    /// `Corrupt` if the stored text is not an object.
    pub(crate) fn document(record: &Record) -> Result<Document> {
        Document::parse(&record.document())
            .map_err(|_| Error::new(ErrorKind::Corrupt, "a stored item is not a JSON object"))
    }
}
