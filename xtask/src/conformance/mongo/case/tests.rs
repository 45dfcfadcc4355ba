use bson::doc;

use super::*;

fn case(steps: &str) -> Case {
    let text = format!(
        r#"{{"schema": "bolide-mongo-ttl/1", "name": "n", "about": "a", "source": ["seed"], "needs": ["restart"],
            "start": {{"$date": "2026-01-01T00:00:00Z"}}, "steps": {steps}}}"#
    );
    serde_json::from_str(&text).expect("the text is a case")
}

#[test]
fn steps_are_read_with_exact_types_and_order() {
    let case = case(
        r#"[{"run": {"update": "c", "ttl": {"$numberLong": "20"}, "a": -1}, "expect": {"ok": 1}},
            {"advance_ms": 5}, {"visible": [1, "x"], "coll": "c"}, {"restart": true, "down_ms": 7}]"#,
    );
    assert_eq!(case.start_ms().expect("a date"), 1_767_225_600_000);
    assert!(case.needs("restart") && !case.needs("rename"));
    let steps = case.steps().expect("every step has one kind");
    match &steps[0] {
        Step::Run(command) => {
            assert_eq!(command.command, doc! { "update": "c", "ttl": 20_i64, "a": -1_i32 });
            let keys: Vec<_> = command.command.keys().collect();
            assert_eq!(keys, ["update", "ttl", "a"]);
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(steps[1], Step::Advance(5)));
    assert!(matches!(&steps[2], Step::Visible { ids, collection } if ids.len() == 2 && collection == "c"));
    assert!(matches!(steps[3], Step::Restart(7)));
}

#[test]
fn a_step_without_a_kind_or_with_two_is_an_error() {
    assert!(case(r#"[{"coll": "c"}]"#).steps().is_err());
    assert!(case(r#"[{"advance_ms": 1, "restart": true}]"#).steps().is_err());
    assert!(case(r#"[{"visible": [1]}]"#).steps().is_err());
}
