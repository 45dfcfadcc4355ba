use super::*;

fn read_all(body: &str) -> Result<Vec<Sent>> {
    operations(&Bytes::copy_from_slice(body.as_bytes()))
}

#[test]
fn a_batch_has_between_one_and_a_hundred_operations() {
    let message = |body: &str| read_all(body).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(message("[]").contains("Batch request has no operations."));
    let many = format!("[{}]", vec!["{}"; 101].join(","));
    assert!(message(&many).contains("Batch request has more operations than what is supported."));
    assert!(message("{}").contains("array"));
    assert!(read_all(&format!("[{}]", vec!["{}"; 100].join(","))).is_ok());
}

#[test]
fn rows_without_operations_are_refused_as_an_empty_array_is() {
    let empty = Bytes::from_static(b"\x81\xf0\xd8\xff\x7f\x01\x0a\0\0\0");
    let message = operations(&empty).err().map(|error| error.to_string());
    assert_eq!(message.as_deref(), Some("Batch request has no operations."));
}

#[test]
fn an_invalid_operation_fails_alone() {
    let sent = read_all(r#"[{"operationType":"Delete","id":"a"},{"operationType":"Fly"},7,{"operationType":"Read"}]"#);
    let sent = sent.expect("the batch itself is well formed");
    assert!(matches!(&sent[0].operation, Ok(BatchOperation::Delete { id, if_match: None }) if id == "a"));
    assert!(sent[1..].iter().all(|sent| sent.operation.is_err()));
}

#[test]
fn a_partition_key_is_json_in_a_string() {
    let sent = read_all(r#"[{"operationType":"Delete","id":"a","partitionKey":"[\"p\"]"}]"#).expect("well formed");
    assert_eq!(
        sent[0].partition_key,
        Ok(Some(PartitionKey::from_header(r#"["p"]"#).expect("a key")))
    );
}

#[test]
fn items_of_rows_may_be_binary() {
    let body = ResourceBody::Bytes(Bytes::from_static(&[0x80, 0xE9, 0x2C, 0x81, b'a']));
    assert_eq!(
        body.document(&mut TextBudget::of_batch()).expect("an item").to_text(),
        r#"{"id":"a"}"#
    );
    let patch = b"\x80\xE9\x8Aoperations\xE1\xEA\x12\x82op\x86remove\x84path\x82/n";
    assert!(
        ResourceBody::Bytes(Bytes::from_static(patch))
            .patch(&mut TextBudget::of_batch())
            .is_ok()
    );
}
