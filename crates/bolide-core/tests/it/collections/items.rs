//! The documents of a collection as the items of a container (docs/mongodb.md, "One data set through both APIs").

use bolide_core::{
    Batch, BatchOperation, CreateItem, DeleteItem, ExecuteProcedure, FeedStart, ItemRead, ItemTarget, ItemWrite,
    PatchItem, QueryItems, QueryPage, ReadChanges, ReadFeed, ReadItem, ReplaceItem, ScanScope, ScriptDraft, ScriptKind,
    ScriptName, TriggeredWrite, UpsertItem,
};
use bolide_model::document::{Document, Patch};
use bolide_model::epk::{Epk, EpkRange};
use bolide_model::error::{Detail, ItemOperation};
use bolide_model::partition_key::PartitionKey;
use bolide_model::{Error, Reason};
use bolide_mql::bson::oid::ObjectId;
use bolide_mql::bson::{RawDocumentBuf, rawdoc};
use serde_json::{Value, json};

use super::fixture::{START, TestCollection, date_index, dated};
use crate::test_container::key;

impl TestCollection {
    async fn read(&self, id: &str, key: PartitionKey) -> Option<Value> {
        let ctx = self.account.begin().await.unwrap();
        let read = ReadItem {
            target: ItemTarget::Id(id.to_owned()),
            partition_key: key,
            if_none_match: None,
        };
        match self.account.read_item(&ctx, &self.collection, &read).await {
            Ok(response) => match response.value {
                ItemRead::Found(item) => Some(serde_json::from_slice(&item.to_json()).unwrap()),
                ItemRead::NotModified { .. } => panic!("no condition was sent"),
            },
            Err(refusal) => {
                assert_eq!(refusal.error, Error::from(Reason::ItemMissing));
                None
            }
        }
    }

    async fn page(&self, query: QueryItems) -> QueryPage {
        let ctx = self.account.begin().await.unwrap();
        let page = self.account.query(&ctx, &self.collection, &query).await;
        page.unwrap_or_else(|refusal| panic!("{}", refusal.error)).value
    }

    async fn rows(&self, text: &str, scope: ScanScope) -> Value {
        let query = QueryItems {
            text: text.to_owned(),
            scope,
            ..QueryItems::default()
        };
        let page = self.page(query).await;
        serde_json::from_str(&format!("[{}]", std::str::from_utf8(&page.rows).unwrap())).unwrap()
    }

    async fn listed(&self) -> Vec<String> {
        let ctx = self.account.begin().await.unwrap();
        let page = self
            .account
            .read_feed(&ctx, &self.collection, &ReadFeed::default())
            .await;
        let items = page.unwrap().value.items;
        items.iter().map(|item| item.id().to_owned()).collect()
    }

    async fn changed(&self) -> Vec<String> {
        let ctx = self.account.begin().await.unwrap();
        let read = changes(FeedStart::Beginning);
        let page = self.account.change_feed(&ctx, &self.collection, &read).await;
        let items = page.unwrap().value.items;
        items.iter().map(|item| item.id().to_owned()).collect()
    }
}

fn changes(start: FeedStart) -> ReadChanges {
    ReadChanges {
        scope: ScanScope::default(),
        start,
        max_items: None,
    }
}

const OID: &str = "0123456789abcdef01234567";

async fn three_documents() -> TestCollection {
    let test = TestCollection::new().await;
    let oid = ObjectId::parse_str(OID).unwrap();
    let documents: [RawDocumentBuf; 3] = [
        rawdoc! {"_id": "a", "n": i64::MAX, "tags": ["x", {"y": 1.5}]},
        rawdoc! {"_id": oid, "n": 2},
        rawdoc! {"_id": 7, "id": "hidden", "ttl": "none"},
    ];
    for document in documents {
        test.insert(document).await.unwrap();
    }
    test
}

#[tokio::test]
async fn documents_are_found_by_their_ids_under_any_partition_key() {
    let test = three_documents().await;
    let keys = [
        key("p"),
        PartitionKey::default(),
        PartitionKey::from_json(&json!([1, 2])).unwrap(),
    ];
    for key in keys {
        let found = test.read("a", key.clone()).await.expect("it is there");
        assert_eq!(found["id"], "a");
        assert_eq!(found["_id"], "a");
        assert_eq!(found["n"], i64::MAX);
        assert_eq!(found["tags"], json!(["x", {"y": 1.5}]));
        assert_eq!(found["_ts"], START / 1_000);
        assert!(found["_etag"].is_string() && found["_rid"].is_string(), "{found}");
        let found = test.read(&format!(r#"{{"$oid":"{OID}"}}"#), key.clone()).await;
        assert_eq!(found.expect("it is there")["_id"], OID);
        let found = test
            .read(r#"{"$numberInt":"7"}"#, key.clone())
            .await
            .expect("it is there");
        assert_eq!(found["id"], r#"{"$numberInt":"7"}"#);
        for missing in ["b", OID, "7", r#"{"$numberLong":"7"}"#, r#"{"$oid":"x"}"#] {
            assert_eq!(test.read(missing, key.clone()).await, None, "{missing}");
        }
    }
}

#[tokio::test]
async fn feeds_and_queries_have_all_documents() {
    let test = three_documents().await;
    let oid = format!(r#"{{"$oid":"{OID}"}}"#);
    let ids = ["a", &oid, r#"{"$numberInt":"7"}"#];
    assert_eq!(test.listed().await, ids);
    assert_eq!(test.changed().await, ids);
    let everything = ScanScope::default();
    for (query, rows) in [
        ("SELECT VALUE c.id FROM c", json!(ids)),
        ("SELECT VALUE COUNT(1) FROM c", json!([3])),
        ("SELECT VALUE c._id FROM c WHERE c.n = 2", json!([OID])),
        ("SELECT VALUE c.tags[1].y FROM c WHERE c.id = 'a'", json!([1.5])),
        ("SELECT VALUE c.n FROM c WHERE c._partitionKey = 'x'", json!([])),
        (
            "SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.n) ORDER BY c.n",
            json!([2, i64::MAX]),
        ),
    ] {
        assert_eq!(test.rows(query, everything.clone()).await, rows, "{query}");
    }
}

#[tokio::test]
async fn all_documents_are_at_the_lowest_effective_partition_key() {
    let test = three_documents().await;
    let middle = Epk::from_hex("80").unwrap();
    let cases = [
        (
            ScanScope {
                partition_key: Some(key("p")),
                ..ScanScope::default()
            },
            3,
        ),
        (
            ScanScope {
                range: Some(0),
                ..ScanScope::default()
            },
            3,
        ),
        (
            ScanScope {
                epk: Some(EpkRange::all()),
                ..ScanScope::default()
            },
            3,
        ),
        (
            ScanScope {
                epk: Some(EpkRange::new(Epk::start(), middle.clone())),
                ..ScanScope::default()
            },
            3,
        ),
        (
            ScanScope {
                epk: Some(EpkRange::new(middle, Epk::end())),
                ..ScanScope::default()
            },
            0,
        ),
    ];
    for (scope, count) in cases {
        let rows = test.rows("SELECT VALUE COUNT(1) FROM c", scope.clone()).await;
        assert_eq!(rows, json!([count]), "{scope:?}");
    }
}

#[tokio::test]
async fn documents_end_in_their_millisecond_for_every_read() {
    // TTL-280, mongo.md §18.1: the stamp of a document does not have its dates.
    let test = TestCollection::new().await;
    test.create_index(date_index(1)).await.unwrap().unwrap();
    for (id, date) in [(1, START), (2, START + 1), (3, START + 2)] {
        test.insert(dated(id, date)).await.unwrap();
    }
    let sorted = QueryItems {
        text: "SELECT VALUE c._id FROM c ORDER BY c._id".to_owned(),
        cross_partition: true,
        max_items: Some(1),
        ..QueryItems::default()
    };
    let first = test.page(sorted.clone()).await;
    assert_eq!(first.rows, "1");
    let second = QueryItems {
        continuation: first.continuation,
        ..sorted
    };
    let page = test.page(second.clone()).await;
    assert_eq!(page.rows, "2");
    // By now the rows after the second page could be kept from it.
    let third = QueryItems {
        continuation: page.continuation,
        ..second.clone()
    };
    test.set_clock(START + 1_001);
    assert_eq!(test.page(third.clone()).await.rows, "3");
    assert_eq!(test.page(second).await.rows, "3");
    let left = r#"{"$numberInt":"3"}"#;
    assert_eq!(test.listed().await, [left]);
    assert_eq!(test.changed().await, [left]);
    assert!(test.read(left, key("p")).await.is_some());
    assert_eq!(test.read(r#"{"$numberInt":"2"}"#, key("p")).await, None);
    test.set_clock(START + 1_002);
    assert_eq!(test.page(third).await.rows, "");
    assert!(test.listed().await.is_empty() && test.changed().await.is_empty());
    assert_eq!(test.read(left, key("p")).await, None);
}

fn refused(error: &Error) -> ItemOperation {
    match &error.detail {
        Detail::Reason(Reason::NotForCollections { container, refused }) if container == "c" => *refused,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn writes_of_items_are_refused_and_change_nothing() {
    let test = three_documents().await;
    let (account, collection) = (&test.account, &test.collection);
    let ctx = account.begin().await.unwrap();
    let document = || Document::parse(br#"{"id": "a", "_partitionKey": "p"}"#).unwrap();
    let target = || ItemTarget::Id("a".to_owned());
    let (partition_key, if_match) = (key("p"), None);
    let create = CreateItem {
        document: document(),
        partition_key: None,
    };
    let upsert = UpsertItem {
        document: document(),
        partition_key: None,
        if_match: None,
    };
    let replace = ReplaceItem {
        target: target(),
        partition_key: key("q"),
        document: document(),
        if_match: None,
    };
    let patch = Patch::from_value(&json!([{"op": "set", "path": "/n", "value": 1}])).unwrap();
    let patch = PatchItem {
        target: target(),
        partition_key: key("p"),
        patch,
        if_match: None,
    };
    let delete = DeleteItem {
        target: target(),
        partition_key: partition_key.clone(),
        if_match,
    };
    let batch = Batch {
        partition_key: key("p"),
        operations: vec![BatchOperation::Create { document: document() }],
        answers_written: vec![true],
    };
    let errors = [
        account.create_item(&ctx, collection, create).await.map(drop),
        account.upsert_item(&ctx, collection, upsert).await.map(drop),
        account.replace_item(&ctx, collection, replace).await.map(drop),
        account.patch_item(&ctx, collection, patch).await.map(drop),
        account.delete_item(&ctx, collection, delete).await.map(drop),
        account.batch(&ctx, collection, batch).await.map(drop),
        account
            .delete_all_of_key(&ctx, collection, &partition_key)
            .await
            .map(drop),
    ];
    for (at, error) in errors.into_iter().enumerate() {
        let refusal = error.expect_err("refused");
        assert_eq!(refused(&refusal.error), ItemOperation::Write, "no. {at}");
    }
    assert_eq!(test.listed().await.len(), 3);
    assert_eq!(test.read("a", key("p")).await.unwrap()["n"], i64::MAX);
}

#[tokio::test]
async fn scripts_definitions_and_histories_of_items_are_refused() {
    let test = three_documents().await;
    let (account, collection) = (&test.account, &test.collection);
    let ctx = account.begin().await.unwrap();
    let draft = || ScriptDraft {
        id: "s".to_owned(),
        body: "function s() { return 5; }".into(),
        fires: None,
    };
    for kind in [ScriptKind::StoredProcedure, ScriptKind::Trigger] {
        let error = account.create_script(&ctx, collection, kind, draft(), false).await;
        assert_eq!(refused(&error.unwrap_err()), ItemOperation::Script);
    }
    let execute = ExecuteProcedure {
        name: ScriptName::Id("s".to_owned()),
        partition_key: key("p"),
        arguments: "[]".to_owned(),
        is_logging: false,
    };
    let error = account.execute_procedure(&ctx, collection, execute).await.unwrap_err();
    assert_eq!(refused(&error.error), ItemOperation::Script);
    let triggered = TriggeredWrite {
        before: vec!["s".to_owned()],
        after: vec![],
        partition_key: None,
        write: ItemWrite::Create(Document::parse(br#"{"id": "b"}"#).unwrap()),
        if_match: None,
    };
    let error = account
        .write_with_triggers(&ctx, collection, triggered)
        .await
        .unwrap_err();
    assert_eq!(refused(&error.error), ItemOperation::Script);
    let sent = json!({"id": "c", "partitionKey": {"paths": ["/_partitionKey"]}, "defaultTtl": 5});
    let error = account
        .replace_container(&ctx, collection, &sent, None)
        .await
        .unwrap_err();
    assert_eq!(refused(&error), ItemOperation::Definition);
    let error = account
        .all_versions(&ctx, collection, &changes(FeedStart::Now))
        .await
        .unwrap_err();
    assert_eq!(refused(&error.error), ItemOperation::AllVersions);

    let kind = ScriptKind::UserDefinedFunction;
    account
        .create_script(&ctx, collection, kind, draft(), false)
        .await
        .unwrap();
    let rows = test
        .rows("SELECT VALUE udf.s() FROM c WHERE c.id = 'a'", ScanScope::default())
        .await;
    assert_eq!(rows, json!([5]));
    account.delete_container(&ctx, collection.rid(), None).await.unwrap();
    assert!(account.find_collection("db", "c").is_none());
}
