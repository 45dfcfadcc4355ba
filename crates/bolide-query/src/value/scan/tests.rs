use proptest::prelude::*;
use serde_json::{Map, Value as Tree};

use super::*;
use crate::value::{parse_json, write_json};

fn name(name: &str) -> PathStep {
    PathStep::name(name)
}

fn found(text: &str, steps: &[PathStep]) -> String {
    let mut out = Vec::new();
    write_json(&walk(text, 0, steps), &mut out);
    String::from_utf8(out).expect("JSON is UTF-8")
}

#[test]
fn a_name_is_found_in_any_spelling() {
    let text = r#"{"\u0062":1,"\"q\"":2,"back\\slash":3,"ä":4,"\u0061":5}"#;
    assert_eq!(found(text, &[name("a")]), "5");
    assert_eq!(found(text, &[name("b")]), "1");
    assert_eq!(found(text, &[name("\"q\"")]), "2");
    assert_eq!(found(text, &[name("back\\slash")]), "3");
    assert_eq!(found(text, &[name("ä")]), "4");
    assert_eq!(found(text, &[name("\\u0061")]), "");
}

#[test]
fn of_two_members_with_one_name_the_first_is_found() {
    assert_eq!(found(r#"{"a":1,"\u0061":2,"a":3}"#, &[name("a")]), "1");
    assert_eq!(found(r#"{"\u0061":2,"a":3}"#, &[name("a")]), "2");
}

#[test]
fn a_name_inside_a_string_or_another_object_is_not_found() {
    let text = r#"{"x":"\"a\":1","y":{"a":2},"z":["a",{"a":3}],"\\":"\\","a":4}"#;
    assert_eq!(found(text, &[name("a")]), "4");
    assert_eq!(found(text, &[name("y"), name("a")]), "2");
    assert_eq!(found(text, &[name("z"), PathStep::Element(1), name("a")]), "3");
    assert_eq!(found(text, &[name("z"), name("a")]), "");
    assert_eq!(found(text, &[name("y"), PathStep::Element(0)]), "");
}

#[test]
fn blanks_are_allowed_wherever_json_allows_them() {
    let text = " \n{ \"a\" : [ 1 , { \"b\" :\ttrue } ] , \"c\" : { } , \"d\" : [ ] , \"e\" : null }";
    let at = text.find('{').expect("it is there");
    let at = |steps: &[PathStep]| walk(text, at, steps);
    assert!(at(&[name("a"), PathStep::Element(1), name("b")]).is_true());
    assert!(matches!(at(&[name("e")]), Value::Null));
    assert!(matches!(at(&[name("c"), name("x")]), Value::Undefined));
    assert!(matches!(at(&[name("d"), PathStep::Element(0)]), Value::Undefined));
    assert!(matches!(at(&[name("a"), PathStep::Element(2)]), Value::Undefined));
}

#[test]
fn texts_that_are_cut_off_give_something_and_never_panic() {
    let text = r#"{"a":{"b":["x\\\"y",-1.5e3,{"c":null}]},"d":"e\u00e4f","g":[[],{}],"h":true}"#;
    let paths = [
        vec![name("a"), name("b"), PathStep::Element(2)],
        vec![name("h")],
        vec![],
    ];
    for end in 0..text.len() {
        for steps in &paths {
            walk(&text[..end], 0, steps);
        }
    }
}

/// Trees whose texts contain many characters that are special for scans.
fn trees() -> impl Strategy<Value = Tree> {
    let text = "[a-c\"\\\\{}\\[\\],:\n\u{1}ä ]{0,90}";
    let leaf = prop_oneof![
        Just(Tree::Null),
        any::<bool>().prop_map(Tree::Bool),
        any::<i64>().prop_map(Tree::from),
        any::<f64>().prop_map(Tree::from),
        text.prop_map(Tree::String),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Tree::Array),
            prop::collection::vec((text, inner), 0..6).prop_map(|members| Tree::Object(Map::from_iter(members))),
        ]
    })
}

fn paths(tree: &Tree, here: &mut Vec<PathStep>, all: &mut Vec<(Vec<PathStep>, Tree)>) {
    all.push((here.clone(), tree.clone()));
    let below: Vec<(PathStep, &Tree)> = match tree {
        Tree::Array(items) => items
            .iter()
            .enumerate()
            .map(|(n, item)| (PathStep::Element(n), item))
            .collect(),
        Tree::Object(members) => members.iter().map(|(n, member)| (name(n), member)).collect(),
        _ => Vec::new(),
    };
    for (step, value) in below {
        here.push(step);
        paths(value, here, all);
        here.pop();
    }
}

proptest! {
    #[test]
    fn every_path_leads_where_a_parser_says(tree in trees(), pretty in any::<bool>()) {
        let text = match pretty {
            true => serde_json::to_string_pretty(&tree),
            false => serde_json::to_string(&tree),
        }.expect("a tree is JSON");
        let mut all = Vec::new();
        paths(&tree, &mut Vec::new(), &mut all);
        for (steps, expected) in all {
            let found = found(&text, &steps);
            let found = parse_json(&found).expect("a value is there");
            let expected = Value::from(&expected);
            prop_assert!(
                crate::value::equals(&found, &expected, &crate::fuel::Fuel::new(u64::MAX, None)) == Some(true),
                "{steps:?} in {text}: {found:?}, and not {expected:?}"
            );
        }
    }
}
