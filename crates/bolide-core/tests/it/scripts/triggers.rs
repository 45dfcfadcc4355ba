//! Triggers run with the write that names them, as one transaction.

use bolide_core::{ItemTarget, ItemWrite, TriggeredWrite, TriggeredWritten};
use bolide_model::ErrorKind;
use bolide_model::document::{Document, Patch};
use serde_json::{Value, json};

use crate::test_container::{TestContainer, key, shown};

fn document(body: &Value) -> Document {
    Document::parse(body.to_string().as_bytes()).unwrap()
}

impl TestContainer {
    async fn write(&self, before: &[&str], after: &[&str], write: ItemWrite) -> Result<TriggeredWritten, ErrorKind> {
        let triggered = TriggeredWrite {
            before: before.iter().map(|name| (*name).into()).collect(),
            after: after.iter().map(|name| (*name).into()).collect(),
            partition_key: Some(key("p")),
            write,
            if_match: None,
        };
        let answer = self
            .account
            .write_with_triggers(&self.begin().await, &self.container, triggered)
            .await;
        answer.map(|answer| answer.value).map_err(|refusal| refusal.error.kind)
    }
}

fn create(id: &str) -> ItemWrite {
    ItemWrite::Create(document(&json!({"id": id, "pk": "p"})))
}

const RENAME: &str = "function () { var q = getContext().getRequest(), d = q.getBody(); d.id = d.id.toUpperCase() + 't1'; q.setBody(d); }";
const AUDIT: &str = "function () { var x = getContext(), c = x.getCollection(), d = x.getResponse().getBody(); \
    c.createDocument(c.getSelfLink(), {id: 'audit of ' + d.id, pk: 'p', op: x.getRequest().getOperationType()}, function (e) { if (e) throw e }); }";

#[tokio::test]
async fn a_trigger_before_changes_what_is_written_and_one_after_adds_to_it() {
    let test = TestContainer::with_ttl(-1).await;
    test.trigger("rename", "Pre", "All", RENAME).await;
    test.trigger("audit", "Post", "All", AUDIT).await;
    let before = test.container.ranges().ranges[0].lsn;
    let written = test.write(&["rename"], &["audit"], create("doc1")).await.unwrap();
    assert_eq!(written.written.unwrap().item.id(), "DOC1t1");
    assert_eq!(test.container.ranges().ranges[0].lsn.0, before.0 + 1);
    assert_eq!(shown(&test.read("audit of DOC1t1").await.unwrap())["op"], "Create");
    test.assert_sound().await;
}

#[tokio::test]
async fn a_trigger_that_throws_takes_the_write_back() {
    let test = TestContainer::with_ttl(-1).await;
    test.trigger("audit", "Post", "All", AUDIT).await;
    test.trigger("post", "Post", "All", "function () { throw new Error(409, 'no') }")
        .await;
    test.trigger("pre", "Pre", "All", "function () { throw new Error('no') }")
        .await;
    assert_eq!(
        test.write(&[], &["audit", "post"], create("a")).await.unwrap_err(),
        ErrorKind::ScriptFailed { number: 409 }
    );
    assert_eq!(
        test.write(&["pre"], &[], create("a")).await.unwrap_err(),
        ErrorKind::ScriptFailed { number: 0 }
    );
    assert_eq!(test.listed().await, [""; 0]);
    // A write that is refused also undoes the writes of its pre-trigger.
    let insert =
        "function () { var c = getContext().getCollection(); c.createDocument(c.getSelfLink(), {id: 'a', pk: 'p'}) }";
    test.trigger("insert", "Pre", "Create", insert).await;
    assert_eq!(
        test.write(&["insert"], &[], create("a")).await.unwrap_err(),
        ErrorKind::Conflict
    );
    assert_eq!(test.listed().await, [""; 0]);
    test.assert_sound().await;
}

#[tokio::test]
async fn a_trigger_must_be_there_and_fit_the_write() {
    let test = TestContainer::with_ttl(-1).await;
    test.trigger("deleting", "Pre", "Delete", "function () {}").await;
    test.trigger("replacing", "Post", "Replace", "function () {}").await;
    test.trigger("broken", "Pre", "All", "function (").await;
    for (before, after, kind) in [
        (&["none"][..], &[][..], ErrorKind::BadRequest),
        (&["deleting"], &[], ErrorKind::BadRequest),
        (&["replacing"], &[], ErrorKind::BadRequest),
        (&[], &["replacing"], ErrorKind::BadRequest),
        (&["broken"], &[], ErrorKind::ScriptSyntax),
    ] {
        assert_eq!(
            test.write(before, after, create("a")).await.unwrap_err(),
            kind,
            "{before:?} {after:?}"
        );
    }
    test.create(json!({"id": "a"})).await.unwrap();
    let target = || ItemTarget::Id("a".into());
    let replace = ItemWrite::Replace(target(), document(&json!({"id": "a", "pk": "p", "n": 1})));
    assert!(test.write(&[], &["replacing"], replace).await.is_ok());
    let patch = Patch::from_value(&json!([{"op": "incr", "path": "/n", "value": 1}])).unwrap();
    assert!(
        test.write(&[], &["replacing"], ItemWrite::Patch(target(), patch))
            .await
            .is_ok()
    );
    assert_eq!(shown(&test.read("a").await.unwrap())["n"], 2);
    assert!(
        test.write(&["deleting"], &[], ItemWrite::Delete(target()))
            .await
            .unwrap()
            .written
            .is_none()
    );
    assert!(!test.has("a").await);
}

#[tokio::test]
async fn a_trigger_cannot_leave_what_is_no_document_of_the_partition() {
    let test = TestContainer::with_ttl(-1).await;
    for (name, body) in [
        ("number", "5"),
        ("nothing", "undefined"),
        ("other", "{id: 'a', pk: 'q'}"),
        ("no id", "{pk: 'p'}"),
        ("ttl", "{id: 'a', pk: 'p', ttl: 0}"),
    ] {
        test.trigger(
            name,
            "Pre",
            "All",
            &format!("function () {{ getContext().getRequest().setBody({body}) }}"),
        )
        .await;
        assert_eq!(
            test.write(&[name], &[], create("a")).await.unwrap_err(),
            ErrorKind::BadRequest,
            "{name}"
        );
    }
    assert_eq!(test.listed().await, [""; 0]);
}

#[tokio::test]
async fn a_trigger_sees_no_ghosts() {
    // TTL-252
    let test = TestContainer::with_ttl(10).await;
    test.create(json!({"id": "ghost"})).await.unwrap();
    test.at(110);
    let count = "function () { var x = getContext(), c = x.getCollection(); c.readDocuments(c.getSelfLink(), function (e, d) { x.getResponse().setBody(d.map(x => x.id)) }) }";
    test.trigger("count", "Post", "All", count).await;
    let written = test.write(&[], &["count"], create("a")).await.unwrap();
    assert_eq!(written.body.as_deref(), Some(r#"["a"]"#));
}
