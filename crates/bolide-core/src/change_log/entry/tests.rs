use bolide_model::Lsn;
use bolide_model::ttl::{Class, Stamp};

use super::*;
use crate::format::etag::Etag;
use crate::format::keys::LogPosition;
use crate::format::record::Content;
use crate::format::record::Parts;

fn record(lsn: u64) -> Record {
    Record::new(&Parts {
        version: LogPosition { lsn: Lsn(lsn), seq: 0 },
        last_modified: UnixSeconds(5),
        stamp: Stamp {
            class: Class::Never,
            base: UnixSeconds(5),
        },
        etag: Etag(1),
        number: 2,
        id: b"a",
        deadlines: &[],
        content: Content::Json,
        unique: &[],
        document: b"{}",
    })
}

fn entries() -> Vec<HistoryEntry> {
    let entry = |kind, current, previous| HistoryEntry {
        kind,
        crts: UnixSeconds(9),
        item_key: Bytes::from_static(b"key"),
        current,
        previous,
    };
    vec![
        entry(ChangeKind::Create, Some(record(1)), None),
        entry(ChangeKind::Replace, Some(record(2)), Some(record(1))),
        entry(ChangeKind::Delete, None, Some(record(2))),
        entry(ChangeKind::Expire, None, Some(record(2))),
    ]
}

#[test]
fn an_entry_gives_back_what_it_was_made_of() {
    for entry in entries() {
        let bytes = entry.encode();
        assert_eq!(HistoryEntry::crts_of(&bytes), Some(UnixSeconds(9)));
        assert_eq!(HistoryEntry::decode(&bytes), Ok(entry));
    }
}

#[test]
fn damaged_entries_are_errors() {
    for entry in entries() {
        let bytes = entry.encode();
        // The last bytes are a document, which may be shorter.
        for length in 0..bytes.len() - 2 {
            assert!(
                HistoryEntry::decode(&bytes.slice(..length)).is_err(),
                "{:?} {length}",
                entry.kind
            );
        }
        for other in ChangeKind::ALL.into_iter().filter(|other| *other != entry.kind) {
            let mut bytes = bytes.to_vec();
            bytes[1] = other as u8;
            let is_like = matches!(
                (entry.kind, other),
                (ChangeKind::Delete, ChangeKind::Expire) | (ChangeKind::Expire, ChangeKind::Delete)
            );
            assert_eq!(HistoryEntry::decode(&bytes.into()).is_ok(), is_like, "{other:?}");
        }
    }
}
