use serde_json::json;

use super::*;

fn answer(fields: &Value) -> StepResult {
    StepResult {
        fields: fields.as_object().expect("an object").clone(),
        ..StepResult::default()
    }
}

fn check_fields(expected: &Value, fields: &Value) -> Result<(), String> {
    check(expected.as_object(), &answer(fields), &Labels::new())
}

fn with_etag(etag: &str) -> StepResult {
    StepResult {
        kept: SavedValues {
            etag: Some(etag.to_owned()),
            ..SavedValues::default()
        },
        ..StepResult::default()
    }
}

#[test]
fn properties_not_named_are_not_looked_at_at_any_depth() {
    let body = json!({"body": {"a": {"b": 1, "c": 2}, "d": 3}});
    assert_eq!(check_fields(&json!({"body": {"a": {"b": 1}}}), &body), Ok(()));
    assert!(check_fields(&json!({"body": {"a": {"b": 2}}}), &body).is_err());
    assert!(check_fields(&json!({"body": {"e": null}}), &body).is_err());
}

#[test]
fn numbers_compare_as_numbers_and_not_as_text() {
    assert_eq!(check_fields(&json!({"credit": 20}), &json!({"credit": 20.0})), Ok(()));
    assert!(check_fields(&json!({"credit": 20}), &json!({"credit": 20.5})).is_err());
    assert!(check_fields(&json!({"credit": 20}), &json!({"credit": "20"})).is_err());
    assert!(check_fields(&json!({"n": 9007199254740993_u64}), &json!({"n": "9007199254740993"})).is_err());
}

#[test]
fn lists_have_the_given_length_and_order() {
    assert_eq!(
        check_fields(&json!({"values": [1, 2]}), &json!({"values": [1, 2]})),
        Ok(())
    );
    assert!(check_fields(&json!({"values": [1, 2]}), &json!({"values": [2, 1]})).is_err());
    assert!(check_fields(&json!({"values": [1]}), &json!({"values": [1, 2]})).is_err());
}

#[test]
fn any_order_still_counts_duplicates() {
    assert_eq!(
        check_fields(
            &json!({"valuesAnyOrder": [1, 2, 1]}),
            &json!({"valuesAnyOrder": [1, 1, 2]})
        ),
        Ok(())
    );
    assert!(
        check_fields(
            &json!({"valuesAnyOrder": [1, 2, 2]}),
            &json!({"valuesAnyOrder": [1, 1, 2]})
        )
        .is_err()
    );
}

#[test]
fn any_order_finds_the_pairing_when_one_subset_fits_two_elements() {
    let expected = json!({"valuesAnyOrder": [{"a": 1}, {"a": 1, "b": 2}]});
    assert_eq!(
        check_fields(
            &expected,
            &json!({"valuesAnyOrder": [{"a": 1, "b": 2}, {"a": 1, "b": 3}]})
        ),
        Ok(())
    );
}

#[test]
fn a_ttl_mark_that_is_not_expected_must_not_be_there() {
    let marked = json!({"events": [{"op": "delete", "id": "a", "ttlExpired": true}]});
    assert_eq!(check_fields(&marked, &marked), Ok(()));
    assert!(check_fields(&json!({"events": [{"op": "delete", "id": "a"}]}), &marked).is_err());
}

#[test]
fn absent_properties_are_reported_with_their_value() {
    let body = json!({"body": {"ttl": 5}});
    assert_eq!(check_fields(&json!({"absent": ["defaultTtl"]}), &body), Ok(()));
    assert_eq!(
        check_fields(&json!({"absent": ["ttl"]}), &body),
        Err("absent: the body has `ttl`: 5".to_owned())
    );
    assert!(check_fields(&json!({"absent": ["ttl"]}), &json!({"status": 404})).is_err());
}

#[test]
fn an_etag_is_the_same_or_changed_but_never_missing() {
    let labels = Labels::from([("v1".to_owned(), with_etag("\"1\"").kept)]);
    let check_fields =
        |expected: &str, answer: &StepResult| check(json!({"etag": expected}).as_object(), answer, &labels);
    assert_eq!(check_fields("same:v1", &with_etag("\"1\"")), Ok(()));
    assert_eq!(check_fields("changed:v1", &with_etag("\"2\"")), Ok(()));
    assert!(check_fields("changed:v1", &with_etag("\"1\"")).is_err());
    assert!(check_fields("same:v1", &with_etag("\"2\"")).is_err());
    assert!(check_fields("changed:v1", &StepResult::default()).is_err());
    assert!(check_fields("same:v2", &with_etag("\"1\"")).is_err());
}

#[test]
fn a_charge_is_compared_with_the_one_kept() {
    let of = |charge| StepResult {
        kept: SavedValues {
            charge: Some(charge),
            ..SavedValues::default()
        },
        ..StepResult::default()
    };
    let labels = Labels::from([("v1".to_owned(), of(4.95).kept)]);
    let expected = json!({"charge": "same:v1"});
    assert_eq!(check(expected.as_object(), &of(4.95), &labels), Ok(()));
    assert!(check(expected.as_object(), &of(5.0), &labels).is_err());
    assert!(check(expected.as_object(), &StepResult::default(), &labels).is_err());
}

#[test]
fn without_expectations_a_step_must_succeed() {
    assert_eq!(check(None, &answer(&json!({"status": 201})), &Labels::new()), Ok(()));
    let refused = StepResult {
        message: Some("no such container".to_owned()),
        ..answer(&json!({"status": 404}))
    };
    let difference = check(None, &refused, &Labels::new()).expect_err("404 is no success");
    assert_eq!(difference, "status: expected a success, got 404 (no such container)");
}
