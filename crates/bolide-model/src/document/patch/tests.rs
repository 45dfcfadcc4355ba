#![expect(clippy::needless_pass_by_value, reason = "tests read better with json!(…) in place")]

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::error::ErrorKind;

fn definition() -> PartitionKeyDefinition {
    PartitionKeyDefinition::from_json(&json!({"paths": ["/pk/a"], "kind": "Hash", "version": 2})).unwrap()
}

fn apply(document: Value, operations: Value) -> Result<Value> {
    let Value::Object(mut members) = document else {
        panic!("a document is an object")
    };
    Patch::from_value(&operations)?.apply(&mut members, &definition())?;
    Ok(Value::Object(members))
}

/// Applies one operation to a document with values of every type.
fn apply_one(operation: Value) -> Result<Value> {
    let document =
        json!({"id": "1", "pk": {"a": "p"}, "s": "x", "n": 3, "o": {"x": 1, "y": 2, "z": 3}, "l": [10, 20, 30]});
    apply(document, json!([operation]))
}

fn message(result: Result<impl fmt::Debug>) -> String {
    let error = result.expect_err("the patch should be refused");
    assert_eq!(error.kind, ErrorKind::BadRequest);
    error.to_string()
}

#[test]
fn operations_of_the_python_tests_apply_in_order() {
    let document = json!({"id": "patch_item", "prop": "prop1", "address": {"city": "Redmond"}, "company": "Microsoft", "number": 3});
    let operations = json!({"operations": [
        {"op": "add", "path": "/color", "value": "yellow"},
        {"op": "remove", "path": "/prop"},
        {"op": "replace", "path": "/company", "value": "CosmosDB"},
        {"op": "set", "path": "/address/new_city", "value": "Atlanta"},
        {"op": "incr", "path": "/number", "value": 7},
        {"op": "move", "from": "/color", "path": "/favorite_color"},
    ]});
    let expected = json!({
        "id": "patch_item", "address": {"city": "Redmond", "new_city": "Atlanta"}, "company": "CosmosDB", "number": 10,
        "favorite_color": "yellow",
    });
    assert_eq!(apply(document, operations), Ok(expected));
}

#[test]
fn add_inserts_into_arrays_and_sets_in_objects() {
    let list =
        |path: &str| apply_one(json!({"op": "add", "path": path, "value": 0})).map(|document| document["l"].clone());
    assert_eq!(list("/l/0"), Ok(json!([0, 10, 20, 30])));
    assert_eq!(list("/l/3"), Ok(json!([10, 20, 30, 0])));
    assert_eq!(list("/l/-"), Ok(json!([10, 20, 30, 0])));
    assert!(message(list("/l/4")).contains("out of range"));
    assert_eq!(
        apply_one(json!({"op": "add", "path": "/s", "value": null})).unwrap()["s"],
        json!(null)
    );
}

#[test]
fn set_replaces_elements_and_appends() {
    let list =
        |path: &str| apply_one(json!({"op": "set", "path": path, "value": 0})).map(|document| document["l"].clone());
    assert_eq!(list("/l/1"), Ok(json!([10, 0, 30])));
    assert_eq!(list("/l/3"), Ok(json!([10, 20, 30, 0])));
    assert_eq!(list("/l/-"), Ok(json!([10, 20, 30, 0])));
    assert!(message(list("/l/4")).contains("out of range"));
}

#[test]
fn replace_and_remove_need_a_target() {
    for path in ["/missing", "/o/missing", "/l/3", "/l/-"] {
        assert!(
            message(apply_one(json!({"op": "replace", "path": path, "value": 0}))).contains("there is nothing at"),
            "{path}"
        );
        assert!(
            message(apply_one(json!({"op": "remove", "path": path}))).contains("there is nothing at"),
            "{path}"
        );
    }
    assert_eq!(
        apply_one(json!({"op": "replace", "path": "/l/2", "value": 0})).unwrap()["l"],
        json!([10, 20, 0])
    );
    assert_eq!(
        apply_one(json!({"op": "remove", "path": "/l/0"})).unwrap()["l"],
        json!([20, 30])
    );
}

#[test]
fn removing_keeps_the_order_of_the_others() {
    let document = apply_one(json!({"op": "remove", "path": "/o/x"})).unwrap();
    assert_eq!(document["o"].to_string(), r#"{"y":2,"z":3}"#);
}

#[test]
fn increment_keeps_whole_numbers_whole_and_exact() {
    let sum = |n: Value, by: Value| {
        apply(json!({"n": n}), json!([{"op": "incr", "path": "/n", "value": by}]))
            .map(|document| document["n"].to_string())
    };
    assert_eq!(sum(json!(3), json!(-5)).unwrap(), "-2");
    assert_eq!(
        sum(json!(9_007_199_254_740_993_i64), json!(1)).unwrap(),
        "9007199254740994"
    );
    assert_eq!(sum(json!(0.5), json!(1.5)).unwrap(), "2");
    assert_eq!(sum(json!(1), json!(0.25)).unwrap(), "1.25");
    assert_eq!(sum(json!(u64::MAX), json!(1)).unwrap(), "1.8446744073709552e+19");
    assert!(message(sum(json!(f64::MAX), json!(f64::MAX))).contains("out of range"));
}

#[test]
fn increment_creates_a_missing_property_but_changes_only_numbers() {
    assert_eq!(
        apply_one(json!({"op": "incr", "path": "/o/new", "value": 1.5})).unwrap()["o"]["new"],
        json!(1.5)
    );
    assert_eq!(
        apply_one(json!({"op": "incr", "path": "/l/1", "value": 1})).unwrap()["l"],
        json!([10, 21, 30])
    );
    assert!(message(apply_one(json!({"op": "incr", "path": "/s", "value": 1}))).contains("not a number"));
    assert!(message(apply_one(json!({"op": "incr", "path": "/l/3", "value": 1}))).contains("there is nothing at"));
    assert!(message(apply_one(json!({"op": "incr", "path": "/n", "value": "1"}))).contains("must be a number"));
}

#[test]
fn move_replaces_what_is_at_its_destination() {
    let moved = |from: &str, path: &str| apply_one(json!({"op": "move", "from": from, "path": path}));
    let document = moved("/o/x", "/s").unwrap();
    assert_eq!((&document["s"], &document["o"]), (&json!(1), &json!({"y": 2, "z": 3})));
    assert_eq!(moved("/l/0", "/l/2").unwrap()["l"], json!([20, 30, 10]));
    assert_eq!(moved("/n", "/n").unwrap()["n"], json!(3));
    assert!(message(moved("/missing", "/s")).contains("there is nothing at"));
    assert!(message(moved("/o", "/o/x/y")).contains("below itself"));
}

#[test]
fn nothing_creates_a_parent() {
    for (op, name) in [
        ("add", "Add"),
        ("set", "Set"),
        ("replace", "Replace"),
        ("incr", "Increment"),
    ] {
        for (path, missing) in [
            ("/missing/x", "missing"),
            ("/missing/x/y", "missing"),
            ("/s/x", "s"),
            ("/n/0", "n"),
            ("/l/9/x", "9"),
            ("/l/x/y", "x"),
            ("/o/x/y", "x"),
        ] {
            let message = message(apply_one(json!({"op": op, "path": path, "value": 1})));
            let expected = format!(
                "For Operation(1): {name} Operation can only create a child object of an existing node(array or object) and cannot create path \
                 recursively, no path found beyond: '{missing}' in '{path}'."
            );
            assert_eq!(message, expected);
        }
    }
}

#[test]
fn a_long_step_is_not_repeated_whole() {
    let path = format!("/{}/x", "a".repeat(10_000));
    let message = message(apply_one(json!({"op": "add", "path": path, "value": 1})));
    assert!(message.len() < 500, "{message}");
}

#[test]
fn array_steps_are_plain_indexes() {
    for path in ["/l/01", "/l/+1", "/l/x", "/l/", "/l/99999999999999999999"] {
        assert!(
            message(apply_one(json!({"op": "replace", "path": path, "value": 1}))).contains("For Operation(1)"),
            "{path}"
        );
    }
    assert_eq!(
        apply(json!({"o": {"0": 1}}), json!([{"op": "remove", "path": "/o/0"}])),
        Ok(json!({"o": {}}))
    );
}

#[test]
fn tilde_escapes_a_slash_and_itself() {
    let document = apply(
        json!({"a/b": 1, "c~d": 2, "~1": 3}),
        json!([
            {"op": "remove", "path": "/a~1b"}, {"op": "remove", "path": "/c~0d"}, {"op": "remove", "path": "/~01"},
        ]),
    );
    assert_eq!(document, Ok(json!({})));
    for path in ["", "a", "/~", "/~2", "/a~"] {
        assert!(
            message(Patch::from_value(&json!([{"op": "remove", "path": path}]))).contains("JSON pointer"),
            "{path}"
        );
    }
}

#[test]
fn identity_and_system_properties_cannot_be_patched() {
    for path in ["/id", "/_ts", "/_rid", "/_etag/x", "/pk", "/pk/a"] {
        for operation in [
            json!({"op": "set", "path": path, "value": 1}),
            json!({"op": "remove", "path": path}),
            json!({"op": "move", "from": path, "path": "/new"}),
            json!({"op": "move", "from": "/s", "path": path}),
        ] {
            assert!(
                message(apply_one(operation.clone())).starts_with("For Operation(1)"),
                "{operation}"
            );
        }
    }
    assert_eq!(
        apply_one(json!({"op": "set", "path": "/pk/b", "value": 1})).unwrap()["pk"],
        json!({"a": "p", "b": 1})
    );
}

#[test]
fn messages_count_operations_from_one() {
    let operations = json!([{"op": "set", "path": "/x", "value": 1}, {"op": "remove", "path": "/y"}]);
    assert!(message(apply(json!({}), operations)).starts_with("For Operation(2): "));
    let operations = json!([{"op": "set", "path": "/x", "value": 1}, {"op": "copy", "path": "/y"}]);
    assert!(message(Patch::from_value(&operations)).starts_with("For Operation(2): the operation 'copy'"));
}

#[test]
fn a_patch_has_one_to_ten_operations() {
    let of_length =
        |n: usize| Patch::from_value(&json!({"operations": vec![json!({"op": "remove", "path": "/x"}); n]}));
    assert_eq!(of_length(10).unwrap().operations.len(), 10);
    assert!(message(of_length(0)).contains("no operations"));
    assert!(message(of_length(11)).contains("at most 10"));
}

#[test]
fn condition_is_kept_as_text() {
    let patch =
        Patch::parse(br#"{"condition":"from c where c.x = 1","operations":[{"op":"remove","path":"/x"}]}"#).unwrap();
    assert_eq!(patch.condition.as_deref(), Some("from c where c.x = 1"));
}

#[test]
fn other_shapes_are_refused() {
    for body in [
        json!(1),
        json!({}),
        json!({"operations": {}}),
        json!({"operations": [1]}),
        json!({"operations": [{"op": "remove", "path": "/x"}], "condition": 1}),
        json!([{"path": "/x"}]),
        json!([{"op": "add", "path": "/x"}]),
        json!([{"op": "move", "path": "/x"}]),
        json!([{"op": "remove", "path": 1}]),
    ] {
        assert_eq!(
            Patch::from_value(&body).expect_err(&body.to_string()).kind,
            ErrorKind::BadRequest
        );
    }
}

fn pointer() -> impl Strategy<Value = String> {
    prop::collection::vec("a|b|l|0|1|-|~0", 1..4)
        .prop_map(|steps| steps.iter().map(|step| format!("/{step}")).collect())
}

proptest! {
    #[test]
    fn any_operations_apply_or_are_refused(
        operations in prop::collection::vec(("add|set|replace|remove|incr|move", pointer(), pointer(), prop_oneof![
            Just(json!(1)), Just(json!("x")), Just(json!([1, 2])), Just(json!({"a": {"b": 1}})), Just(json!(1e308)),
        ]), 1..10)
    ) {
        let operations: Vec<Value> = operations
            .into_iter()
            .map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}))
            .collect();
        let _ = apply(json!({"a": {"b": [1, {"l": 2}]}, "l": [[], {}], "b": 1e308}), json!(operations));
    }
}
