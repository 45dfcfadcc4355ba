use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, DateTime, RawBson, RawDocumentBuf, Timestamp, rawdoc};

use super::field;

/// A field of every type, with a name that begins as the one behind it does.
fn every_type() -> RawDocumentBuf {
    let regex = bson::Regex {
        pattern: "a.".try_into().unwrap(),
        options: "im".try_into().unwrap(),
    };
    let data = |subtype| Binary {
        subtype,
        bytes: vec![1, 2, 3],
    };
    let values = [
        RawBson::Double(1.5),
        RawBson::String("x\0y".to_owned()),
        RawBson::Document(rawdoc! {"v1": 1}),
        RawBson::Array([RawBson::Int32(1)].into_iter().collect()),
        RawBson::Binary(data(BinarySubtype::Generic)),
        RawBson::Binary(data(BinarySubtype::BinaryOld)),
        RawBson::Undefined,
        RawBson::ObjectId(ObjectId::from_bytes([7; 12])),
        RawBson::Boolean(true),
        RawBson::DateTime(DateTime::from_millis(-3)),
        RawBson::Null,
        RawBson::RegularExpression(regex),
        RawBson::JavaScriptCode("f()".to_owned()),
        RawBson::Symbol("s".to_owned()),
        RawBson::JavaScriptCodeWithScope(bson::raw::RawJavaScriptCodeWithScope {
            code: "g()".to_owned(),
            scope: rawdoc! {"a": 1},
        }),
        RawBson::Int32(-1),
        RawBson::Timestamp(Timestamp { time: 1, increment: 2 }),
        RawBson::Int64(i64::MIN),
        RawBson::Decimal128("1.10".parse().unwrap()),
        RawBson::MinKey,
        RawBson::MaxKey,
    ];
    let mut document = RawDocumentBuf::new();
    for (index, value) in values.into_iter().enumerate() {
        let name = bson::raw::CString::try_from(format!("v{index}")).unwrap();
        document.append(&name, value);
    }
    document
}

#[test]
fn fields_of_every_type_are_found_as_the_library_finds_them() {
    let mut document = every_type();
    document.append(bson::raw::cstr!(""), "no name");
    document.append(bson::raw::cstr!("v0"), "a second one");
    for name in document.iter().map(|element| element.unwrap().0) {
        let expected = document.get(name.as_str()).unwrap();
        assert!(expected.is_some());
        assert_eq!(field(&document, name.as_str()), expected, "{name}");
    }
    for missing in ["v", "v00", "w", "v99"] {
        assert_eq!(field(&document, missing), None, "{missing}");
    }
    assert_eq!(field(&rawdoc! {}, "a"), None);
}

#[test]
fn broken_bytes_are_no_panic() {
    let bytes = every_type().into_bytes();
    for at in 4..bytes.len() - 1 {
        for value in [0, 1, 2, 5, 0x0B, 0x7F, 0x80, 0xFF] {
            let mut broken = bytes.clone();
            broken[at] = value;
            if let Ok(document) = RawDocumentBuf::from_bytes(broken) {
                // Any result.
                let _ = [
                    field(&document, "v20"),
                    field(&document, "v2"),
                    field(&document, "none"),
                ];
            }
        }
    }
}
