//! Corrupt stored bytes: every operation, and the next start, succeed or return an error.
//!
//! The input is a list of damages. Each names a partition, a key space and a row, and an action: flip a byte of the value, cut it, replace it, delete
//! the row, or add one with a new key. So all decoders of records, entries, keys and catalog rows read bytes that were not written by them.

use std::sync::Arc;

use bolide_core::{
    Account, DeleteItem, FeedStart, ItemTarget, PatchItem, PurgeMode, QueryItems, ReadChanges, ReadFeed, ReadItem,
    ScanScope, UpsertItem,
};
use bolide_model::UnixSeconds;
use bolide_model::document::{Document, Patch};
use bolide_model::partition_key::{Component, PartitionKey};
use bolide_model::ttl::Policy;
use bolide_storage::memory::MemoryEngine;
use bolide_storage::{Batch, CommitToken, Engine as _, Key, PartitionId, Put, ReadRequest, Scan, Space};
use bytes::Bytes;
use serde_json::json;

use super::input::Input;
use super::test_account::{ITEMS, TestAccount, id, partition_key};

/// Partitions that may exist: the catalog, and those of one container.
const PARTITIONS: u64 = 4;
/// More damages would only be slow.
const DAMAGES: usize = 8;
/// Longer than the lifetime of all items except those that live longest.
const STEP_MS: i64 = 200_000;

/// Applies the damages and then runs every operation.
pub fn run(data: &[u8]) {
    let test_account = TestAccount::new(1);
    let mut input = Input(data);
    test_account.run(async {
        for number in 0..DAMAGES {
            if input.is_empty() {
                break;
            }
            damage(&test_account.engine, &mut input, number).await;
        }
        use_everything(&test_account, &test_account.account).await;
        if let Ok(account) = TestAccount::open(&test_account.engine).await {
            use_everything(&test_account, &account).await;
        }
    });
}

fn first_rows(space: Space) -> ReadRequest {
    let scan = Scan {
        space,
        from: Bytes::new(),
        to: None,
        reverse: false,
        max_rows: 1_000,
        max_bytes: usize::MAX,
        keys_only: false,
    };
    ReadRequest {
        scans: vec![scan],
        ..ReadRequest::default()
    }
}

async fn damage(engine: &MemoryEngine, input: &mut Input<'_>, number: usize) {
    let partition = PartitionId(u64::from(input.byte()) % PARTITIONS);
    let space = Space::ALL[usize::from(input.byte()) % Space::ALL.len()];
    let (row, verb, at) = (usize::from(input.byte()), input.byte() % 5, usize::from(input.byte()));
    let Ok(reply) = engine.read(partition, first_rows(space)).await else {
        return;
    };
    let rows = &reply.pages[0].rows;
    let Some((key, value)) = rows.get(row % rows.len().max(1)) else {
        return;
    };
    let length = usize::from(input.byte());
    let mut bytes = value.to_vec();
    let mut batch = Batch {
        base: reply.head.lsn,
        next: reply.head.lsn.next(),
        stamp: reply.head.stamp,
        edition: reply.head.edition,
        token: CommitToken(number as u128),
        puts: vec![],
        deletes: vec![],
        new_keys: Vec::new(),
        may_block: false,
    };
    let put = |key: Bytes, value: Vec<u8>| Put {
        key: Key::new(space, key),
        value: value.into(),
    };
    match verb {
        0 if !bytes.is_empty() => {
            let at = at % bytes.len();
            bytes[at] ^= length as u8 | 1;
            batch.puts.push(put(key.clone(), bytes));
        }
        1 => {
            bytes.truncate(at);
            batch.puts.push(put(key.clone(), bytes));
        }
        2 => batch.puts.push(put(key.clone(), input.bytes(length).to_vec())),
        3 => batch.deletes.push(Key::new(space, key.clone())),
        _ => {
            let new_key = Bytes::copy_from_slice(input.bytes(length.max(1)));
            batch.puts.push(put(new_key, bytes));
        }
    }
    engine.commit(partition, batch).await.expect("memory is there");
}

/// The results do not matter here, only that every call returns.
async fn use_everything(test_account: &TestAccount, account: &Arc<Account>) {
    for container in account.all_containers() {
        let Ok(ctx) = account.begin().await else { return };
        for n in 0..ITEMS {
            let read = ReadItem {
                target: ItemTarget::Id(id(n)),
                partition_key: key(n),
                if_none_match: None,
            };
            if let Ok(answer) = account.read_item(&ctx, &container, &read).await
                && let bolide_core::ItemRead::Found(item) = answer.value
            {
                let _ = item.to_json_with_lsn();
            }
        }
        let by_rid = ReadItem {
            target: ItemTarget::Rid(2),
            partition_key: key(1),
            if_none_match: None,
        };
        let _ = account.read_item(&ctx, &container, &by_rid).await;
        let _ = account.read_feed(&ctx, &container, &ReadFeed::default()).await;
        for start in [FeedStart::Beginning, FeedStart::Time(UnixSeconds(1_700_000_000))] {
            let read = ReadChanges {
                scope: ScanScope::default(),
                start,
                max_items: None,
            };
            let _ = account.change_feed(&ctx, &container, &read).await;
        }
        let query = QueryItems {
            text: "SELECT * FROM c WHERE c.n >= 0 ORDER BY c.n".to_owned(),
            cross_partition: true,
            ..QueryItems::default()
        };
        let _ = account.query(&ctx, &container, &query).await;
        write(account, &container).await;
        let _ = account.verify(&container).await;
        test_account.clock.advance(STEP_MS);
        let _ = account.ttl_report(&container).await;
        let _ = account.ttl_preview(&container, Policy::After(7)).await;
        let _ = account.ttl_why(&container, &id(1), &key(1)).await;
        let _ = account.usage(&container).await;
        let _ = account.purge(&container, PurgeMode::Force, None).await;
        let _ = account.split(&container, None).await;
        let _ = account.verify(&container).await;
        let changed = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        let _ = account.replace_container(&ctx, &container, &changed, None).await;
    }
    let _ = account.container_figures().await;
}

async fn write(account: &Arc<Account>, container: &Arc<bolide_core::Container>) {
    let Ok(ctx) = account.begin().await else { return };
    for n in 0..3 {
        let text = json!({"id": id(n), "pk": partition_key(n), "u": n + 1, "ttl": 5}).to_string();
        let document = Document::parse(text.as_bytes()).expect("a fixed document");
        let upsert = UpsertItem {
            document,
            partition_key: None,
            if_match: None,
        };
        let _ = account.upsert_item(&ctx, container, upsert).await;
    }
    let patch = Patch::parse(br#"[{"op":"incr","path":"/n","value":1}]"#).expect("a fixed patch");
    let patch = PatchItem {
        target: ItemTarget::Id(id(4)),
        partition_key: key(4),
        patch,
        if_match: None,
    };
    let _ = account.patch_item(&ctx, container, patch).await;
    let delete = DeleteItem {
        target: ItemTarget::Id(id(5)),
        partition_key: key(5),
        if_match: None,
    };
    let _ = account.delete_item(&ctx, container, delete).await;
}

fn key(n: usize) -> PartitionKey {
    PartitionKey(vec![Component::String(partition_key(n))])
}
