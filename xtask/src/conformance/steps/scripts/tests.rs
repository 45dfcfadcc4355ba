use super::*;

fn wire(step: Value) -> Result<Value> {
    operation(&serde_json::from_value(step).expect("an operation"))
}

#[test]
fn a_patch_in_a_batch_carries_its_operations_as_its_resource() {
    let patch = wire(json!({"op": "patch", "id": "a", "ops": [{"op": "set", "path": "/n", "value": 5}]}));
    let expected = json!({"operationType": "Patch", "id": "a",
        "resourceBody": {"operations": [{"op": "set", "path": "/n", "value": 5}]}});
    assert_eq!(patch.expect("known"), expected);
}

#[test]
fn a_create_in_a_batch_carries_its_body() {
    let create = wire(json!({"op": "create", "body": {"id": "a", "pk": "p"}}));
    assert_eq!(
        create.expect("known"),
        json!({"operationType": "Create", "resourceBody": {"id": "a", "pk": "p"}})
    );
}

#[test]
fn an_unknown_operation_is_refused() {
    assert!(wire(json!({"op": "touch", "id": "a"})).is_err());
}
