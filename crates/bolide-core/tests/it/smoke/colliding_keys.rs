//! Partition keys that hash alike are keys of their own: whoever chooses a key reaches no other's items (security).

use bolide_core::{DeleteItem, ItemTarget, QueryItems, ReadFeed, ReadItem, ScanScope};
use bolide_model::ErrorKind;
use bolide_model::epk::Epk;
use bolide_model::partition_key::{Component, PartitionKey};
use serde_json::{Value, json};

use crate::test_container::{TestContainer, ids, key, scope_of};

const VICTIM: &str = "victim";
/// Has the effective partition key of [`VICTIM`]: murmur3 can be turned around.
const CRAFTED: &str = "user00000001513O4\u{f3}&]4%\u{ac}>\u{1c2}\u{d8}p";

async fn with_an_item_of_the_victim() -> TestContainer {
    let test = TestContainer::with(json!({})).await;
    let definition = test.container.properties().partition_key.clone();
    assert_eq!(
        Epk::of(&definition, &key(VICTIM)),
        Epk::of(&definition, &key(CRAFTED)),
        "the keys hash alike"
    );
    test.create(json!({"id": "secret", "pk": VICTIM})).await.unwrap();
    test
}

async fn rows(test: &TestContainer, scope: ScanScope) -> Vec<Value> {
    let query = QueryItems {
        text: "SELECT VALUE c.id FROM c".to_owned(),
        scope,
        ..QueryItems::default()
    };
    let ctx = test.begin().await;
    let page = test.account.query(&ctx, &test.container, &query).await.unwrap().value;
    serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat()).unwrap()
}

async fn listed(test: &TestContainer, scope: ScanScope) -> Vec<String> {
    let ctx = test.begin().await;
    let read = ReadFeed {
        scope,
        ..ReadFeed::default()
    };
    let page = test
        .account
        .read_feed(&ctx, &test.container, &read)
        .await
        .unwrap()
        .value;
    ids(&page.items).into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn another_key_with_the_same_hash_sees_and_changes_nothing() {
    let test = with_an_item_of_the_victim().await;
    let (partition_key, target) = (key(CRAFTED), ItemTarget::Id("secret".to_owned()));
    let ctx = test.begin().await;
    let read = ReadItem {
        target: target.clone(),
        partition_key: partition_key.clone(),
        if_none_match: None,
    };
    let read = test.account.read_item(&ctx, &test.container, &read).await;
    assert_eq!(read.err().map(|refusal| refusal.error.kind), Some(ErrorKind::NotFound));
    let delete = DeleteItem {
        target,
        partition_key,
        if_match: None,
    };
    let deleted = test.account.delete_item(&ctx, &test.container, delete).await;
    assert_eq!(
        deleted.err().map(|refusal| refusal.error.kind),
        Some(ErrorKind::NotFound)
    );
    assert_eq!(rows(&test, scope_of(CRAFTED)).await, Vec::<Value>::new());
    assert_eq!(listed(&test, scope_of(CRAFTED)).await, Vec::<String>::new());

    let deleted = test
        .account
        .delete_all_of_key(&ctx, &test.container, &key(CRAFTED))
        .await;
    assert!(deleted.is_ok(), "{:?}", deleted.err());
    assert_eq!(rows(&test, scope_of(VICTIM)).await, ["secret"]);
}

#[tokio::test]
async fn two_keys_with_one_hash_each_have_their_item_of_one_id() {
    let test = with_an_item_of_the_victim().await;
    test.create(json!({"id": "secret", "pk": CRAFTED})).await.unwrap();
    for pk in [VICTIM, CRAFTED] {
        assert_eq!(listed(&test, scope_of(pk)).await, ["secret"], "{pk}");
    }
    test.assert_sound().await;
}

#[tokio::test]
async fn a_prefix_with_the_same_hash_covers_nothing_of_another() {
    let hierarchy = json!({"partitionKey": {"paths": ["/tenant", "/user"], "kind": "MultiHash", "version": 2}});
    let test = TestContainer::with(hierarchy).await;
    test.create(json!({"id": "secret", "tenant": VICTIM, "user": "ada"}))
        .await
        .unwrap();
    let below = |tenant: &str| ScanScope {
        partition_key: Some(PartitionKey(vec![Component::String(tenant.into())])),
        ..ScanScope::default()
    };
    assert_eq!(listed(&test, below(VICTIM)).await, ["secret"]);
    assert_eq!(listed(&test, below(CRAFTED)).await, Vec::<String>::new());
    assert_eq!(rows(&test, below(CRAFTED)).await, Vec::<Value>::new());
}
