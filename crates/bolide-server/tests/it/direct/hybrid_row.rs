//! HybridRow, as .NET writes and reads it in batches: conformance/clients/dotnet/hybrid_row.py in Rust.

use flate2::Crc;
use serde_json::{Value, json};

const VERSION: u8 = 0x81;
const SEGMENT: i32 = 2_147_473_648;
const RECORD: i32 = 2_147_473_649;
const OPERATION: i32 = 2_145_473_648;
const RESULT: i32 = 2_145_473_649;
/// Documents, of all types of resources.
const DOCUMENT: i32 = 2;
const UINT32: u8 = 11;
const FLOAT64: u8 = 16;
const UTF8: u8 = 20;

/// Types of operations in batches.
pub const CREATE: i32 = 0;
pub const PATCH: i32 = 1;
pub const READ: i32 = 2;
pub const DELETE: i32 = 4;
pub const REPLACE: i32 = 5;
pub const UPSERT: i32 = 20;

/// An operation of a batch.
#[derive(Default)]
pub struct Operation<'a> {
    pub kind: i32,
    pub key: Option<&'a str>,
    pub id: Option<&'a str>,
    pub body: Option<&'a str>,
    pub if_match: Option<&'a str>,
}

/// The body of a batch.
pub fn batch(operations: &[Operation<'_>]) -> Vec<u8> {
    let mut bytes = begun(SEGMENT);
    bytes.push(1);
    bytes.extend(10_i32.to_le_bytes());
    for operation in operations {
        let row = row(operation);
        bytes.extend(begun(RECORD));
        bytes.extend(i32::try_from(row.len()).expect("short").to_le_bytes());
        bytes.extend(checksum(&row).to_le_bytes());
        bytes.extend(row);
    }
    bytes
}

fn begun(schema: i32) -> Vec<u8> {
    [&[VERSION][..], &schema.to_le_bytes()].concat()
}

fn row(operation: &Operation<'_>) -> Vec<u8> {
    let columns = [(2, operation.key), (4, operation.id), (6, operation.body)];
    let present = columns.iter().filter(|(_, value)| value.is_some());
    let presence = present.fold(0b11, |bits, (bit, _)| bits | 1 << bit);
    let mut row = begun(OPERATION);
    row.push(presence);
    row.extend(operation.kind.to_le_bytes());
    row.extend(DOCUMENT.to_le_bytes());
    for value in columns.iter().filter_map(|(_, value)| *value) {
        row.extend(sized(value));
    }
    if let Some(etag) = operation.if_match {
        row.extend([UTF8, 9]);
        row.extend(sized(etag));
    }
    row
}

fn sized(text: &str) -> Vec<u8> {
    let (mut bytes, mut length) = (Vec::new(), text.len());
    while length >= 0x80 {
        bytes.push(u8::try_from(length & 0x7F).expect("seven bits") | 0x80);
        length >>= 7;
    }
    bytes.push(u8::try_from(length).expect("seven bits"));
    bytes.extend(text.as_bytes());
    bytes
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Whether a body is in this format.
pub fn is_rows(body: &[u8]) -> bool {
    body.first() == Some(&VERSION)
}

/// The results of a batch, as JSON.
pub fn results(body: &[u8]) -> Value {
    let mut reader = Reader(body);
    reader.expect(SEGMENT);
    let [_] = reader.take();
    let length = usize::try_from(i32::from_le_bytes(reader.take())).expect("a length");
    let mut reader = Reader(&body[length..]);
    let mut found = Vec::new();
    while !reader.0.is_empty() {
        reader.expect(RECORD);
        let length = usize::try_from(i32::from_le_bytes(reader.take())).expect("a length");
        let sum = u32::from_le_bytes(reader.take());
        let row = reader.slice(length);
        assert_eq!(checksum(row), sum);
        found.push(result(row));
    }
    found.into()
}

fn result(row: &[u8]) -> Value {
    let mut reader = Reader(row);
    reader.expect(RESULT);
    let [presence] = reader.take();
    let status = i32::from_le_bytes(reader.take());
    let sub_status = i32::from_le_bytes(reader.take());
    let mut found = json!({"status": status, "subStatus": sub_status});
    if presence & 1 << 2 != 0 {
        found["_etag"] = String::from_utf8_lossy(reader.sized()).into();
    }
    if presence & 1 << 3 != 0 {
        found["body"] = serde_json::from_slice(reader.sized()).expect("JSON");
    }
    while !reader.0.is_empty() {
        let [kind, column] = reader.take();
        match (kind, column) {
            (UINT32, 5) => found["retryAfterMs"] = u32::from_le_bytes(reader.take()).into(),
            (FLOAT64, 6) => found["charge"] = f64::from_le_bytes(reader.take()).into(),
            _ => panic!("a sparse field of type {kind} in column {column}"),
        }
    }
    found
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn slice(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        self.slice(N).try_into().expect("as many")
    }

    fn expect(&mut self, schema: i32) {
        let [version] = self.take();
        assert_eq!((version, i32::from_le_bytes(self.take())), (VERSION, schema));
    }

    fn sized(&mut self) -> &'a [u8] {
        let (mut length, mut shift) = (0, 0);
        loop {
            let [byte] = self.take();
            length |= usize::from(byte & 0x7F) << shift;
            shift += 7;
            if byte < 0x80 {
                return self.slice(length);
            }
        }
    }
}
