//! Triggers run with the write that names them, as one transaction.

use bolide_core::{ItemTarget, ItemWrite, TriggeredWrite, TriggeredWritten};
use bolide_model::ErrorKind;
use bolide_model::document::{Document, Patch};
use serde_json::{Value, json};

use crate::stage::{Stage, key, shown};

fn document(body: &Value) -> Document {
    Document::parse(body.to_string().as_bytes()).unwrap()
}

impl Stage {
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
    let stage = Stage::with_ttl(-1).await;
    stage.trigger("rename", "Pre", "All", RENAME).await;
    stage.trigger("audit", "Post", "All", AUDIT).await;
    let before = stage.container.ranges().ranges[0].lsn;
    let written = stage.write(&["rename"], &["audit"], create("doc1")).await.unwrap();
    assert_eq!(written.written.unwrap().item.id(), "DOC1t1");
    assert_eq!(stage.container.ranges().ranges[0].lsn.0, before.0 + 1);
    assert_eq!(shown(&stage.read("audit of DOC1t1").await.unwrap())["op"], "Create");
    stage.assert_sound().await;
}

#[tokio::test]
async fn a_trigger_that_throws_takes_the_write_back() {
    let stage = Stage::with_ttl(-1).await;
    stage.trigger("audit", "Post", "All", AUDIT).await;
    stage
        .trigger("post", "Post", "All", "function () { throw new Error(409, 'no') }")
        .await;
    stage
        .trigger("pre", "Pre", "All", "function () { throw new Error('no') }")
        .await;
    assert_eq!(
        stage.write(&[], &["audit", "post"], create("a")).await.unwrap_err(),
        ErrorKind::ScriptFailed { number: 409 }
    );
    assert_eq!(
        stage.write(&["pre"], &[], create("a")).await.unwrap_err(),
        ErrorKind::ScriptFailed { number: 0 }
    );
    assert_eq!(stage.listed().await, [""; 0]);
    // And a write that is refused takes back what a trigger did before it.
    let insert =
        "function () { var c = getContext().getCollection(); c.createDocument(c.getSelfLink(), {id: 'a', pk: 'p'}) }";
    stage.trigger("insert", "Pre", "Create", insert).await;
    assert_eq!(
        stage.write(&["insert"], &[], create("a")).await.unwrap_err(),
        ErrorKind::Conflict
    );
    assert_eq!(stage.listed().await, [""; 0]);
    stage.assert_sound().await;
}

#[tokio::test]
async fn a_trigger_must_be_there_and_fit_the_write() {
    let stage = Stage::with_ttl(-1).await;
    stage.trigger("deleting", "Pre", "Delete", "function () {}").await;
    stage.trigger("replacing", "Post", "Replace", "function () {}").await;
    stage.trigger("broken", "Pre", "All", "function (").await;
    for (before, after, kind) in [
        (&["none"][..], &[][..], ErrorKind::BadRequest),
        (&["deleting"], &[], ErrorKind::BadRequest),
        (&["replacing"], &[], ErrorKind::BadRequest),
        (&[], &["replacing"], ErrorKind::BadRequest),
        (&["broken"], &[], ErrorKind::ScriptSyntax),
    ] {
        assert_eq!(
            stage.write(before, after, create("a")).await.unwrap_err(),
            kind,
            "{before:?} {after:?}"
        );
    }
    stage.create(json!({"id": "a"})).await.unwrap();
    let target = || ItemTarget::Id("a".into());
    let replace = ItemWrite::Replace(target(), document(&json!({"id": "a", "pk": "p", "n": 1})));
    assert!(stage.write(&[], &["replacing"], replace).await.is_ok());
    let patch = Patch::from_value(&json!([{"op": "incr", "path": "/n", "value": 1}])).unwrap();
    assert!(
        stage
            .write(&[], &["replacing"], ItemWrite::Patch(target(), patch))
            .await
            .is_ok()
    );
    assert_eq!(shown(&stage.read("a").await.unwrap())["n"], 2);
    assert!(
        stage
            .write(&["deleting"], &[], ItemWrite::Delete(target()))
            .await
            .unwrap()
            .written
            .is_none()
    );
    assert!(!stage.has("a").await);
}

#[tokio::test]
async fn a_trigger_cannot_leave_what_is_no_document_of_the_partition() {
    let stage = Stage::with_ttl(-1).await;
    for (name, body) in [
        ("number", "5"),
        ("nothing", "undefined"),
        ("other", "{id: 'a', pk: 'q'}"),
        ("no id", "{pk: 'p'}"),
        ("ttl", "{id: 'a', pk: 'p', ttl: 0}"),
    ] {
        stage
            .trigger(
                name,
                "Pre",
                "All",
                &format!("function () {{ getContext().getRequest().setBody({body}) }}"),
            )
            .await;
        assert_eq!(
            stage.write(&[name], &[], create("a")).await.unwrap_err(),
            ErrorKind::BadRequest,
            "{name}"
        );
    }
    assert_eq!(stage.listed().await, [""; 0]);
}

#[tokio::test]
async fn a_trigger_sees_no_ghosts() {
    // TTL-252
    let stage = Stage::with_ttl(10).await;
    stage.create(json!({"id": "ghost"})).await.unwrap();
    stage.at(110);
    let count = "function () { var x = getContext(), c = x.getCollection(); c.readDocuments(c.getSelfLink(), function (e, d) { x.getResponse().setBody(d.map(x => x.id)) }) }";
    stage.trigger("count", "Post", "All", count).await;
    let written = stage.write(&[], &["count"], create("a")).await.unwrap();
    assert_eq!(written.body.as_deref(), Some(r#"["a"]"#));
}
