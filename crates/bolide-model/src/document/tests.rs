use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::error::ErrorKind;

fn parse(text: &str) -> Document {
    Document::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(body: &[u8]) -> Error {
    Document::parse(body).expect_err("the body should be refused")
}

fn nested(levels: usize) -> String {
    format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1))
}

fn hash_of(path: &str) -> PartitionKeyDefinition {
    PartitionKeyDefinition::from_json(&json!({"paths": [path], "kind": "Hash", "version": 2})).unwrap()
}

#[test]
fn members_keep_the_order_in_which_they_were_written() {
    assert_eq!(
        parse(r#" { "z" : 1 , "a" : [ true , null ] , "m" : {"y":"","b":2} } "#).to_text(),
        r#"{"z":1,"a":[true,null],"m":{"y":"","b":2}}"#
    );
}

#[test]
fn last_of_repeated_members_wins_in_the_place_of_the_first() {
    assert_eq!(
        parse(r#"{"a":1,"b":{"c":1,"c":2},"a":3}"#).to_text(),
        r#"{"a":3,"b":{"c":2}}"#
    );
}

#[test]
fn system_properties_are_dropped_at_the_root_only() {
    let body =
        r#"{"_rid":"x","id":"a","_self":1,"_etag":"","_attachments":[],"_ts":5,"_lsn":9,"o":{"_ts":1},"_other":2}"#;
    assert_eq!(parse(body).to_text(), r#"{"id":"a","o":{"_ts":1},"_other":2}"#);
}

#[test]
fn numbers_are_written_by_their_value() {
    let cases = [
        ("1.0", "1"),
        ("-2.50", "-2.5"),
        ("1e2", "100"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("9007199254740991.0", "9007199254740991"),
        ("9007199254740993", "9007199254740993"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "1.8446744073709552e+19"),
        ("0.1", "0.1"),
        ("5e-324", "5e-324"),
        ("1e-400", "0"),
    ];
    for (written, stored) in cases {
        assert_eq!(
            parse(&format!("{{\"n\":{written}}}")).to_text(),
            format!("{{\"n\":{stored}}}"),
            "{written}"
        );
    }
}

#[test]
fn nesting_ends_at_128_levels() {
    assert_eq!(parse(&nested(128)).to_text(), nested(128));
    for levels in [129, 1_000, 1_000_000] {
        let error = refusal(nested(levels).as_bytes());
        assert_eq!(error.kind, ErrorKind::BadRequest);
        assert!(error.to_string().contains("the limit of 128 levels"), "{error}");
    }
    assert!(
        refusal("{\"a\":".repeat(100_000).as_bytes())
            .to_string()
            .contains("the limit of 128 levels")
    );
}

#[test]
fn a_part_of_a_batch_may_be_as_deep_as_an_item_of_its_own() {
    let batch = format!("[{{\"resourceBody\":{}}}]", nested(128));
    let mut batch = parse_json_body(batch.as_bytes()).unwrap();
    assert_eq!(
        Document::from_value(batch[0]["resourceBody"].take()).unwrap().to_text(),
        nested(128)
    );
    let deeper = parse_json_body(nested(129).as_bytes()).unwrap();
    assert!(
        Document::from_value(deeper)
            .unwrap_err()
            .to_string()
            .contains("the limit of 128 levels")
    );
    assert!(
        parse_json_body("[".repeat(1_000).as_bytes())
            .unwrap_err()
            .to_string()
            .contains("nested deeper")
    );
}

#[test]
fn invalid_json_is_refused_with_the_position() {
    let cases: [(&[u8], &str); 11] = [
        (b"", "EOF while parsing a value at line 1 column 0"),
        (b"{\"a\":1", "line 1 column 6"),
        (b"{\"a\":1}\n x", "trailing characters at line 2 column 2"),
        (b"{\"a\":01}", "line 1 column 7"),
        (b"{'a':1}", "line 1 column 2"),
        (b"{\"a\":NaN}", "line 1 column 6"),
        (b"{\"a\":1e400}", "number out of range at line 1 column"),
        (b"{\"a\":\"\\ud800\"}", "line 1 column"),
        (b"{\"a\":\"\n\",}", "trailing comma"),
        (b"{\"a\":\"\\\n\"}", "invalid escape"),
        (b"{\"a\":\"\xff\"}", "not valid UTF-8 at byte 6"),
    ];
    for (body, fragment) in cases {
        let error = refusal(body);
        assert_eq!(error.kind, ErrorKind::BadRequest);
        assert!(error.to_string().contains(fragment), "{error}");
    }
}

/// The service accepts them: the .NET SDK's tests create such items.
#[test]
fn strings_may_contain_unescaped_control_characters() {
    let body = "{\r\n\t\"id\":\"a\tb\",\"t\\\"\n\":\"\u{1}\\\\\r\n\u{1f}\u{7f}é\"\n}";
    let document = Document::parse(body.as_bytes()).unwrap();
    assert_eq!(
        Value::Object(document.value().clone()),
        json!({"id": "a\tb", "t\"\n": "\u{1}\\\r\n\u{1f}\u{7f}é"})
    );
    assert_eq!(parse_json_body(b"\"\0\"").unwrap(), json!("\0"));
}

#[test]
fn an_item_is_an_object() {
    for body in ["1", "null", "[]", "\"a\""] {
        assert!(
            refusal(body.as_bytes()).to_string().contains("must be a JSON object"),
            "{body}"
        );
    }
}

#[test]
fn a_byte_order_mark_is_skipped() {
    assert_eq!(parse("\u{FEFF}{}").to_text(), "{}");
}

#[test]
fn items_end_at_two_mebibytes() {
    let of_size = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
    assert_eq!(parse(&of_size(ITEM_BYTES)).to_stored_text().unwrap().len(), ITEM_BYTES);
    let error = refusal(of_size(ITEM_BYTES + 1).as_bytes());
    assert_eq!(error.kind, ErrorKind::TooLarge);
    let reason = Reason::ItemTooLarge {
        bytes: ITEM_BYTES + 1,
        limit: ITEM_BYTES,
    };
    assert_eq!(error, reason.into());
}

#[test]
fn a_document_that_grows_when_written_is_measured_again() {
    let document = parse(&format!("{{\"a\":[{}1e15]}}", "1e15,".repeat(400_000)));
    assert_eq!(document.to_stored_text().unwrap_err().kind, ErrorKind::TooLarge);
}

#[test]
fn ids_are_strings_that_the_client_gives() {
    assert_eq!(parse(r#"{"id":"a/b?"}"#).id(), Ok("a/b?"));
    assert!(
        parse("{}")
            .id()
            .unwrap_err()
            .to_string()
            .contains("'id; ' - are missing")
    );
    for body in [r#"{"id":1}"#, r#"{"id":null}"#, r#"{"id":""}"#, r#"{"id":".."}"#] {
        assert_eq!(parse(body).id().unwrap_err().kind, ErrorKind::BadRequest, "{body}");
    }
}

#[test]
fn own_ttl_is_any_spelling_of_a_whole_number() {
    // TTL-212, TTL-217
    let own = |text: &str| parse(&format!("{{\"ttl\":{text}}}")).own_ttl().unwrap();
    assert_eq!(own("20"), Own::After(20));
    assert_eq!(own("2e1"), Own::After(20));
    assert_eq!(own("2147483647.0"), Own::After(2_147_483_647));
    assert_eq!(own("-1"), Own::Never);
}

#[test]
fn unusable_ttl_is_refused() {
    // TTL-215, TTL-216
    for text in [
        "0",
        "-2",
        "1.5",
        "2147483648",
        "null",
        "\"5\"",
        "true",
        "{}",
        "[]",
        "-9223372036854775808",
    ] {
        let document = parse(&format!("{{\"ttl\":{text}}}"));
        let error = document.own_ttl().unwrap_err();
        assert_eq!(error.kind, ErrorKind::BadRequest);
        assert!(
            error
                .to_string()
                .contains(&format!("The input ttl '{text}' is invalid")),
            "{error}"
        );
        assert!(error.to_string().contains("2147483647"), "{error}");
    }
}

#[test]
fn only_the_root_property_spelled_ttl_counts() {
    // TTL-219
    let document = parse(r#"{"TTL":0,"Ttl":0,"_ttl":0,"a":{"ttl":0}}"#);
    assert_eq!(document.own_ttl(), Ok(Own::Absent));
}

#[test]
fn partition_key_is_read_from_the_members() {
    let key = parse(r#"{"a":{"b":1.0}}"#).partition_key(&hash_of("/a/b"));
    assert_eq!(key, PartitionKey(vec![Component::Number(1.0)]));
}

#[test]
fn missing_values_count_as_null_in_unique_keys() {
    let paths: Vec<PropertyPath> = ["/a", "/b/c"]
        .iter()
        .map(|path| PropertyPath::parse(path).unwrap())
        .collect();
    let values = |text: &str| parse(text).unique_key_values(&paths);
    assert_eq!(values(r#"{"a":1}"#), values(r#"{"a":1.0,"b":{"c":null}}"#));
    assert_eq!(values(r#"{"a":1,"b":{"c":[1]}}"#), values(r#"{"a":1}"#));
    assert_eq!(values(r#"{"a":9007199254740992}"#), values(r#"{"a":9007199254740993}"#));
    assert_ne!(values(r#"{"a":"1"}"#), values(r#"{"a":1}"#));
}

#[test]
fn a_refused_patch_leaves_the_document() {
    let document = parse(r#"{"id":"a","n":1}"#);
    let patch = Patch::parse(br#"[{"op":"incr","path":"/n","value":1},{"op":"remove","path":"/x"}]"#).unwrap();
    assert!(document.patched(&patch, &hash_of("/pk")).is_err());
    assert_eq!(document.to_text(), r#"{"id":"a","n":1}"#);
}

#[test]
fn a_patch_cannot_nest_deeper_than_an_item() {
    let value = nested(128);
    let patch = Patch::parse(format!(r#"[{{"op":"set","path":"/a","value":{value}}}]"#).as_bytes()).unwrap();
    let error = parse("{}").patched(&patch, &hash_of("/pk")).unwrap_err();
    assert!(error.to_string().contains("the limit of 128 levels"), "{error}");
}

/// JSON texts in many spellings, valid and invalid.
fn json_text() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>()
            .prop_filter("JSON has finite numbers", |n| n.is_finite())
            .prop_map(|n| format!("{n:e}")),
        any::<String>().prop_map(|text| Value::String(text).to_string()),
        prop_oneof![Just("true"), Just("null"), Just("-0"), Just("1.50"), Just("1E3")].prop_map(str::to_owned),
    ];
    scalar.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| format!("[ {} ]", items.join(" ,"))),
            prop::collection::vec(("[a-d_]{0,3}", inner), 0..5).prop_map(|members| {
                let members: Vec<String> = members
                    .iter()
                    .map(|(name, value)| format!("\"{name}\": {value}"))
                    .collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn a_parsed_document_reads_and_prints_the_same_again(text in json_text()) {
        let document = parse(&format!("{{\"id\":\"a\",\"v\":{text}}}"));
        let printed = document.to_text();
        let again = parse(&printed);
        prop_assert_eq!(again.to_text(), printed);
        prop_assert_eq!(again, document);
    }

    #[test]
    fn any_bytes_are_read_or_refused(body in any::<Vec<u8>>()) {
        let _ = Document::parse(&body);
        let _ = parse_json_body(&body);
        let _ = Patch::parse(&body);
    }

    #[test]
    fn text_like_json_is_read_or_refused(text in "[\\[\\]{}\",:0-9eE+.tn\\\\-]{0,40}") {
        if let Ok(document) = Document::parse(text.as_bytes()) {
            prop_assert_eq!(parse(&document.to_text()), document);
        }
    }
}
