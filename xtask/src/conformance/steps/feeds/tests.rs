use super::*;

#[test]
fn a_purged_item_is_a_marked_delete_named_by_its_metadata() {
    let row =
        json!({"current": {}, "metadata": {"operationType": "delete", "lsn": 7, "id": "a", "timeToLiveExpired": true}});
    assert_eq!(
        event(FeedMode::Avad, &row),
        json!({"op": "delete", "id": "a", "ttlExpired": true})
    );
}

#[test]
fn an_event_has_no_mark_unless_the_row_has_one() {
    let created = json!({"current": {"id": "a"}, "metadata": {"operationType": "create", "lsn": 6}});
    assert_eq!(event(FeedMode::Avad, &created), json!({"op": "create", "id": "a"}));
    let denied = json!({"current": {"id": "a"}, "metadata": {"operationType": "create", "timeToLiveExpired": false}});
    assert_eq!(
        event(FeedMode::Avad, &denied),
        json!({"op": "create", "id": "a", "ttlExpired": false})
    );
}

#[test]
fn a_latest_version_is_named_by_the_document_itself() {
    assert_eq!(
        event(FeedMode::Latest, &json!({"id": "a", "pk": "p", "_lsn": 3})),
        json!({"id": "a"})
    );
}
