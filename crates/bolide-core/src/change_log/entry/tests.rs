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
    let entry = |kind, current, previous: Option<Record>| HistoryEntry {
        kind,
        crts: UnixSeconds(9),
        time: CommitTime(77),
        happened: UnixMillis(9_876),
        item_key: Bytes::from_static(b"key"),
        current,
        previous_version: previous.as_ref().map(Record::version),
        previous,
        note: Bytes::new(),
    };
    let kept = vec![
        entry(ChangeKind::Create, Some(record(1)), None),
        entry(ChangeKind::Replace, Some(record(2)), Some(record(1))),
        entry(ChangeKind::Delete, None, Some(record(2))),
        entry(ChangeKind::Expire, None, Some(record(2))),
    ];
    let without_previous = kept.iter().map(|entry| HistoryEntry {
        previous: None,
        note: Bytes::from_static(b"note"),
        ..entry.clone()
    });
    kept.clone().into_iter().chain(without_previous).collect()
}

#[test]
fn an_entry_gives_back_what_it_was_made_of() {
    for entry in entries() {
        let bytes = entry.encode();
        assert_eq!(HistoryEntry::crts_of(&bytes), Some(UnixSeconds(9)));
        assert_eq!(HistoryEntry::time_of(&bytes), Some(CommitTime(77)));
        assert_eq!(HistoryEntry::decode(&bytes), Ok(entry));
    }
}

#[test]
fn damaged_entries_are_errors() {
    for entry in entries() {
        let bytes = entry.encode();
        for length in 0..bytes.len() {
            assert!(
                HistoryEntry::decode(&bytes.slice(..length)).is_err(),
                "{:?} {length}",
                entry.kind
            );
        }
        for other in ChangeKind::ALL.into_iter().filter(|other| *other != entry.kind) {
            let mut bytes = bytes.to_vec();
            bytes[1] = other as u8;
            // A replaced version may be taken for a created one if the previous record is not kept.
            let is_like = match (entry.kind, other) {
                (ChangeKind::Delete, ChangeKind::Expire) | (ChangeKind::Expire, ChangeKind::Delete) => true,
                (ChangeKind::Create, ChangeKind::Replace) => true,
                (ChangeKind::Replace, ChangeKind::Create) => entry.previous.is_none(),
                _ => false,
            };
            assert_eq!(HistoryEntry::decode(&bytes.into()).is_ok(), is_like, "{other:?}");
        }
    }
}

#[test]
fn entries_of_the_first_format_are_read() {
    for entry in entries().into_iter().filter(|entry| entry.note.is_empty()) {
        let mut bytes = BytesMut::new();
        bytes.put_u8(1);
        bytes.put_u8(entry.kind as u8);
        bytes.put_i64(9);
        bytes.put_u16(3);
        bytes.put_slice(b"key");
        let current = entry.current.as_ref().map(Record::bytes);
        bytes.put_u32(current.map_or(0, |record| record.len() as u32));
        let records = [current, entry.previous.as_ref().map(Record::bytes)];
        records.into_iter().flatten().for_each(|record| bytes.put_slice(record));
        let time = CommitTime::first_of(UnixSeconds(9).millis());
        assert_eq!(
            HistoryEntry::decode(&bytes.freeze()),
            Ok(HistoryEntry {
                time,
                happened: UnixMillis(9_000),
                ..entry
            })
        );
    }
}
