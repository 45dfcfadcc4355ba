use bolide_model::ttl::{RuleId, Stamp};
use bolide_model::{Lsn, UnixMillis, UnixSeconds};
use bolide_mql::bson::{DateTime, RawDocumentBuf, rawdoc};
use bolide_mql::index::{IndexDefinition, ParseOptions};

use super::*;
use crate::format::etag::Etag;
use crate::format::keys::LogPosition;
use crate::format::record::Parts;

/// A collection with a TTL index on `at` and a unique index on `u`, whose ids are 1 and 2.
fn collection() -> CollectionDefinition {
    let id_index = IndexDefinition::id_index(None).expect("a definition");
    let mut collection = CollectionDefinition::new(RawDocumentBuf::new(), None, id_index);
    for (specification, seconds) in [
        (
            rawdoc! {"key": {"at": 1}, "name": "at_1", "expireAfterSeconds": 10},
            Some(10),
        ),
        (rawdoc! {"key": {"u": 1}, "name": "u_1", "unique": true}, None),
    ] {
        let definition = IndexDefinition::parse(&specification, &ParseOptions::default()).expect("valid");
        collection.add_index(definition, seconds, false);
    }
    collection
}

fn document() -> RawDocumentBuf {
    rawdoc! {"_id": 1, "at": DateTime::from_millis(5_000), "u": 7}
}

fn deadline(rule: u32, date: i64) -> Deadline {
    Deadline {
        rule: RuleId(rule),
        date: UnixMillis(date),
    }
}

fn record(id: &[u8], deadlines: &[Deadline], unique: &[UniqueKey]) -> Record {
    Record::new(&Parts {
        version: LogPosition { lsn: Lsn(1), seq: 0 },
        last_modified: UnixSeconds(1),
        stamp: Stamp::new(UnixSeconds(1), bolide_model::ttl::Own::Absent),
        etag: Etag(1),
        number: 5,
        id,
        deadlines,
        unique,
        content: Content::Bson,
        document: document().as_bytes(),
    })
}

fn problems(collection: &CollectionDefinition, record: &Record) -> usize {
    let mut found = VerifyReport::default();
    check(collection, &keys::item_in_collection(5).bytes, record, &mut found);
    found.problems.len()
}

/// The encoded `_id`, and the unique keys of the document.
fn right() -> (Vec<u8>, Vec<UniqueKey>) {
    let id = DocumentId::of(RawBsonRef::Int32(1), None).0;
    let (_, unique) = index_fields(&document(), &collection(), TtlMode::Mongodb).expect("keys");
    assert_eq!(unique.iter().map(|unique| unique.index).collect::<Vec<_>>(), [2]);
    (id, unique)
}

#[test]
fn documents_have_the_fields_of_the_indexes_of_their_collection() {
    let (id, unique) = right();
    let other = [UniqueKey {
        index: 2,
        digest: [9; 16],
    }];
    for (what, record, count) in [
        ("right", record(&id, &[deadline(1, 5_000)], &unique), 0),
        ("another date", record(&id, &[deadline(1, 5_001)], &unique), 1),
        ("no deadline", record(&id, &[], &unique), 1),
        ("another unique key", record(&id, &[deadline(1, 5_000)], &other), 1),
        ("no unique key", record(&id, &[deadline(1, 5_000)], &[]), 1),
        ("another _id", record(b"x", &[deadline(1, 5_000)], &unique), 1),
    ] {
        assert_eq!(problems(&collection(), &record), count, "{what}");
    }
}

#[test]
fn fields_of_dropped_indexes_may_stay_and_those_of_new_ones_may_be_missing() {
    let (id, unique) = right();
    let mut dropped = collection();
    dropped.remove_index("at_1", UnixMillis(0));
    dropped.remove_index("u_1", UnixMillis(0));
    assert_eq!(problems(&dropped, &record(&id, &[deadline(1, 5_000)], &unique)), 0);
    assert_eq!(problems(&dropped, &record(&id, &[], &[])), 0);

    let mut building = collection();
    for index in &mut building.indexes {
        index.is_building = index.id > 0;
    }
    assert_eq!(problems(&building, &record(&id, &[], &[])), 0);
}

#[test]
fn versions_from_before_a_change_of_an_index_have_its_older_rule() {
    let (id, unique) = right();
    let mut changed = collection();
    let definition = changed.index("at_1").map(|index| (*index.definition).clone());
    changed.replace_index("at_1", definition.expect("there"), Some(99), UnixMillis(0));
    for rule in [1, 2] {
        assert_eq!(problems(&changed, &record(&id, &[deadline(rule, 5_000)], &unique)), 0);
    }
    assert_eq!(problems(&changed, &record(&id, &[deadline(3, 5_000)], &unique)), 1);
}
