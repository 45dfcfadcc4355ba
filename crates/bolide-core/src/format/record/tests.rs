use super::*;

const DOCUMENT: &str = r#"{"id":"ä"}"#;

fn unique(index: u32, byte: u8) -> UniqueKey {
    UniqueKey {
        index,
        digest: [byte; DIGEST_BYTES],
    }
}

fn sample(unique: &[UniqueKey]) -> Record {
    Record::new(&Parts {
        version: LogPosition { lsn: Lsn(7), seq: 3 },
        last_modified: UnixSeconds(1_700_000_000),
        stamp: Stamp {
            class: Class::Own,
            base: UnixSeconds(1_700_000_020),
        },
        etag: Etag(42),
        number: 9,
        id: "ä".as_bytes(),
        deadlines: &[],
        unique,
        content: Content::Json,
        document: DOCUMENT.as_bytes(),
    })
}

#[test]
fn a_record_gives_back_what_it_was_made_of() {
    let keys = [unique(0, 1), unique(1, 2)];
    let record = Record::decode(sample(&keys).bytes().clone()).expect("just made");
    assert_eq!(record.version(), LogPosition { lsn: Lsn(7), seq: 3 });
    assert_eq!(record.last_modified(), UnixSeconds(1_700_000_000));
    assert_eq!(
        record.stamp(),
        Stamp {
            class: Class::Own,
            base: UnixSeconds(1_700_000_020)
        }
    );
    assert_eq!(record.etag(), Etag(42));
    assert_eq!(record.number(), 9);
    assert_eq!(record.id(), "ä");
    assert_eq!(record.unique().collect::<Vec<_>>(), keys);
    assert_eq!(&record.document()[..], DOCUMENT.as_bytes());
    assert_eq!(record.size(), 11);
}

#[test]
fn every_truncation_is_an_error_or_a_shorter_document_never_a_panic() {
    let whole = sample(&[unique(0, 1)]);
    let document_at = whole.bytes().len() - whole.size();
    for length in 0..document_at {
        assert!(Record::decode(whole.bytes().slice(..length)).is_err(), "{length}");
    }
}

const BSON: &[u8] = b"\x05\0\0\0\0";

fn document(deadlines: &[Deadline], unique: &[UniqueKey]) -> Record {
    Record::new(&Parts {
        version: LogPosition { lsn: Lsn(7), seq: 3 },
        last_modified: UnixSeconds(100),
        stamp: Stamp {
            class: Class::Inherited,
            base: UnixSeconds(100),
        },
        etag: Etag(42),
        number: 9,
        id: &[0xFF, 0],
        deadlines,
        unique,
        content: Content::Bson,
        document: BSON,
    })
}

fn deadline(rule: u32, date: i64) -> Deadline {
    Deadline {
        rule: RuleId(rule),
        date: UnixMillis(date),
    }
}

#[test]
fn a_document_gives_back_its_id_deadlines_and_unique_keys() {
    let (dates, keys) = (
        [deadline(1, -5), deadline(9, i64::MAX)],
        [unique(4, 1), unique(4, 2), unique(70_000, 3)],
    );
    let record = Record::decode(document(&dates, &keys).bytes().clone()).expect("just made");
    assert_eq!(record.content(), Content::Bson);
    assert_eq!(record.id_bytes(), [0xFF, 0]);
    assert_eq!(record.deadlines().collect::<Vec<_>>(), dates);
    assert_eq!(record.unique().collect::<Vec<_>>(), keys);
    assert_eq!(record.document_bytes(), BSON);
    let changed = record.with_index_fields(&dates[..1], &[]);
    assert_eq!((changed.deadlines().count(), changed.unique().count()), (1, 0));
    assert_eq!(
        (changed.version(), changed.etag(), changed.document_bytes()),
        (record.version(), record.etag(), BSON)
    );
}

#[test]
fn every_truncation_of_a_document_is_an_error_and_never_a_panic() {
    let whole = document(&[deadline(1, 5)], &[unique(4, 1)]);
    let document_at = whole.bytes().len() - whole.size();
    for length in 0..document_at {
        assert!(Record::decode(whole.bytes().slice(..length)).is_err(), "{length}");
    }
}
