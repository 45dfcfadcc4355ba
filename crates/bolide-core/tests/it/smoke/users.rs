//! Users and permissions.

use bolide_core::{PermissionMode, PermissionProperties};
use bolide_model::ErrorKind;

use crate::test_container::{TestContainer, key};

fn grant(id: &str, resource: &str) -> PermissionProperties {
    PermissionProperties {
        id: id.to_owned(),
        mode: PermissionMode::Read,
        mode_text: "read".to_owned(),
        resource: resource.to_owned(),
        partition_key: None,
    }
}

#[tokio::test]
async fn users_and_permissions_are_there_after_a_restart() {
    let test = TestContainer::with_ttl(10).await;
    let ctx = test.begin().await;
    let database = test.container.info().database_rid;
    let user = test.account.create_user(&ctx, database, "u").await.unwrap();
    let properties = PermissionProperties {
        partition_key: Some(key("p")),
        ..grant("p", "dbs/d/colls/c")
    };
    let permission = test
        .account
        .create_permission(&ctx, user.rid, properties.clone())
        .await
        .unwrap();
    let test = test.reopen().await;
    assert_eq!(test.account.user_by_name(database, "u").unwrap(), user);
    let found = test.account.permission_by_name(user.rid, "p").unwrap();
    assert_eq!((&found, &*found.properties), (&permission, &properties));
    // Numbers continue after a restart.
    let ctx = test.begin().await;
    let next = test.account.create_user(&ctx, database, "v").await.unwrap();
    assert!(next.rid > user.rid);
}

#[tokio::test]
async fn names_are_taken_once_and_a_resource_is_granted_once() {
    let test = TestContainer::with_ttl(10).await;
    let ctx = test.begin().await;
    let database = test.container.info().database_rid;
    let account = &test.account;
    let user = account.create_user(&ctx, database, "u").await.unwrap();
    let other = account.create_user(&ctx, database, "v").await.unwrap();
    let kind = |error: bolide_model::Error| error.kind;
    assert_eq!(
        account.create_user(&ctx, database, "u").await.map_err(kind),
        Err(ErrorKind::Conflict)
    );
    assert_eq!(
        account.replace_user(&ctx, other.rid, "u", None).await.map_err(kind),
        Err(ErrorKind::Conflict)
    );
    account
        .create_permission(&ctx, user.rid, grant("p", "dbs/d/colls/c"))
        .await
        .unwrap();
    for refused in [grant("p", "dbs/d/colls/x"), grant("q", "dbs/d/colls/c/")] {
        let refused = account.create_permission(&ctx, user.rid, refused).await;
        assert_eq!(refused.map_err(kind).err(), Some(ErrorKind::Conflict));
    }
    for granted in [
        grant("x", "dbs/d/colls/x"),
        PermissionProperties {
            partition_key: Some(key("p")),
            ..grant("q", "dbs/d/colls/c")
        },
    ] {
        account.create_permission(&ctx, user.rid, granted).await.unwrap();
    }
    account
        .create_permission(&ctx, other.rid, grant("p", "dbs/d/colls/c"))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_name_leads_to_the_user_that_has_it_now() {
    let test = TestContainer::with_ttl(10).await;
    let ctx = test.begin().await;
    let database = test.container.info().database_rid;
    let account = &test.account;
    let first = account.create_user(&ctx, database, "first").await.unwrap();
    let second = account.create_user(&ctx, database, "second").await.unwrap();
    account.replace_user(&ctx, first.rid, "renamed", None).await.unwrap();
    account.replace_user(&ctx, second.rid, "first", None).await.unwrap();
    account.replace_user(&ctx, second.rid, "first", None).await.unwrap();
    account.delete_user(&ctx, first.rid, None).await.unwrap();
    let third = account.create_user(&ctx, database, "renamed").await.unwrap();
    let names = |test: &TestContainer| {
        ["first", "second", "renamed"].map(|name| test.account.user_by_name(database, name).ok().map(|user| user.rid))
    };
    let expected = [Some(second.rid), None, Some(third.rid)];
    assert_eq!(names(&test), expected);
    assert_eq!(names(&test.reopen().await), expected);
}

#[tokio::test]
async fn an_upsert_creates_or_replaces_by_name() {
    let test = TestContainer::with_ttl(10).await;
    let ctx = test.begin().await;
    let database = test.container.info().database_rid;
    let (created, is_new) = test.account.upsert_user(&ctx, database, "u", None).await.unwrap();
    let (again, is_new_again) = test.account.upsert_user(&ctx, database, "u", None).await.unwrap();
    assert!(is_new && !is_new_again);
    assert_eq!(created.rid, again.rid);
    assert_ne!(created.etag, again.etag);
    let stale = created.etag.to_string();
    let stale = test.account.upsert_user(&ctx, database, "u", Some(&stale)).await;
    assert_eq!(stale.unwrap_err().kind, ErrorKind::PreconditionFailed);
}

#[tokio::test]
async fn what_belongs_to_a_deleted_user_or_database_goes_with_it() {
    let test = TestContainer::with_ttl(10).await;
    let ctx = test.begin().await;
    let database = test.container.info().database_rid;
    let user = test.account.create_user(&ctx, database, "u").await.unwrap();
    let kept = test.account.create_user(&ctx, database, "v").await.unwrap();
    for user in [user.rid, kept.rid] {
        let permission = grant("p", "dbs/d/colls/c");
        test.account.create_permission(&ctx, user, permission).await.unwrap();
    }
    test.account.delete_user(&ctx, user.rid, None).await.unwrap();
    assert_eq!(
        test.account.list_permissions(user.rid).unwrap_err().kind,
        ErrorKind::NotFound
    );
    test.account.delete_database(&ctx, database, None).await.unwrap();
    // A row left behind would lack its parent, and opening would fail.
    let options = crate::test_container::options();
    let account = bolide_core::Account::open(test.engine.clone(), options).await.unwrap();
    assert!(account.list_databases().is_empty());
}
