use super::*;

const DOCUMENT: &str = r#"{"id":"ä"}"#;

fn sample(unique: &[UniqueDigest]) -> Record {
    Record::new(&Parts {
        version: LogPosition { lsn: Lsn(7), seq: 3 },
        last_modified: UnixSeconds(1_700_000_000),
        stamp: Stamp {
            class: Class::Own,
            base: UnixSeconds(1_700_000_020),
        },
        etag: Etag(42),
        number: 9,
        id: "ä",
        unique,
        document: DOCUMENT.as_bytes(),
    })
}

#[test]
fn a_record_gives_back_what_it_was_made_of() {
    let digests = [[1; DIGEST_BYTES], [2; DIGEST_BYTES]];
    let record = Record::decode(sample(&digests).bytes().clone()).expect("just made");
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
    assert_eq!(record.unique().collect::<Vec<_>>(), digests);
    assert_eq!(&record.document()[..], DOCUMENT.as_bytes());
    assert_eq!(record.size(), 11);
}

#[test]
fn every_truncation_is_an_error_or_a_shorter_document_never_a_panic() {
    let whole = sample(&[[1; DIGEST_BYTES]]);
    let document_at = whole.bytes().len() - whole.size();
    for length in 0..document_at {
        assert!(Record::decode(whole.bytes().slice(..length)).is_err(), "{length}");
    }
}
