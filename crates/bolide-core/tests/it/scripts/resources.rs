//! Scripts as resources of a container.

use bolide_core::{ScriptDraft, ScriptKind, ScriptName, TriggerFires};
use bolide_model::{ErrorKind, Result};
use serde_json::json;

use crate::test_container::TestContainer;

fn draft(id: &str, body: &str) -> ScriptDraft {
    ScriptDraft {
        id: id.into(),
        body: body.into(),
        fires: None,
    }
}

const KIND: ScriptKind = ScriptKind::StoredProcedure;

#[tokio::test]
async fn a_script_goes_through_its_life() {
    let test = TestContainer::with_ttl(-1).await;
    let (account, container, ctx) = (&test.account, &test.container, test.begin().await);
    let kind = |result: Result<_>| result.map(|_| ()).map_err(|error| error.kind);
    let (created, is_new) = account
        .create_script(&ctx, container, KIND, draft("s", "1"), false)
        .await
        .unwrap();
    assert!(is_new);
    assert_eq!(
        kind(
            account
                .create_script(&ctx, container, KIND, draft("s", "2"), false)
                .await
                .map(|_| ())
        ),
        Err(ErrorKind::Conflict)
    );
    let (upserted, is_new) = account
        .create_script(&ctx, container, KIND, draft("s", "2"), true)
        .await
        .unwrap();
    assert_eq!((is_new, upserted.rid, &*upserted.body), (false, created.rid, "2"));
    assert_ne!(upserted.etag, created.etag);
    // The same id with another kind names another script.
    account
        .create_script(&ctx, container, ScriptKind::UserDefinedFunction, draft("s", "f"), false)
        .await
        .unwrap();

    let name = ScriptName::Id("s".into());
    let stale = account
        .replace_script(&ctx, container, KIND, &name, draft("s", "3"), Some("\"other\""))
        .await;
    assert_eq!(kind(stale.map(|_| ())), Err(ErrorKind::PreconditionFailed));
    let renamed = account
        .replace_script(
            &ctx,
            container,
            KIND,
            &name,
            draft("t", "3"),
            Some(&upserted.etag.to_string()),
        )
        .await
        .unwrap();
    assert_eq!(renamed.rid, created.rid);
    assert_eq!(
        kind(account.script(container, KIND, &name).map(|_| ())),
        Err(ErrorKind::NotFound)
    );
    let by_rid = ScriptName::Rid(created.rid.number);
    assert_eq!(account.script(container, KIND, &by_rid).unwrap(), renamed);
    account
        .delete_script(&ctx, container, KIND, &by_rid, None)
        .await
        .unwrap();
    assert_eq!(account.list_scripts(container, KIND), []);
    assert_eq!(
        account.list_scripts(container, ScriptKind::UserDefinedFunction).len(),
        1
    );
    assert_eq!(
        kind(account.delete_script(&ctx, container, KIND, &by_rid, None).await),
        Err(ErrorKind::NotFound)
    );
}

#[tokio::test]
async fn scripts_survive_a_restart_and_go_with_their_container() {
    let test = TestContainer::with_ttl(-1).await;
    test.define_script(
        KIND,
        "s",
        "function () { getContext().getResponse().setBody('kept') }",
        None,
    )
    .await;
    let fires = TriggerFires::parse("post", "REPLACE").unwrap();
    let trigger = test.define_script(ScriptKind::Trigger, "t", "body", Some(fires)).await;
    let test = test.reopen().await;
    assert_eq!(
        test.account.list_scripts(&test.container, ScriptKind::Trigger),
        [trigger]
    );
    assert_eq!(test.account.list_scripts(&test.container, KIND).len(), 1);

    let ctx = test.begin().await;
    test.account
        .delete_container(&ctx, test.container.rid(), None)
        .await
        .unwrap();
    let late = test
        .account
        .create_script(&ctx, &test.container, KIND, draft("late", "x"), false)
        .await;
    assert_eq!(late.unwrap_err().kind, ErrorKind::NotFound);
    let database = test.account.database_by_name("d").unwrap();
    let properties =
        bolide_model::container::ContainerProperties::from_json(&crate::test_container::definition(&json!({})))
            .unwrap();
    test.account
        .create_container(&ctx, database.rid, properties, None)
        .await
        .unwrap();
    let test = test.reopen().await;
    assert_eq!(test.account.list_scripts(&test.container, KIND), []);
}

#[tokio::test]
async fn ids_follow_the_rules_of_resources() {
    let test = TestContainer::with_ttl(-1).await;
    let ctx = test.begin().await;
    for id in ["", "a/b", "a?", "a ", &"x".repeat(256)] {
        let created = test
            .account
            .create_script(&ctx, &test.container, KIND, draft(id, "x"), false)
            .await;
        assert_eq!(created.unwrap_err().kind, ErrorKind::BadRequest, "{id}");
    }
}
