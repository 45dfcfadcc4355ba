//! The memory limit for the definitions of an account.

use std::sync::Arc;

use bolide_core::{
    Account, AccountOptions, Container, DatabaseInfo, PermissionMode, PermissionProperties, ScriptDraft, ScriptKind,
    Throughput, UserInfo,
};
use bolide_model::container::ContainerProperties;
use bolide_model::encryption_key::EncryptionKeyProperties;
use bolide_model::{ErrorKind, Result};
use serde_json::{Value, json};

use crate::random::RandomChoices;
use crate::test_container::{TestContainer, definition, options};

fn container(id: &str, more: &Value) -> ContainerProperties {
    let mut sent = definition(more);
    sent["id"] = id.into();
    ContainerProperties::from_json(&sent).expect("a definition")
}

/// Returns an indexing policy with `count` paths, which makes a definition larger.
fn paths(count: u64) -> Value {
    let paths = (0..count).map(|n| json!({"path": format!("/some/property/p{n}/?")}));
    json!({"indexingPolicy": {"includedPaths": paths.collect::<Value>(), "excludedPaths": [{"path": "/*"}]}})
}

fn encryption_key(id: &str, bytes: usize) -> EncryptionKeyProperties {
    let sent = json!({
        "id": id, "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256", "wrappedDataEncryptionKey": "AAEC",
        "keyWrapMetadata": {"type": "t", "name": "n", "value": "v".repeat(bytes), "algorithm": "RSA-OAEP"},
    });
    EncryptionKeyProperties::from_json(&sent).expect("a key")
}

fn grant(id: &str, resource: &str) -> PermissionProperties {
    PermissionProperties {
        id: id.into(),
        mode: PermissionMode::Read,
        mode_text: "read".into(),
        resource: resource.into(),
        partition_key: None,
    }
}

async fn reopen(test: &TestContainer, definition_bytes: Option<usize>) -> Arc<Account> {
    let options = AccountOptions {
        definition_bytes,
        ..options()
    };
    let engine = test.engine.clone();
    Account::open(engine, options).await.expect("an account")
}

fn used(account: &Account) -> usize {
    account.definitions().used_bytes
}

fn expect_full<T>(refused: Result<T>) {
    let Err(error) = refused else {
        panic!("there is no room")
    };
    assert_eq!(error.kind, ErrorKind::QuotaExceeded, "{error}");
}

/// After creates, replaces and deletes, the counted size is the one that a server counts when it starts with the stored rows.
#[tokio::test]
async fn what_is_counted_is_what_is_stored() {
    for seed in 1..=8 {
        let test = TestContainer::with(json!({})).await;
        let mut choices = RandomChoices::new(seed);
        for step in 0..60 {
            let _ = change_something(&test, &mut choices).await;
            if step % 6 == 0 {
                let counted_anew = used(reopen(&test, None).await.as_ref());
                assert_eq!(used(&test.account), counted_anew, "seed {seed}, step {step}");
            }
        }
        for database in test.account.list_databases() {
            let ctx = test.begin().await;
            test.account.delete_database(&ctx, database.rid, None).await.unwrap();
        }
        assert_eq!(used(&test.account), 0, "seed {seed}");
    }
}

/// Creates, replaces or deletes one resource, if possible.
async fn change_something(test: &TestContainer, choices: &mut RandomChoices) -> Result<()> {
    let (account, ctx) = (&test.account, test.begin().await);
    let name = choices.roll(4).to_string();
    let database = pick(choices, account.list_databases());
    let Some(DatabaseInfo { rid: database, .. }) = database.filter(|_| choices.percent(90)) else {
        let throughput = choices.percent(50).then_some(Throughput::Manual { ru: 400 });
        return account.create_database(&ctx, &name, throughput).await.map(drop);
    };
    let user: Option<UserInfo> = pick(choices, account.list_users(database)?);
    let key = pick(choices, account.list_encryption_keys(database)?);
    let found: Option<Arc<Container>> = pick(choices, account.list_containers(database)?);
    match (choices.roll(14), found, user, key) {
        (0, ..) => account.delete_database(&ctx, database, None).await,
        (1, ..) => {
            let ranges = choices.percent(30).then_some(Throughput::Manual { ru: 20_000 });
            let properties = container(&name, &paths(choices.roll(200)));
            let created = account.create_container(&ctx, database, properties, ranges).await;
            created.map(drop)
        }
        (2, Some(found), ..) => {
            let mut sent = definition(&paths(choices.roll(200)));
            sent["id"] = found.properties().id.as_str().into();
            account.replace_container(&ctx, &found, &sent, None).await.map(drop)
        }
        (3, Some(found), ..) => account.delete_container(&ctx, found.rid(), None).await,
        (4, Some(found), ..) => account.split(&found, None).await.map(drop),
        (5, Some(found), ..) => {
            let kind = [ScriptKind::StoredProcedure, ScriptKind::UserDefinedFunction][choices.roll(2) as usize];
            let draft = ScriptDraft {
                id: name,
                body: "x".repeat(choices.roll(2_000) as usize).into(),
                fires: None,
            };
            account.create_script(&ctx, &found, kind, draft, true).await.map(drop)
        }
        (6, Some(found), ..) => {
            let name = bolide_core::ScriptName::Id(name);
            account
                .delete_script(&ctx, &found, ScriptKind::StoredProcedure, &name, None)
                .await
        }
        (7, ..) => account.upsert_user(&ctx, database, &name, None).await.map(drop),
        (8, _, Some(user), _) => {
            let new_name = "u".repeat(1 + choices.roll(200) as usize);
            account.replace_user(&ctx, user.rid, &new_name, None).await.map(drop)
        }
        (9, _, Some(user), _) => account.delete_user(&ctx, user.rid, None).await,
        (10, _, Some(user), _) => {
            let resource = format!("dbs/d/colls/{}", choices.roll(1_000_000));
            let upserted = account.upsert_permission(&ctx, user.rid, grant(&name, &resource), None);
            upserted.await.map(drop)
        }
        (11, _, Some(user), _) => match pick(choices, account.list_permissions(user.rid)?) {
            Some(permission) => account.delete_permission(&ctx, permission.rid, None).await,
            None => Ok(()),
        },
        (12, ..) => {
            let properties = encryption_key(&name, choices.roll(3_000) as usize);
            let created = account.create_encryption_key(&ctx, database, properties).await;
            created.map(drop)
        }
        (13, _, _, Some(key)) => {
            let properties = encryption_key(&key.properties.id, choices.roll(3_000) as usize);
            let replaced = account.replace_encryption_key(&ctx, key.rid, properties, None).await;
            replaced.map(drop)
        }
        _ => Ok(()),
    }
}

fn pick<T>(choices: &mut RandomChoices, mut from: Vec<T>) -> Option<T> {
    (!from.is_empty()).then(|| from.swap_remove(choices.roll(from.len() as u64) as usize))
}

#[tokio::test]
async fn what_would_go_above_the_limit_is_refused_and_deleting_gives_back() {
    let test = TestContainer::with(json!({})).await;
    let account = reopen(&test, Some(used(&test.account) + 100_000)).await;
    let ctx = test.begin().await;
    let database = account.database_by_name("d").unwrap().rid;
    let mut keys = 0;
    let refused = loop {
        let properties = encryption_key(&keys.to_string(), 5_000);
        match account.create_encryption_key(&ctx, database, properties).await {
            Ok(_) => keys += 1,
            refused => break refused,
        }
    };
    expect_full(refused);
    assert!((10..20).contains(&keys), "{keys}");
    assert!(used(&account) <= account.definitions().limit_bytes);

    // None of the refused resources exists.
    assert_eq!(account.list_encryption_keys(database).unwrap().len(), keys);
    expect_full(
        account
            .create_container(&ctx, database, container("e", &paths(3_000)), None)
            .await,
    );
    assert_eq!(account.list_containers(database).unwrap().len(), 1);
    let known = account.container_by_name(database, "c").unwrap();
    let before = known.info();
    expect_full(
        account
            .replace_container(&ctx, &known, &definition(&paths(3_000)), None)
            .await,
    );
    assert_eq!(known.info().etag, before.etag);
    let first = account.encryption_key_by_name(database, "0").unwrap();
    let larger = encryption_key("0", 50_000);
    expect_full(account.replace_encryption_key(&ctx, first.rid, larger, None).await);

    // A change that does not enlarge the definitions is accepted.
    let smaller = encryption_key("0", 10);
    account
        .replace_encryption_key(&ctx, first.rid, smaller, None)
        .await
        .unwrap();
    let user = account.create_user(&ctx, database, "ada").await.unwrap();
    account.delete_user(&ctx, user.rid, None).await.unwrap();
    account.delete_database(&ctx, database, None).await.unwrap();
    assert_eq!(used(&account), 0);
    account.create_database(&ctx, "e", None).await.unwrap();
}

#[tokio::test]
async fn an_account_above_its_limit_opens_and_takes_what_lets_nothing_grow() {
    let test = TestContainer::with_ttl(10).await;
    let ctx = test.begin().await;
    let database = test.container.info().database_rid;
    test.account.create_user(&ctx, database, "ada").await.unwrap();
    let test = TestContainer {
        account: reopen(&test, Some(1_000)).await,
        ..test
    };
    let known = test.account.container_by_name(database, "c").unwrap();
    let test = TestContainer {
        container: known,
        ..test
    };
    let account = &test.account;
    assert!(used(account) > account.definitions().limit_bytes);
    expect_full(account.create_database(&ctx, "e", None).await);
    expect_full(account.create_user(&ctx, database, "bob").await);

    test.define(json!({"defaultTtl": 1_000_000})).await.unwrap();
    test.create(json!({"id": "a"})).await.unwrap();
    let before = used(account);
    account.split(&test.container, None).await.unwrap();
    assert!(used(account) > before, "a split is counted, and not refused");
    let ada = account.user_by_name(database, "ada").unwrap();
    account.delete_user(&ctx, ada.rid, None).await.unwrap();
    account
        .delete_container(&ctx, test.container.rid(), None)
        .await
        .unwrap();
    account.delete_database(&ctx, database, None).await.unwrap();
    assert_eq!(used(account), 0);
}

#[tokio::test]
async fn definitions_may_take_a_quarter_of_the_memory_for_requests_and_at_least_enough_for_thousands() {
    let test = TestContainer::with(json!({})).await;
    let limit = async |memory_bytes: usize| {
        let options = AccountOptions {
            memory_bytes,
            ..options()
        };
        let account = Account::open(test.engine.clone(), options).await.expect("an account");
        account.definitions().limit_bytes
    };
    assert_eq!(limit(2 << 30).await, 512 << 20);
    assert_eq!(limit(16 << 20).await, 128 << 20);
}
