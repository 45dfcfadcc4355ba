use serde_json::{Value, json};

use super::*;

fn read(format: Format, text: impl AsRef<[u8]>) -> std::result::Result<Vec<Record>, InputError> {
    let mut records = open(format, text.as_ref(), Position::start(), None)?;
    let mut all = Vec::new();
    while let Some(record) = records.next()? {
        all.push(record);
    }
    Ok(all)
}

fn values(format: Format, text: impl AsRef<[u8]>) -> Vec<Value> {
    let records = read(format, text).expect("a file without errors");
    records.into_iter().map(|record| Value::Object(record.item)).collect()
}

fn error(format: Format, text: impl AsRef<[u8]>) -> (u64, u64, String) {
    let error = read(format, text).expect_err("a file with an error");
    (error.at.line, error.at.column, error.message)
}

#[test]
fn lines_may_be_blank_and_the_last_needs_no_end() {
    let text = "\u{FEFF}{\"id\":\"a\"}\r\n\n  {\"id\":\"b\"}  \n \t\n{\"id\":\"c\"}";
    assert_eq!(
        values(Format::Jsonl, text),
        [json!({"id": "a"}), json!({"id": "b"}), json!({"id": "c"})]
    );
    let starts: Vec<(u64, u64)> = read(Format::Jsonl, text)
        .expect("no errors")
        .iter()
        .map(|record| (record.start.line, record.start.column))
        .collect();
    assert_eq!(starts, [(1, 1), (3, 3), (5, 1)]);
}

#[test]
fn an_array_may_be_written_in_any_way() {
    let text = " [ {\"id\":\"a\", \"s\":\"]}\\\"[{\"} ,\n{\"id\":\"b\",\n \"o\":[{},[]]}\n]\n ";
    let expected = [json!({"id": "a", "s": "]}\"[{"}), json!({"id": "b", "o": [{}, []]})];
    assert_eq!(values(Format::Json, text), expected);
    assert_eq!(values(Format::Json, "[]"), Vec::<Value>::new());
}

#[test]
fn errors_of_json_have_the_place_of_the_first_wrong_byte() {
    assert_eq!(error(Format::Jsonl, "{\"id\":\"a\"}\n {\"id\":}").0, 2);
    assert_eq!(error(Format::Jsonl, "{\"id\":\"a\"}\n {\"id\":}").1, 8);
    assert_eq!(error(Format::Json, "[{\"id\":\"a\"},\n{\"id\":\n  x}]").0, 3);
    assert_eq!(error(Format::Json, "[{\"id\":\"a\"},\n{\"id\":\n  x}]").1, 3);
    let (line, column, message) = error(Format::Jsonl, b"{\"id\":\"\xC3\x28\"}");
    assert_eq!((line, column, message.as_str()), (1, 8, "not UTF-8"));
    for text in ["", "{}", "[{}", "[{},", "[{},]", "[{} {}]", "[{}]]", "[1]", "[,]"] {
        assert!(read(Format::Json, text).is_err(), "{text}");
    }
}

#[test]
fn an_item_is_bounded_and_nesting_too() {
    let long = format!("{{\"id\":\"a\",\"s\":\"{}\"}}", "x".repeat(3 * 1024 * 1024));
    assert!(error(Format::Jsonl, &long).2.contains("longer"));
    assert!(error(Format::Json, format!("[{long}]")).2.contains("longer"));
    // Without an end, and without a limit, this would be read for as long as it comes.
    let endless = Read::chain(&b"[{\"id\":\""[..], std::io::repeat(b'x'));
    let mut records = open(Format::Json, endless, Position::start(), None).expect("a reader");
    assert!(records.next().expect_err("too long").message.contains("longer"));
    let endless = Read::chain(&b"id\n\""[..], std::io::repeat(b'x'));
    let mut records = open(Format::Csv, endless, Position::start(), None).expect("a reader");
    assert!(records.next().expect_err("too long").message.contains("longer"));
    let deep = format!("{{\"id\":\"a\",\"d\":{}{}}}", "[".repeat(500_000), "]".repeat(500_000));
    assert_eq!(error(Format::Jsonl, &deep).0, 1);
}

#[test]
fn every_reader_goes_on_at_the_end_of_any_item() {
    let cases = [
        (Format::Jsonl, "{\"id\":\"a\"}\n\n{\"id\":\"b\"}\r\n{\"id\":\"c\"}\n"),
        (Format::Json, "[{\"id\":\"a\"} ,\n {\"id\":\"b\"},{\"id\":\"c\"}\n]"),
        (Format::Csv, "id,n\na,\"x\ny\"\n\nb,2\r\nc,3\n"),
        (Format::Jsonl, "\u{FEFF}{\"id\":\"a\"}\n{\"id\":\"b\"}"),
        (Format::Json, "\u{FEFF}[{\"id\":\"a\"},{\"id\":\"b\"}]"),
        (Format::Csv, "\u{FEFF}id,n\na,1\nb,2\n"),
    ];
    for (format, text) in cases {
        let whole = read(format, text).expect("no errors");
        let header = (format == Format::Csv).then(|| header(text.as_bytes()).expect("a header"));
        for (at, record) in whole.iter().enumerate() {
            let offset = usize::try_from(record.end.offset).expect("small");
            let rest = open(format, &text.as_bytes()[offset..], record.end, header.clone());
            let mut rest = rest.expect("a reader");
            for expected in &whole[at + 1..] {
                let record = rest.next().expect("no errors").expect("an item");
                assert_eq!(
                    (record.start, &record.item),
                    (expected.start, &expected.item),
                    "{format:?} after {at}"
                );
            }
            assert!(rest.next().expect("no errors").is_none());
        }
    }
}

#[test]
fn cells_are_json_or_strings() {
    let text = "id,a,b,c,d,e\n7,7,-1.5e3,true,null,\n\"\"\"x\"\"\",007,\" 1\",\"\"\"1\"\"\",\"[1,{\"\"k\"\":2}]\",[x\n";
    assert_eq!(
        values(Format::Csv, text),
        [
            json!({"id": "7", "a": 7, "b": -1500.0, "c": true, "d": null}),
            json!({"id": "\"x\"", "a": "007", "b": " 1", "c": "1", "d": [1, {"k": 2}], "e": "[x"}),
        ]
    );
}

#[test]
fn every_value_survives_a_cell() {
    let values = [
        json!("plain"),
        json!(""),
        json!("12"),
        json!("true"),
        json!("null"),
        json!("\"quoted\""),
        json!("[1]"),
        json!("{}"),
        json!(" 1 "),
        json!("1 "),
        json!("a,b\n\"c\""),
        json!(12),
        json!(-0.5),
        json!(1e300),
        json!(true),
        json!(null),
        json!([]),
        json!({"a": [1, "2"]}),
    ];
    for value in values {
        assert_eq!(cell_value(&cell_text("a", &value)), Some(value.clone()), "{value}");
    }
    assert_eq!(
        cell_text("id", &json!("12")),
        "12",
        "the cell of an id is the string itself"
    );
}

#[test]
fn errors_of_csv_have_the_line_of_the_row() {
    assert_eq!(error(Format::Csv, "").0, 1);
    assert_eq!(error(Format::Csv, "id,\n").0, 1);
    assert_eq!(error(Format::Csv, "id,id\n").0, 1);
    assert_eq!(error(Format::Csv, "id,a\nx,\"1\n2\"\ny\n").0, 4);
    assert_eq!(error(Format::Csv, b"id,a\nx,1\ny,\xFF\n").0, 3);
}

#[test]
fn the_ending_says_the_format() {
    for (name, format) in [
        ("a.jsonl", Format::Jsonl),
        ("a.NDJSON", Format::Jsonl),
        ("b.json", Format::Json),
        ("c.d.csv", Format::Csv),
    ] {
        assert_eq!(Format::of_file(Path::new(name)), Ok(format), "{name}");
    }
    assert!(Format::of_file(Path::new("a.txt")).is_err());
    assert!(Format::of_file(Path::new("json")).is_err());
}
