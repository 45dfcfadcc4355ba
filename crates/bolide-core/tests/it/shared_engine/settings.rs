//! Settings change on all servers at one instant (TTL-233): what one account has acknowledged holds for every request that the other begins after it,
//! although nothing has told the other about it.

use std::sync::Arc;
use std::time::Duration;

use bolide_core::{
    Account, Container, CreateItem, ExecuteProcedure, FeedStart, ItemTarget, PurgeMode, QueryItems, ReadChanges,
    ReadFeed, ReadItem, ReplaceItem, ScanScope, ScriptName,
};
use bolide_model::document::Document;
use bolide_model::partition_key::PartitionKey;
use bolide_model::{ErrorKind, UnixMillis, UnixSeconds};
use bolide_storage::PartitionId;
use serde_json::{Value, json};

use super::{Two, container, container_text};
use crate::probe::Probe;
use crate::test_container::{START, define_procedure, key};

/// One container, open in both accounts.
struct Both {
    two: Two,
    /// Through which account, and the container there.
    first: Through,
    second: Through,
}

#[derive(Clone)]
struct Through {
    account: Arc<Account>,
    container: Arc<Container>,
}

impl Both {
    async fn open(definition: &Value) -> Both {
        Both::over(Two::open().await, definition).await
    }

    /// Returns both over an engine that the account of this number uses through a probe.
    async fn with_probe(account: u64) -> (Both, Arc<Probe>) {
        let probe = std::sync::Mutex::new(None);
        let two = Two::through(|engine, number| {
            let through = Arc::new(Probe::new(engine));
            if number == account {
                *probe.lock().unwrap() = Some(through.clone());
            }
            through
        });
        let both = Both::over(two.await, &json!({})).await;
        (both, probe.into_inner().unwrap().unwrap())
    }

    async fn over(two: Two, definition: &Value) -> Both {
        let ctx = two.first.begin().await.unwrap();
        let database = two.first.create_database(&ctx, "d", None).await.unwrap().rid;
        let created = two
            .first
            .create_container(&ctx, database, container("c", definition), None)
            .await
            .unwrap();
        two.second.refresh_catalog().await.unwrap();
        let first = Through {
            account: two.first.clone(),
            container: created,
        };
        let second = Through {
            account: two.second.clone(),
            container: two.second.container_by_name(database, "c").unwrap(),
        };
        Both { two, first, second }
    }

    fn at(&self, second: i64) {
        self.two.clock.set(UnixMillis((START + second) * 1_000));
    }
}

impl Through {
    async fn define(&self, definition: &Value) -> Result<(), ErrorKind> {
        let ctx = self.account.begin().await.unwrap();
        let text = container_text("c", definition);
        let replaced = self.account.replace_container(&ctx, &self.container, &text, None).await;
        replaced.map(drop).map_err(|error| error.kind)
    }

    async fn create(&self, document: Value) -> Result<(), ErrorKind> {
        let ctx = self.account.begin().await.unwrap();
        let document = Document::parse(document.to_string().as_bytes()).unwrap();
        let create = CreateItem {
            document,
            partition_key: None,
        };
        let created = self.account.create_item(&ctx, &self.container, create).await;
        created.map(drop).map_err(|refusal| refusal.error.kind)
    }

    async fn replace(&self, id: &str) -> Result<(), ErrorKind> {
        let ctx = self.account.begin().await.unwrap();
        let document = Document::parse(json!({"id": id, "pk": "p"}).to_string().as_bytes()).unwrap();
        let replace = ReplaceItem {
            target: ItemTarget::Id(id.into()),
            partition_key: key("p"),
            document,
            if_match: None,
        };
        let replaced = self.account.replace_item(&ctx, &self.container, replace).await;
        replaced.map(drop).map_err(|refusal| refusal.error.kind)
    }

    async fn read(&self, id: &str) -> Result<(), ErrorKind> {
        let ctx = self.account.begin().await.unwrap();
        let read = ReadItem {
            target: ItemTarget::Id(id.into()),
            partition_key: key("p"),
            if_none_match: None,
        };
        let found = self.account.read_item(&ctx, &self.container, &read).await;
        found.map(drop).map_err(|refusal| refusal.error.kind)
    }

    async fn query(&self, text: &str) -> Vec<Value> {
        let ctx = self.account.begin().await.unwrap();
        let query = QueryItems {
            text: text.into(),
            cross_partition: true,
            merges_ranges: true,
            ..QueryItems::default()
        };
        let page = self.account.query(&ctx, &self.container, &query).await.unwrap().value;
        serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat()).unwrap()
    }

    async fn listed(&self) -> usize {
        let ctx = self.account.begin().await.unwrap();
        let read = ReadFeed {
            scope: ScanScope::default(),
            max_items: None,
            continuation: None,
        };
        let page = self.account.read_feed(&ctx, &self.container, &read).await.unwrap();
        page.value.items.len()
    }

    async fn changed(&self) -> usize {
        let ctx = self.account.begin().await.unwrap();
        let read = ReadChanges {
            scope: ScanScope::default(),
            start: FeedStart::Beginning,
            max_items: None,
        };
        let page = self.account.change_feed(&ctx, &self.container, &read).await.unwrap();
        page.value.items.len()
    }

    async fn delete_all_of(&self, key: &PartitionKey) {
        let ctx = self.account.begin().await.unwrap();
        let deleted = self.account.delete_all_of_key(&ctx, &self.container, key).await;
        deleted.unwrap();
    }

    async fn assert_sound(&self) {
        let report = self.account.verify(&self.container).await.unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    }
}

/// The requests that show whether an item is there.
#[derive(Debug, Clone, Copy)]
enum Looks {
    Read,
    Query,
    Count,
    List,
    Changes,
    Replace,
    Create,
}

const ALL: [Looks; 7] = [
    Looks::Read,
    Looks::Query,
    Looks::Count,
    Looks::List,
    Looks::Changes,
    Looks::Replace,
    Looks::Create,
];

impl Looks {
    async fn find(self, through: &Through) -> bool {
        match self {
            Looks::Read => through.read("a").await.is_ok(),
            Looks::Query => !through.query("SELECT * FROM c WHERE c.id = 'a'").await.is_empty(),
            Looks::Count => through.query("SELECT VALUE COUNT(1) FROM c").await == [json!(1)],
            Looks::List => through.listed().await == 1,
            Looks::Changes => through.changed().await == 1,
            Looks::Replace => match through.replace("a").await {
                Ok(()) => true,
                Err(kind) => {
                    assert_eq!(kind, ErrorKind::NotFound);
                    false
                }
            },
            Looks::Create => match through.create(json!({"id": "a", "pk": "p"})).await {
                Ok(()) => false,
                Err(kind) => {
                    assert_eq!(kind, ErrorKind::Conflict);
                    true
                }
            },
        }
    }
}

/// TTL-233, TTL-228: a shorter default ttl ends items for the first request of the other account, whatever it is.
#[tokio::test]
async fn a_shorter_default_ttl_is_in_force_in_the_other_account_at_once() {
    for looks in ALL {
        let both = Both::open(&json!({})).await;
        both.first.create(json!({"id": "a", "pk": "p"})).await.unwrap();
        both.at(10);
        assert!(Looks::Read.find(&both.second).await);
        both.first.define(&json!({"defaultTtl": 5})).await.unwrap();
        assert!(!looks.find(&both.second).await, "{looks:?}");
        assert_eq!(both.second.container.properties().policy.to_number(), Some(5));
    }
}

/// TTL-233, TTL-228: a longer default ttl saves items, also from the other account.
#[tokio::test]
async fn a_longer_default_ttl_is_in_force_in_the_other_account_at_once() {
    for looks in ALL {
        let both = Both::open(&json!({"defaultTtl": 5})).await;
        both.first.create(json!({"id": "a", "pk": "p"})).await.unwrap();
        both.at(4);
        both.first.define(&json!({"defaultTtl": 100})).await.unwrap();
        both.at(10);
        assert!(looks.find(&both.second).await, "{looks:?}");
    }
}

/// TTL-226: what has expired stays so, whichever account made the change and whichever is asked.
#[tokio::test]
async fn a_longer_default_ttl_brings_nothing_back_in_either_account() {
    let both = Both::open(&json!({"defaultTtl": 5})).await;
    both.first.create(json!({"id": "a", "pk": "p"})).await.unwrap();
    both.at(6);
    assert_eq!(both.second.read("a").await, Err(ErrorKind::NotFound));
    both.first.define(&json!({})).await.unwrap();
    for through in [&both.second, &both.first] {
        assert_eq!(through.read("a").await, Err(ErrorKind::NotFound));
        assert_eq!(through.listed().await, 0);
    }
}

/// Changes in turn: each account makes its change on that of the other.
#[tokio::test]
async fn changes_through_both_accounts_follow_each_other() {
    let both = Both::open(&json!({})).await;
    for (turn, through) in [&both.first, &both.second, &both.second, &both.first]
        .into_iter()
        .enumerate()
    {
        through.define(&json!({"defaultTtl": 10 + turn})).await.unwrap();
        for through in [&both.second, &both.first] {
            let id = format!("{turn}-{}", Arc::ptr_eq(&through.account, &both.first.account));
            through.create(json!({"id": id, "pk": "p"})).await.unwrap();
            assert_eq!(
                through.container.properties().policy.to_number(),
                Some(10 + turn as i64)
            );
        }
    }
    both.at(13);
    for through in [&both.first, &both.second] {
        assert_eq!(through.listed().await, 0);
        through.assert_sound().await;
    }
}

/// An index that one account adds has the items that the other one writes from then on.
#[tokio::test]
async fn items_are_written_by_the_indexing_policy_that_the_other_account_set() {
    let both = Both::open(&json!({})).await;
    let policy = json!({"indexingPolicy": {
        "indexingMode": "consistent", "includedPaths": [{"path": "/*"}], "excludedPaths": [],
        "compositeIndexes": [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]],
    }});
    for turn in 0..4 {
        let definition = if turn % 2 == 0 { &policy } else { &json!({}) };
        both.first.define(definition).await.unwrap();
        for (at, through) in [&both.second, &both.first].into_iter().enumerate() {
            let item = json!({"id": format!("{turn}-{at}"), "pk": "p", "a": turn, "b": at});
            through.create(item).await.unwrap();
            through.assert_sound().await;
        }
    }
    let sorted = both
        .second
        .query("SELECT VALUE c.id FROM c WHERE c.a >= 1 ORDER BY c.a")
        .await;
    assert_eq!(sorted.len(), 6);
}

/// What is deleted by its partition key is gone for the first request of the other account, and what is written afterwards is there.
#[tokio::test]
async fn a_deletion_by_partition_key_is_seen_by_the_other_account_at_once() {
    for looks in ALL {
        let both = Both::open(&json!({})).await;
        both.second.create(json!({"id": "a", "pk": "p"})).await.unwrap();
        assert!(Looks::Read.find(&both.second).await);
        both.first.delete_all_of(&key("p")).await;
        assert!(!looks.find(&both.second).await, "{looks:?}");
        both.first.delete_all_of(&key("p")).await;
        both.first.create(json!({"id": "b", "pk": "p"})).await.unwrap();
        assert_eq!(both.second.read("b").await, Ok(()), "{looks:?}");
        assert_eq!(both.second.read("a").await, Err(ErrorKind::NotFound), "{looks:?}");
    }
}

/// The limit of deletions that wait for the purge is that of the store, not of what the account last knew.
#[tokio::test]
async fn a_deletion_that_was_refused_is_possible_once_the_other_account_has_purged() {
    let both = Both::open(&json!({})).await;
    both.second.create(json!({"id": "a", "pk": "p"})).await.unwrap();
    let delete = async |through: &Through| {
        let ctx = through.account.begin().await.unwrap();
        let partition_key = key("p");
        let deleted = through
            .account
            .delete_all_of_key(&ctx, &through.container, &partition_key);
        deleted.await.map(drop).map_err(|refusal| refusal.error.kind)
    };
    while delete(&both.second).await.is_ok() {}
    let purged = both.first.account.purge(&both.first.container, PurgeMode::Force, None);
    purged.await.unwrap();
    assert_eq!(delete(&both.second).await, Ok(()));
}

/// A feed that starts now, or after a time, starts behind what the other account has written, and shows the position that it has come to.
#[tokio::test]
async fn a_feed_starts_where_the_other_account_has_come_to() {
    let both = Both::open(&json!({"changeFeedPolicy": {"retentionDuration": 10_000_000}})).await;
    both.second.create(json!({"id": "a", "pk": "p"})).await.unwrap();
    both.at(1);
    for id in ["b", "c", "d"] {
        both.first.create(json!({"id": id, "pk": "p"})).await.unwrap();
    }
    both.at(2);
    both.first.create(json!({"id": "e", "pk": "p"})).await.unwrap();
    let head = both.first.container.ranges().ranges[0].lsn;
    for (start, expected) in [
        (FeedStart::Now, vec![]),
        (FeedStart::Time(UnixSeconds(START)), vec!["b", "c", "d", "e"]),
        (FeedStart::Time(UnixSeconds(START + 1)), vec!["e"]),
        (FeedStart::Time(UnixSeconds(START + 2)), vec![]),
    ] {
        let ctx = both.second.account.begin().await.unwrap();
        let read = ReadChanges {
            scope: ScanScope::default(),
            start,
            max_items: None,
        };
        let page = both
            .second
            .account
            .change_feed(&ctx, &both.second.container, &read)
            .await;
        let page = page.unwrap();
        let ids: Vec<&str> = page.value.items.iter().map(bolide_core::StoredItem::id).collect();
        assert_eq!(ids, expected, "{read:?}");
        assert!(
            page.cost.touched.iter().all(|position| position.lsn >= head),
            "{read:?}: {:?}",
            page.cost
        );
    }
    let ctx = both.second.account.begin().await.unwrap();
    let read = ReadChanges {
        scope: ScanScope::default(),
        start: FeedStart::Now,
        max_items: None,
    };
    let page = both
        .second
        .account
        .all_versions(&ctx, &both.second.container, &read)
        .await;
    assert!(page.unwrap().value.changes.is_empty());
}

/// A container that one account deletes is not there for the other, and takes no more writes.
#[tokio::test]
async fn a_container_that_the_other_account_has_deleted_answers_that_it_is_gone() {
    for looks in [Looks::Read, Looks::Replace] {
        let both = Both::open(&json!({})).await;
        both.first.create(json!({"id": "a", "pk": "p"})).await.unwrap();
        assert!(looks.find(&both.second).await);
        let ctx = both.first.account.begin().await.unwrap();
        let rid = both.first.container.rid();
        both.first.account.delete_container(&ctx, rid, None).await.unwrap();
        assert!(!looks.find(&both.second).await);
        assert_eq!(
            both.second.create(json!({"id": "b", "pk": "p"})).await,
            Err(ErrorKind::NotFound)
        );
        assert_eq!(
            both.second.account.container_by_rid(rid).map(drop).unwrap_err().kind,
            ErrorKind::NotFound
        );
    }
}

/// A split by one account loses no write of the other: those go to the new ranges once the split is in force.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_split_keeps_what_the_other_account_writes_meanwhile() {
    let both = Both::open(&json!({})).await;
    let writer = both.second.clone();
    let is_done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let until = is_done.clone();
    let writing = tokio::spawn(async move {
        let mut written = 0;
        while !until.load(std::sync::atomic::Ordering::Relaxed) || written < 100 {
            let item = json!({"id": format!("{written}"), "pk": format!("{}", written % 7)});
            writer.create(item).await.unwrap();
            written += 1;
        }
        written
    });
    let mut splits = 0;
    let mut split = async || match both.first.account.split(&both.first.container, None).await {
        Ok(_) => splits += 1,
        // The copy cannot follow what others write. Nothing has changed then.
        Err(error) => assert_eq!(error.kind, ErrorKind::Unavailable, "{error}"),
    };
    for _ in 0..3 {
        split().await;
    }
    is_done.store(true, std::sync::atomic::Ordering::Relaxed);
    let written = writing.await.unwrap();
    split().await;
    assert!(splits > 0, "nobody else writes any more");
    for through in [&both.first, &both.second] {
        assert_eq!(through.query("SELECT VALUE COUNT(1) FROM c").await, [json!(written)]);
        assert_eq!(through.container.ranges().ranges.len(), 1 + splits);
        through.assert_sound().await;
    }
}

/// TTL-226, TTL-233: a write whose client has gone is still in the worker's hands when the settings change. It is not carried out by the old ones.
#[tokio::test]
async fn a_write_whose_request_was_dropped_is_not_committed_by_settings_of_before() {
    let (both, probe) = Both::with_probe(2).await;
    both.first.create(json!({"id": "a", "pk": "p"})).await.unwrap();
    both.at(10);
    assert_eq!(both.second.read("a").await, Ok(()));
    probe.hold_next_commit();
    let second = both.second.clone();
    let writing = tokio::spawn(async move { second.replace("a").await });
    while probe.held_answers() == 0 {
        tokio::task::yield_now().await;
    }
    writing.abort();
    assert!(writing.await.is_err(), "its client is gone");

    both.first.define(&json!({"defaultTtl": 5})).await.unwrap();
    let second = both.second.clone();
    let reading = tokio::spawn(async move { second.read("a").await });
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    probe.release_answer();
    assert_eq!(reading.await.unwrap(), Err(ErrorKind::NotFound));
    // Behind everything that was queued.
    both.second.create(json!({"id": "b", "pk": "p"})).await.unwrap();
    for through in [&both.second, &both.first] {
        assert_eq!(
            through.read("a").await,
            Err(ErrorKind::NotFound),
            "it has ended, and stays so"
        );
    }
}

/// The store answers the commit that raises the number in a partition with an error, and everything else as usual: the change ends with an error,
/// and the container is served as before.
#[tokio::test]
async fn a_change_that_could_not_raise_a_partition_leaves_a_container_that_is_served() {
    for is_done in [false, true] {
        let (both, probe) = Both::with_probe(1).await;
        both.first.create(json!({"id": "a", "pk": "p"})).await.unwrap();
        probe.lose_outcome(is_done, |partition, _| partition != PartitionId::CATALOG);
        let changed = both.first.define(&json!({"defaultTtl": 5})).await;
        assert_eq!(changed, Err(ErrorKind::Timeout), "done: {is_done}");
        for through in [&both.first, &both.second] {
            assert_eq!(through.read("a").await, Ok(()), "done: {is_done}");
            assert_eq!(through.replace("a").await, Ok(()), "done: {is_done}");
            assert_eq!(through.container.properties().policy.to_number(), None);
            through.assert_sound().await;
        }
        both.second.define(&json!({"defaultTtl": 5})).await.unwrap();
        both.at(6);
        assert_eq!(both.first.read("a").await, Err(ErrorKind::NotFound));
    }
}

/// TTL-226, TTL-233: a procedure that waits in the worker's hands when the settings change is not carried out by the old ones.
#[tokio::test]
async fn a_procedure_that_waited_is_not_carried_out_by_settings_of_before() {
    let (both, probe) = Both::with_probe(2).await;
    let replace = "function () { var c = getContext().getCollection(); c.replaceDocument(c.getAltLink() + '/docs/a', {id: 'a', pk: 'p'}); }";
    let second = both.second.clone();
    define_procedure(&second.account, &second.container, "replace", replace).await;
    let execute = move || {
        let second = second.clone();
        async move {
            let ctx = second.account.begin().await.unwrap();
            let execute = ExecuteProcedure {
                name: ScriptName::Id("replace".into()),
                partition_key: key("p"),
                arguments: "[]".into(),
                is_logging: false,
            };
            let executed = second.account.execute_procedure(&ctx, &second.container, execute).await;
            executed.map(drop).map_err(|refusal| refusal.error.kind)
        }
    };
    both.first.create(json!({"id": "a", "pk": "p"})).await.unwrap();
    assert_eq!(execute().await, Ok(()));
    both.at(10);
    probe.hold_next_commit();
    let second = both.second.clone();
    let before = tokio::spawn(async move { second.create(json!({"id": "b", "pk": "p"})).await });
    while probe.held_answers() == 0 {
        tokio::task::yield_now().await;
    }
    let waiting = tokio::spawn(execute());
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    both.first.define(&json!({"defaultTtl": 5})).await.unwrap();
    probe.release_answer();
    assert_eq!(before.await.unwrap(), Ok(()));
    let executed = waiting.await.unwrap();
    assert!(
        matches!(executed, Err(ErrorKind::ScriptFailed { .. })),
        "the item has ended: {executed:?}"
    );
    for through in [&both.second, &both.first] {
        assert_eq!(through.read("a").await, Err(ErrorKind::NotFound), "it stays so");
        through.assert_sound().await;
    }
}

/// The account that changes the default ttl stands still before its last commit, and the other one takes over. What the first sends afterwards does not
/// take effect by the number that it was given: no partition has that any more.
#[tokio::test]
async fn a_change_that_was_taken_over_does_not_take_effect_when_its_account_goes_on() {
    let (both, probe) = Both::with_probe(1).await;
    both.first.create(json!({"id": "a", "pk": "p"})).await.unwrap();
    assert_eq!(both.second.read("a").await, Ok(()));
    probe.hold_catalog_commits_after(1);
    let first = both.first.clone();
    let changing = tokio::spawn(async move { first.define(&json!({"defaultTtl": 5})).await });
    while probe.held_answers() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    both.second.define(&json!({"defaultTtl": 1000})).await.unwrap();
    probe.release_catalog_commits();
    let changed = changing.await.unwrap();
    // If it was made again, it is the later one.
    let expected = if changed.is_ok() { 5 } else { 1000 };
    for through in [&both.second, &both.first] {
        assert_eq!(through.read("a").await, Ok(()), "{changed:?}");
        assert_eq!(through.replace("a").await, Ok(()), "{changed:?}");
        assert_eq!(
            through.container.properties().policy.to_number(),
            Some(expected),
            "{changed:?}"
        );
        through.assert_sound().await;
    }
}

/// The account that changes the default ttl dies between two commits, wherever. The other one goes on by the settings before or after the change, and
/// once it has acknowledged a change of its own, the earlier one never takes effect.
#[tokio::test]
async fn a_change_that_its_account_has_left_behind_is_in_force_or_is_cancelled() {
    let (mut before, mut after) = (0, 0);
    for commits in 0.. {
        let (both, probe) = Both::with_probe(1).await;
        both.first.create(json!({"id": "a", "pk": "p"})).await.unwrap();
        assert_eq!(both.second.read("a").await, Ok(()));
        both.at(10);
        probe.cut_after(commits);
        let changed = both.first.define(&json!({"defaultTtl": 5})).await;
        // All requests agree, those of the account that began it included, as long as it only reads.
        let is_there = Looks::Read.find(&both.second).await;
        for looks in [Looks::Query, Looks::Count, Looks::List, Looks::Changes] {
            assert_eq!(
                looks.find(&both.second).await,
                is_there,
                "{looks:?} after {commits} commits"
            );
        }
        assert!(!is_there || changed.is_err(), "acknowledged, and not in force");
        if is_there {
            before += 1;
        } else {
            after += 1;
        }
        // Commits that the dead account has sent do not arrive any more; its process begins again.
        both.second.define(&json!({"defaultTtl": 1000})).await.unwrap();
        probe.mend();
        let third = both.two.third().await;
        let database = third.database_by_name("d").unwrap().rid;
        let third = Through {
            container: third.container_by_name(database, "c").unwrap(),
            account: third,
        };
        for through in [&third, &both.second, &both.first] {
            assert_eq!(through.read("a").await.is_ok(), is_there);
            assert_eq!(through.container.properties().policy.to_number(), Some(1000));
            through.assert_sound().await;
        }
        if changed.is_ok() {
            break;
        }
    }
    assert!(
        before >= 3 && after >= 1,
        "the change has three steps: {before} cut before the instant, {after} not"
    );
}
