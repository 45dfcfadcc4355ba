//! Bytes written by hand from the grammar and the schemas; checksums by zlib.

use super::*;

const SEGMENT: &str = "81f0d8ff7f010a000000";
/// Deletes `a` if its etag is `e`.
const DELETE: &str = "81f1d8ff7f14000000b041692a 817054e17f 13 04000000 02000000 0161 14090165";
/// Upserts `{"id":"a"}` with key `["p"]`, without returning it.
const UPSERT: &str = "81f1d8ff7f210000002968d5fb 817054e17f 47 14000000 02000000 \
                      055b2270225d 0a7b226964223a2261227d 030c";

fn bytes(hex: &str) -> Bytes {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("ASCII");
        u8::from_str_radix(pair, 16).expect("hexadecimal digits")
    };
    digits.chunks(2).map(byte).collect()
}

fn stream(records: &[&str]) -> Bytes {
    bytes(&format!("{SEGMENT}{}", records.concat()))
}

/// A stream of one row, with valid length and checksum.
fn framed(row: &str) -> Bytes {
    let mut stream = bytes(SEGMENT).to_vec();
    record_io::record(&mut stream, &bytes(row));
    stream.into()
}

/// A batch that creates these items.
pub(crate) fn batch_of(items: &[&[u8]]) -> Bytes {
    let mut stream = bytes(SEGMENT).to_vec();
    for item in items {
        let mut row = bytes("817054e17f 43 00000000 02000000").to_vec();
        let mut length = item.len();
        while length >= 0x80 {
            row.push((length & 0x7F) as u8 | 0x80);
            length >>= 7;
        }
        row.push(length as u8);
        row.extend_from_slice(item);
        record_io::record(&mut stream, &row);
    }
    stream.into()
}

fn refusal(body: &Bytes) -> String {
    let error = operations(body, 100).expect_err("the body is malformed");
    assert_eq!(error.kind, bolide_model::ErrorKind::BadRequest, "{error}");
    error.to_string()
}

#[test]
fn operations_are_read_as_the_sdk_writes_them() {
    let found = operations(&stream(&[DELETE, UPSERT]), 2).expect("well formed");
    let delete = Operation {
        kind: "Delete".to_owned(),
        id: Some("a".to_owned()),
        if_match: Some("e".to_owned()),
        ..Operation::default()
    };
    let upsert = Operation {
        kind: "Upsert".to_owned(),
        partition_key: Some(r#"["p"]"#.to_owned()),
        body: Some(Bytes::from_static(br#"{"id":"a"}"#)),
        is_minimal: true,
        ..Operation::default()
    };
    assert_eq!(found, [delete, upsert]);
}

#[test]
fn a_stream_may_have_several_segments_and_none_of_the_rows() {
    let twice = bytes(&format!("{SEGMENT}{DELETE}{SEGMENT}{UPSERT}{SEGMENT}"));
    assert_eq!(operations(&twice, 100).map(|found| found.len()), Ok(2));
    assert_eq!(operations(&stream(&[]), 100), Ok(vec![]));
    // A segment with a comment in sparse column 2: `14 02 01 78` after the ten bytes.
    let commented = bytes(&format!("81f0d8ff7f010e00000014020178{DELETE}"));
    assert_eq!(operations(&commented, 100).map(|found| found.len()), Ok(1));
}

#[test]
fn more_operations_than_the_limit_are_refused() {
    let message = operations(&stream(&[DELETE, UPSERT]), 1)
        .expect_err("two are too many")
        .to_string();
    assert!(message.contains("more operations than what is supported"), "{message}");
}

#[test]
fn results_are_written_as_the_sdk_reads_them() {
    let written = |result: ResultRow<'_>| {
        let mut results = Results::new();
        results.push(&result);
        Bytes::from(results.finish())
    };
    let created = ResultRow {
        status: 201,
        ..ResultRow::default()
    };
    assert_eq!(
        written(created),
        stream(&["81f1d8ff7f0e0000008a71452a 817154e17f 03 c9000000 00000000"])
    );
    let with_item = ResultRow {
        status: 201,
        etag: Some("\"e1\""),
        body: Some(br#"{"id":"a"}"#),
        charge: Some(6.29),
        ..ResultRow::default()
    };
    assert_eq!(
        written(with_item),
        stream(
            &["81f1d8ff7f280000002c5e6718 817154e17f 0f c9000000 00000000 0422653122 \
                  0a7b226964223a2261227d 1006295c8fc2f5281940"]
        )
    );
    let throttled = ResultRow {
        status: 429,
        sub_status: 3200,
        retry_after_ms: Some(1000),
        ..ResultRow::default()
    };
    assert_eq!(
        written(throttled),
        stream(&["81f1d8ff7f14000000c4bf37a8 817154e17f 03 ad010000 800c0000 0b05e8030000"])
    );
}

#[test]
fn long_values_have_long_lengths() {
    let body = vec![b'x'; 300];
    let mut results = Results::new();
    results.push(&ResultRow {
        body: Some(&body),
        ..ResultRow::default()
    });
    let stream = results.finish();
    // 300 = 0b10_0101100: low seven bits first.
    assert_eq!(stream[10 + 13 + 5 + 9..][..3], [0xAC, 0x02, b'x']);
}

#[test]
fn every_cut_of_a_stream_is_refused() {
    let whole = stream(&[DELETE, UPSERT]);
    // The stream may end after the segment header and after a record.
    let ends = [10, 10 + 13 + 20, whole.len()];
    for length in 1..whole.len() {
        let cut = whole.slice(..length);
        assert_eq!(operations(&cut, 100).is_ok(), ends.contains(&length), "{length} bytes");
    }
}

#[test]
fn a_changed_byte_breaks_the_checksum() {
    let whole = stream(&[DELETE]);
    for at in 10 + 13..whole.len() {
        let mut changed = whole.to_vec();
        changed[at] ^= 1;
        let message = refusal(&changed.into());
        assert!(message.contains("checksum"), "byte {at}: {message}");
    }
}

#[test]
fn rows_that_contradict_the_schema_are_refused_with_words_for_it() {
    for (row, word) in [
        ("817154e17f 03 c9000000 00000000", "schema id"),
        ("807054e17f 03 00000000 02000000", "version"),
        ("817054e17f 02 00000000 02000000", "operationType"),
        ("817054e17f 01 00000000 02000000", "resourceType"),
        ("817054e17f 03 00000000 03000000", "resourceType"),
        ("817054e17f 13 00000000 02000000 0561", "after its row"),
        ("817054e17f 13 00000000 02000000 ffffffffffffffffff7f61", "64 bits"),
        ("817054e17f 13 00000000 02000000 ffffffffffffffffff01", "after its row"),
        ("817054e17f 13 00000000 02000000 01ff", "UTF-8"),
        ("817054e17f 03 00000000 02000000 07 09 01000000", "another type"),
        ("817054e17f 03 00000000 02000000 14 0d 0161", "not known"),
        ("817054e17f 03 00000000 02000000 46", "cut short"),
        ("817054e17f 03 00000000 02000000 46 08", "not known"),
        ("817054e17f 03 00000000", "cut short"),
        ("", "cut short"),
    ] {
        let message = refusal(&framed(row));
        assert!(message.contains(word), "{row}: {message}");
    }
}

#[test]
fn lengths_that_lead_nowhere_are_refused() {
    for stream in [
        "81f0d8ff7f0109000000",
        "81f0d8ff7f010b000000",
        "81f0d8ff7f01ffffffff",
        "81f0d8ff7f01ffffff7f",
        "81f0d8ff7f010a000000 81f1d8ff7fffffffff00000000",
        "81f0d8ff7f010a000000 81f1d8ff7fffffff7f00000000",
        "81f0d8ff7f010a000000 817054e17f1304000000020000000161",
        "81f1d8ff7f14000000b041692a",
    ] {
        refusal(&bytes(stream));
    }
}

#[test]
fn columns_of_the_service_itself_are_not_supported() {
    for (row, column) in [
        ("817054e17f 0b 00000000 02000000 0100", "effectivePartitionKey"),
        ("817054e17f 23 00000000 02000000 0100", "binaryId"),
        ("817054e17f 03 00000000 02000000 07 0b 0a000000", "timeToLiveInSeconds"),
    ] {
        let found = operations(&framed(row), 1).expect(row);
        let error = found[0].check().expect_err(column);
        assert!(error.to_string().contains(column), "{error}");
    }
}
