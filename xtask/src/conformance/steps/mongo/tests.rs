use bson::doc;

use super::*;

#[test]
fn the_first_batch_is_listed_with_its_ids() {
    let reply = doc! { "cursor": { "firstBatch": [{ "_id": 2_i64, "n": 1 }, { "_id": "x" }], "id": 7_i64 }, "ok": 1.0 };
    let result = result(reply);
    assert_eq!(result.fields["ids"], json!([2, "x"]));
    assert_eq!(result.fields["idsAnyOrder"], json!([2, "x"]));
    assert_eq!(result.fields["values"], json!([{ "_id": 2, "n": 1 }, { "_id": "x" }]));
    assert_eq!(result.kept.cursor, Some(7));
    assert_eq!(result.message, None);
}

#[test]
fn later_batches_and_distinct_values_count_as_values() {
    let later = result(doc! { "cursor": { "nextBatch": [{ "_id": 1 }], "id": 0_i64 }, "ok": 1.0 });
    assert_eq!(later.fields["ids"], json!([1]));
    let distinct = result(doc! { "values": [1, 2.5], "ok": 1.0 });
    assert_eq!(distinct.fields["valuesAnyOrder"], json!([1, 2.5]));
    let refused = result(doc! { "ok": 0.0, "errmsg": "no", "code": 2 });
    assert_eq!(refused.message.as_deref(), Some("no"));
    assert!(!refused.fields.contains_key("values"));
}
