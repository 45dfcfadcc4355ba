use bson::{Binary, RawDocumentBuf, rawdoc};

use super::*;
use crate::commands::fixture;

fn parse(command: RawDocumentBuf) -> Result<GlobalArguments> {
    let message = fixture::message(&command, &[]);
    let mut arguments = Arguments::of_command("ping", &message)?;
    GlobalArguments::parse(&mut arguments, Some(Arc::from("ada")))
}

fn code(command: RawDocumentBuf) -> i32 {
    parse(command).map(|_| 0).unwrap_or_else(|error| error.code.0)
}

fn lsid() -> RawDocumentBuf {
    let id = Binary {
        subtype: BinarySubtype::Uuid,
        bytes: vec![7; 16],
    };
    rawdoc! { "id": id }
}

#[test]
fn sessions_belong_to_the_user() {
    let session = parse(rawdoc! { "ping": 1, "lsid": lsid() })
        .expect("valid")
        .session
        .expect("a session");
    assert_eq!(session.id, Uuid::from_bytes([7; 16]));
    assert_eq!(session.user.as_deref(), Some("ada"));
    assert_eq!(code(rawdoc! { "ping": 1, "lsid": { "id": 1 } }), 14);
    assert_eq!(code(rawdoc! { "ping": 1, "lsid": {} }), 40414);
    assert_eq!(code(rawdoc! { "ping": 1, "lsid": 1 }), 14);
    let mut extra = lsid();
    extra.append(bson::raw::cstr!("x"), 1);
    assert_eq!(code(rawdoc! { "ping": 1, "lsid": extra }), 40415);
}

#[test]
fn numbers_of_transactions() {
    let with = |more: RawDocumentBuf| {
        let mut command = rawdoc! { "ping": 1, "lsid": lsid() };
        for element in &more {
            let (key, value) = element.expect("valid");
            command.append(key, value);
        }
        command
    };
    let found = |more| parse(with(more)).expect("valid").transaction.expect("a number");
    let retryable = found(rawdoc! { "txnNumber": 5_i64 });
    assert_eq!(
        (retryable.number, retryable.is_multi_statement, retryable.starts),
        (5, false, false)
    );
    let first = found(rawdoc! { "txnNumber": 5_i64, "autocommit": false, "startTransaction": true });
    assert!(first.is_multi_statement && first.starts);
    let second = found(rawdoc! { "txnNumber": 5_i64, "autocommit": false });
    assert!(second.is_multi_statement && !second.starts);
    for bad in [
        rawdoc! { "autocommit": false },
        rawdoc! { "startTransaction": true },
        rawdoc! { "txnNumber": -1_i64 },
        rawdoc! { "txnNumber": 1_i64, "autocommit": true },
        rawdoc! { "txnNumber": 1_i64, "autocommit": false, "startTransaction": false },
        rawdoc! { "txnNumber": 1_i64, "startTransaction": true },
    ] {
        assert_eq!(code(with(bad.clone())), 72, "{bad:?}");
    }
    assert_eq!(code(rawdoc! { "ping": 1, "txnNumber": 1_i64 }), 72, "without session");
}

#[test]
fn time_limits() {
    let limit = |value: i64| parse(rawdoc! { "ping": 1, "maxTimeMS": value }).map(|global| global.max_time);
    assert_eq!(limit(0).expect("no limit"), None);
    assert_eq!(limit(5).expect("valid"), Some(Duration::from_millis(5)));
    for bad in [-1, i64::from(i32::MAX) + 1] {
        assert_eq!(limit(bad).expect_err("out of range").code, Code::BAD_VALUE, "{bad}");
    }
}

#[test]
fn versions_of_the_api() {
    assert_eq!(code(rawdoc! { "ping": 1, "apiVersion": "1", "apiStrict": true }), 0);
    assert_eq!(code(rawdoc! { "ping": 1, "apiVersion": "2" }), 322);
    assert_eq!(code(rawdoc! { "ping": 1, "apiStrict": true }), 4_886_600);
    assert_eq!(code(rawdoc! { "ping": 1, "apiVersion": 1 }), 14);
}

#[test]
fn the_signature_of_the_cluster_time_may_have_any_form() {
    let cluster_time = rawdoc! { "signature": { "keyId": 0 } };
    assert_eq!(code(rawdoc! { "ping": 1, "$clusterTime": cluster_time }), 0);
    assert_eq!(code(rawdoc! { "ping": 1, "$clusterTime": 1 }), 14);
}
