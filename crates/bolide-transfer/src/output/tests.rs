use serde_json::{Value, json};

use super::*;

fn file(format: Format, items: &[Value]) -> String {
    let items: Vec<&Item> = items.iter().filter_map(Value::as_object).collect();
    let mut names = Vec::new();
    for item in &items {
        add_names(item, &mut names).expect("names");
    }
    let output = Output::new(format, names);
    let mut bytes = output.start().expect("a start");
    for (at, item) in items.iter().enumerate() {
        output.item(item, at == 0, &mut bytes).expect("an item");
    }
    bytes.extend_from_slice(output.end());
    String::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn each_format_has_its_form() {
    let items = [json!({"n": 1, "id": "a"}), json!({"id": "b", "t": "x,y"})];
    assert_eq!(
        file(Format::Jsonl, &items),
        "{\"n\":1,\"id\":\"a\"}\n{\"id\":\"b\",\"t\":\"x,y\"}\n"
    );
    assert_eq!(
        file(Format::Json, &items),
        "[\n{\"n\":1,\"id\":\"a\"},\n{\"id\":\"b\",\"t\":\"x,y\"}\n]\n"
    );
    assert_eq!(file(Format::Csv, &items), "id,n,t\na,1,\nb,,\"x,y\"\n");
}

#[test]
fn a_property_without_a_column_is_an_error() {
    let output = Output::new(Format::Csv, vec!["id".to_owned()]);
    let item = json!({"id": "a", "late": 1});
    let error = output.item(item.as_object().expect("an item"), true, &mut Vec::new());
    assert!(error.expect_err("no column").to_string().contains("`late`"));
}
