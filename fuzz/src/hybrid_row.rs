//! Batches in .NET's binary format: a byte that selects how they are sent, then rows separated by `0xFF`. Either the rows are framed here, with valid
//! lengths and checksums, so that the code behind the framing is tested, or the bytes are used as the body.
//!
//! The response is a refusal in the protocol's format, or a stream with one result per row.

use bolide_cosmos::Payload;
use bytes::Bytes;
use http::{Request, StatusCode};
use serde_json::Value;

use super::input::Input;
use super::request::sign;
use super::test_account::TestAccount;

const SEGMENT: &[u8] = b"\x81\xF0\xD8\xFF\x7F\x01\x0A\0\0\0";
const RECORD: &[u8] = b"\x81\xF1\xD8\xFF\x7F";
const RESULT: &[u8] = b"\x81\x71\x54\xE1\x7F";
const IS_BULK: u8 = 1;
const IS_RAW: u8 = 2;

/// Sends the rows as a batch.
pub fn run(data: &[u8]) {
    let Some((mode, rows)) = data.split_first() else {
        return;
    };
    let (body, count) = if mode & IS_RAW == 0 {
        framed(rows)
    } else {
        ([&[0x81], rows].concat(), None)
    };
    let test_account = TestAccount::new(2);
    let response = test_account.answer(request(body, mode & IS_BULK != 0));
    let (status, payload) = (response.status(), response.into_body());
    let Payload::Whole(body) = payload else {
        panic!("results are whole")
    };
    match status {
        StatusCode::OK | StatusCode::MULTI_STATUS => check_results(&body, count),
        StatusCode::BAD_REQUEST => {
            let error: Value = serde_json::from_slice(&body).expect("errors are JSON");
            assert!(error["code"].is_string() && error["message"].is_string(), "{error}");
        }
        other => panic!("{other}: {}", String::from_utf8_lossy(&body)),
    }
}

fn request(body: Vec<u8>, is_bulk: bool) -> Request<Bytes> {
    let mut request = Request::post("/dbs/d/colls/c/docs").header("x-ms-cosmos-is-batch-request", "True");
    request = if is_bulk {
        request
            .header("x-ms-cosmos-batch-atomic", "False")
            .header("x-ms-cosmos-batch-continue-on-error", "True")
    } else {
        request
            .header("x-ms-cosmos-batch-atomic", "True")
            .header("x-ms-documentdb-partitionkey", r#"["p1"]"#)
    };
    let mut request = request.body(Bytes::from(body)).expect("fixed headers");
    sign(&mut request);
    request
}

/// A stream of the rows, and how many they are.
fn framed(rows: &[u8]) -> (Vec<u8>, Option<usize>) {
    let (mut input, mut body, mut count) = (Input(rows), SEGMENT.to_vec(), 0);
    while !input.0.is_empty() {
        let row = input.until(0xFF);
        let length = u32::try_from(row.len()).expect("inputs are small");
        body.extend([RECORD, &length.to_le_bytes(), &crc32(row).to_le_bytes(), row].concat());
        count += 1;
    }
    (body, Some(count))
}

fn check_results(body: &[u8], count: Option<usize>) {
    let mut rest = body.strip_prefix(SEGMENT).expect("a segment header");
    let mut found = 0;
    while !rest.is_empty() {
        rest = rest.strip_prefix(RECORD).expect("a record header");
        let (length, after) = rest.split_first_chunk::<4>().expect("a length");
        let (checksum, after) = after.split_first_chunk::<4>().expect("a checksum");
        let (row, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        assert_eq!(crc32(row), u32::from_le_bytes(*checksum));
        let row = row.strip_prefix(RESULT).expect("a result");
        let status = u32::from_le_bytes([row[1], row[2], row[3], row[4]]);
        assert!(row[0] & 3 == 3 && (200..600).contains(&status), "status {status}");
        found += 1;
        rest = after;
    }
    assert!(count.is_none_or(|count| count == found), "{found} results");
}

/// CRC-32 by its definition, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 * (crc & 1)))
    })
}
