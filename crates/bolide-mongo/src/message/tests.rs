use bolide_mql::Code;
use bson::{RawDocument, RawDocumentBuf, rawdoc};
use bytes::Bytes;

use super::*;

/// Bytes in hexadecimal, blanks ignored.
fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    data_encoding::HEXLOWER.decode(digits.as_bytes()).expect("hexadecimal")
}

/// `{ping: 1, $db: "a"}`.
const PING: &str = "1a000000 1070696e6700 01000000 02246462 00 02000000 6100 00";
/// `{}`.
const EMPTY: &str = "05000000 00";

/// An OP_MSG with these flags, sections and rest.
fn message(flags: u32, rest: &[u8]) -> Bytes {
    let mut bytes = Vec::new();
    let header = Header {
        length: 20 + rest.len(),
        request_id: 7,
        response_to: 0,
        op_code: 2013,
    };
    header.write(&mut bytes);
    bytes.extend_from_slice(&flags.to_le_bytes());
    bytes.extend_from_slice(rest);
    bytes.into()
}

fn of_hex(flags: u32, rest: &str) -> Result<OpMsg, MessageError> {
    OpMsg::parse(message(flags, &hex(rest)))
}

fn code(parsed: Result<OpMsg, MessageError>) -> i32 {
    parsed.map(|_| 0).unwrap_or_else(|error| error.0.code.0)
}

const PROTOCOL: i32 = 17;
const BSON: i32 = 22;

#[test]
fn headers() {
    let bytes = hex("1a000000 07000000 f9ffffff dd070000");
    let header = Header::parse(&bytes, 26).expect("well formed");
    let expected = Header {
        length: 26,
        request_id: 7,
        response_to: -7,
        op_code: 2013,
    };
    assert_eq!(header, expected);
    let mut written = Vec::new();
    header.write(&mut written);
    assert_eq!(written, bytes);
    assert!(Header::parse(&bytes, 25).is_err());
    assert!(Header::parse(&bytes[..15], 26).is_err());
    for length in ["0f000000", "00000000", "ffffffff", "ffffff7f"] {
        let bytes = hex(&format!("{length} 07000000 00000000 dd070000"));
        assert!(Header::parse(&bytes, 48_000_000).is_err(), "{length}");
    }
}

#[test]
fn a_command_is_read() {
    let message = of_hex(0, &format!("00 {PING}")).expect("well formed");
    assert_eq!(message.command(), &*rawdoc! { "ping": 1, "$db": "a" });
    assert!(message.sequences().is_empty());
    assert!(message.documents("documents").is_none());
}

#[test]
fn sequences_come_in_any_order() {
    let documents = format!("01 19000000 646f6373 00 {EMPTY} {EMPTY} 0600000000 00");
    assert_eq!(
        code(of_hex(0, &format!("00 {PING} {documents}"))),
        BSON,
        "a document of 6 bytes"
    );
    let documents = format!("01 13000000 646f6373 00 {EMPTY} {EMPTY}");
    for sections in [format!("00 {PING} {documents}"), format!("{documents} 00 {PING}")] {
        let message = of_hex(0, &sections).expect("well formed");
        assert_eq!(message.command().get_i32("ping").ok(), Some(1));
        assert_eq!((message.sequences().len(), message.sequences()[0].count), (1, 2));
        let found: Vec<&RawDocument> = message.documents("docs").expect("a sequence").collect();
        assert_eq!(found, [&*rawdoc! {}, &*rawdoc! {}]);
    }
    let none = of_hex(0, &format!("00 {PING} 01 09000000 646f6373 00")).expect("well formed");
    assert_eq!(none.documents("docs").expect("a sequence").count(), 0);
}

#[test]
fn malformed_sections_are_refused() {
    let cases = [
        ("nothing", String::new(), PROTOCOL),
        ("no command", format!("01 0e000000 646f6373 00 {EMPTY}"), PROTOCOL),
        ("two commands", format!("00 {PING} 00 {PING}"), PROTOCOL),
        ("an unknown kind", format!("00 {PING} 02 {EMPTY}"), PROTOCOL),
        ("a kind without section", format!("00 {PING} 01"), PROTOCOL),
        (
            "a sequence longer than the message",
            format!("00 {PING} 01 ff000000 646f6373 00"),
            PROTOCOL,
        ),
        (
            "a sequence of negative length",
            format!("00 {PING} 01 ffffffff 646f6373 00"),
            PROTOCOL,
        ),
        (
            "a sequence shorter than its length",
            format!("00 {PING} 01 03000000 646f6373 00"),
            PROTOCOL,
        ),
        (
            "a name without end",
            format!("00 {PING} 01 08000000 646f6373"),
            PROTOCOL,
        ),
        (
            "a name that is not UTF-8",
            format!("00 {PING} 01 06000000 ff 00"),
            PROTOCOL,
        ),
        (
            "a document longer than its sequence",
            format!("00 {PING} 01 0c000000 646f6373 00 050000 00 00"),
            BSON,
        ),
        (
            "the same name twice",
            format!("00 {PING} {0} {0}", "01 09000000 646f6373 00"),
            PROTOCOL,
        ),
        (
            "the name of a field",
            format!("00 {PING} 01 09000000 70696e67 00"),
            PROTOCOL,
        ),
        ("a document longer than the message", "00 ff000000 00".to_owned(), BSON),
        ("a document of length 0", "00 00000000 00".to_owned(), BSON),
        ("a document of negative length", "00 ffffffff 00".to_owned(), BSON),
        ("a document without end", "00 05000000 01".to_owned(), BSON),
        ("an unknown type", "00 08000000 206100 00".to_owned(), BSON),
        (
            "text that is not UTF-8",
            "00 0e000000 026100 02000000 ff00 00".to_owned(),
            BSON,
        ),
        (
            "text longer than its document",
            "00 0e000000 026100 20000000 6100 00".to_owned(),
            BSON,
        ),
        (
            "an embedded document that is too long",
            "00 0d000000 036100 06000000 00 00".to_owned(),
            BSON,
        ),
    ];
    for (name, sections, expected) in cases {
        assert_eq!(code(of_hex(0, &sections)), expected, "{name}");
    }
    let many = "01 06000000 61 00".replace("61 00", "{} 00");
    let many: String = (0x61..0x61 + 17)
        .map(|name| many.replace("{}", &format!("{name:x}")))
        .collect();
    assert_eq!(
        code(of_hex(0, &format!("00 {PING} {many}"))),
        PROTOCOL,
        "too many sections"
    );
}

#[test]
fn every_truncation_is_refused() {
    let sections = hex(&format!("00 {PING} 01 13000000 646f6373 00 {EMPTY} {EMPTY}"));
    let command = hex(PING).len() + 1;
    for length in (0..sections.len()).filter(|length| *length != command) {
        assert!(OpMsg::parse(message(0, &sections[..length])).is_err(), "{length}");
    }
    for length in 16..20 {
        assert!(OpMsg::parse(message(0, &[]).slice(..length)).is_err());
    }
}

#[test]
fn documents_may_have_two_hundred_levels() {
    let nested = |levels: usize| {
        let mut document = RawDocumentBuf::new();
        for _ in 1..levels {
            document = rawdoc! { "a": document };
        }
        let mut sections = vec![0];
        sections.extend_from_slice(document.as_bytes());
        code(OpMsg::parse(message(0, &sections)))
    };
    assert_eq!((nested(200), nested(201)), (0, Code::OVERFLOW.0));
}

#[test]
fn flags() {
    let ping = format!("00 {PING}");
    for flag in 2..16 {
        assert_eq!(code(of_hex(1 << flag, &ping)), 223, "{flag}");
    }
    for flag in 16..32 {
        assert_eq!(code(of_hex(1 << flag, &ping)), 0, "{flag}");
    }
    let message = of_hex(MORE_TO_COME | EXHAUST_ALLOWED, &ping).expect("well formed");
    assert!(message.has(MORE_TO_COME) && message.has(EXHAUST_ALLOWED) && !message.has(CHECKSUM_PRESENT));
}

#[test]
fn a_checksum_is_compared() {
    let mut sections = hex(&format!("00 {PING}"));
    sections.extend_from_slice(&[0; 4]);
    let mut bytes = message(CHECKSUM_PRESENT, &sections).to_vec();
    assert_eq!(code(OpMsg::parse(bytes.clone().into())), 288);
    let end = bytes.len() - 4;
    let sum = crc32c::crc32c(&bytes[..end]);
    bytes[end..].copy_from_slice(&sum.to_le_bytes());
    let parsed = OpMsg::parse(bytes.into()).expect("the sum fits");
    assert_eq!(parsed.command().get_i32("ping").ok(), Some(1));
    assert_eq!(code(of_hex(CHECKSUM_PRESENT, "")), PROTOCOL);
    // The check value of CRC-32C.
    assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
}

#[test]
fn hello_in_the_old_form() {
    // Flags, "a.$cmd", skip 0, return -1.
    let head = "00000000 612e24636d64 00 00000000 ffffffff";
    let parse = |text: &str| {
        let bytes = [vec![0; 16], hex(text)].concat();
        OpQuery::parse(&bytes).map(|query| (query.database.to_owned(), query.command.to_owned()))
    };
    let found = parse(&format!("{head} {PING}")).expect("well formed");
    assert_eq!(found, ("a".to_owned(), rawdoc! { "ping": 1, "$db": "a" }));
    let wrapped = rawdoc! { "$query": { "ping": 1 }, "$readPreference": { "mode": "nearest" } };
    let wrapped = data_encoding::HEXLOWER.encode(wrapped.as_bytes());
    assert_eq!(
        parse(&format!("{head} {wrapped}")).expect("well formed").1,
        rawdoc! { "ping": 1 }
    );
    assert!(parse(&format!("{head} {PING} {EMPTY}")).is_ok(), "with a projection");
    for bad in [
        head.to_owned(),
        format!("{head} {PING} {EMPTY} 00"),
        format!("{head} 04000000"),
        format!("00000000 612e62 00 00000000 ffffffff {PING}"),
        "00000000 61".to_owned(),
    ] {
        assert!(parse(&bad).is_err(), "{bad}");
    }
}

#[test]
fn replies() {
    let body = rawdoc! { "ok": 1 };
    let reply = op_msg(9, 7, MORE_TO_COME, &body);
    let expected = format!(
        "22000000 09000000 07000000 dd070000 02000000 00 {}",
        "0d000000 106f6b00 01000000 00"
    );
    assert_eq!(reply, hex(&expected));
    let reply = op_reply(9, 7, &body);
    let expected = "31000000 09000000 07000000 01000000 08000000 0000000000000000 00000000 01000000 \
                    0d000000 106f6b00 01000000 00";
    assert_eq!(reply, hex(expected));
}

const COMPRESSORS: [Compressor; 4] = [Compressor::Noop, Compressor::Snappy, Compressor::Zlib, Compressor::Zstd];

fn long_reply() -> Vec<u8> {
    op_msg(9, 7, 0, &rawdoc! { "text": "a".repeat(10_000) })
}

fn compressed(bytes: Vec<u8>, max_bytes: usize) -> Result<Compressed, MessageError> {
    let header = Header::parse(&bytes, bytes.len()).expect("well formed");
    Compressed::parse(header, bytes.into(), max_bytes)
}

#[test]
fn messages_survive_compression() {
    let reply = long_reply();
    for compressor in COMPRESSORS.into_iter().skip(1) {
        let small = compressor.compress(&reply).expect("it is shorter");
        assert!(small.len() < 600, "{compressor:?} {}", small.len());
        let header = Header::parse(&small, 600).expect("well formed");
        assert_eq!((header.request_id, header.response_to, header.op_code), (9, 7, 2012));
        let parsed = compressed(small, reply.len()).expect("well formed");
        let (header, message) = parsed.decompress().expect("well formed");
        assert_eq!(message, reply, "{compressor:?}");
        assert_eq!((header.length, header.op_code), (reply.len(), 2013));
        assert_eq!(Compressor::named(compressor.name()), Some(compressor));
    }
    assert!(Compressor::Noop.compress(&reply).is_none(), "not shorter");
    assert!(Compressor::named("noop").is_none() && Compressor::named("none").is_none());
}

/// A compressed message with this prefix and content.
fn raw_compressed(op_code: i32, size: i32, compressor: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = Header {
        length: 25 + content.len(),
        request_id: 1,
        response_to: 0,
        op_code: 2012,
    };
    header.write(&mut bytes);
    bytes.extend_from_slice(&op_code.to_le_bytes());
    bytes.extend_from_slice(&size.to_le_bytes());
    bytes.push(compressor);
    bytes.extend_from_slice(content);
    bytes
}

#[test]
fn bombs_and_lies_are_refused_before_they_are_decompressed() {
    let parse = |bytes| compressed(bytes, 1_000).map(|_| ());
    assert!(parse(raw_compressed(2013, 984, 0, b"")).is_ok());
    for (name, bytes) in [
        ("too long", raw_compressed(2013, 985, 0, b"")),
        ("negative", raw_compressed(2013, -1, 0, b"")),
        ("the longest", raw_compressed(2013, i32::MAX, 3, b"")),
        ("an unknown compressor", raw_compressed(2013, 10, 4, b"")),
        ("compressed twice", raw_compressed(2012, 10, 1, b"")),
        ("a compressed OP_QUERY", raw_compressed(2004, 10, 1, b"")),
        ("an unknown op code", raw_compressed(0, 10, 1, b"")),
        ("truncated", raw_compressed(2013, 10, 1, b"")[..24].to_vec()),
    ] {
        let mut bytes = bytes;
        let length = i32::try_from(bytes.len()).expect("short");
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        assert!(parse(bytes).is_err(), "{name}");
    }
}

#[test]
fn content_must_have_the_size_that_was_stated() {
    let reply = long_reply();
    let body = reply.len() - 16;
    for compressor in COMPRESSORS {
        let content = match compressor {
            Compressor::Noop => reply[16..].to_vec(),
            _ => compressor.compress(&reply).expect("it is shorter")[25..].to_vec(),
        };
        let id = COMPRESSORS
            .iter()
            .position(|other| *other == compressor)
            .expect("one of them");
        let decompress = |size: usize, content: &[u8]| {
            let size = i32::try_from(size).expect("short");
            let id = u8::try_from(id).expect("few");
            compressed(raw_compressed(2013, size, id, content), 48_000_000)
                .expect("well formed")
                .decompress()
        };
        assert!(decompress(body, &content).is_ok(), "{compressor:?}");
        assert!(decompress(body - 1, &content).is_err(), "{compressor:?}");
        assert!(decompress(body + 1, &content).is_err(), "{compressor:?}");
        assert!(
            decompress(body, &content[..content.len() / 2]).is_err(),
            "{compressor:?}"
        );
        assert!(decompress(body, b"\xff\xff\xff\xff\xff").is_err(), "{compressor:?}");
        assert!(decompress(body, b"").is_err(), "{compressor:?}");
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_panic(flags in 0_u32..4, bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        let _ = OpMsg::parse(message(flags, &bytes));
        let _ = OpQuery::parse(&message(flags, &bytes));
        if let Ok(message) = compressed(message(flags, &bytes).to_vec(), 10_000) {
            let _ = message.decompress();
        }
    }
}
