//! P10, in part: writers, readers, a purge, changes of settings, splits and a moving clock, all at once. Some writes are batches, some stored
//! procedures.
//!
//! Each writer has items of its own, so it knows what was written last. TTL stays on, and the default changes. Every answer is judged
//! by bounds that hold whatever the order was: server time before and after the request, and the defaults that were in force in
//! between. At the end storage, figures and items must agree to the last one.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bolide_core::{
    Batch, BatchOperation, BatchResponse, ExecuteProcedure, OperationDone, PurgeMode, ScriptKind, ScriptName,
};
use bolide_model::ErrorKind;
use bolide_model::document::Document;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::test_container::{TestContainer, key, patient_options, shown};

const WRITERS: usize = 3;
const WRITES: usize = 400;
const ITEMS: u64 = 8;
const DEFAULTS: [i64; 4] = [3, 8, -1, 5];

/// Tells what it wrote, and whether the item was new.
const UPSERT: &str = "function (item) {
    var x = getContext(), c = x.getCollection();
    c.readDocument(c.getAltLink() + '/docs/' + item.id, function (missing) {
        c.upsertDocument(c.getSelfLink(), item, function (e, written) {
            if (e) throw e;
            x.getResponse().setBody({created: !!missing, item: written});
        });
    });
}";

struct Scene {
    test: TestContainer,
    defaults: Mutex<Defaults>,
    is_over: AtomicBool,
    /// Items created, and items deleted by a writer.
    created: Mutex<u64>,
    deleted: Mutex<u64>,
}

/// The defaults there were, oldest first: those that were acknowledged, and at most one that is on its way.
struct Defaults {
    sent: Vec<i64>,
    acknowledged: usize,
}

impl Defaults {
    fn acknowledge(&mut self) {
        self.acknowledged = self.sent.len();
    }
}

/// What a writer knows of an item.
#[derive(Debug, Clone)]
struct Known {
    etag: String,
    written: i64,
    own: Option<i64>,
    /// How many defaults had been acknowledged before it was written.
    since: usize,
    was_missing: bool,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn every_answer_is_possible_and_storage_figures_and_items_agree_in_the_end() {
    let test = TestContainer::with_options(json!({"defaultTtl": DEFAULTS[0]}), None, patient_options()).await;
    let scene = Arc::new(Scene {
        test,
        defaults: Mutex::new(Defaults {
            sent: vec![DEFAULTS[0]],
            acknowledged: 1,
        }),
        is_over: AtomicBool::new(false),
        created: Mutex::new(0),
        deleted: Mutex::new(0),
    });
    scene
        .test
        .define_script(ScriptKind::StoredProcedure, "upsert", UPSERT, None)
        .await;
    let helpers = [
        tokio::spawn(split(scene.clone())),
        tokio::spawn(move_clock(scene.clone())),
        tokio::spawn(flip_default(scene.clone())),
        tokio::spawn(purge(scene.clone())),
        tokio::spawn(look_around(scene.clone())),
        tokio::spawn(verify(scene.clone())),
    ];
    let writers = (0..WRITERS).map(|writer| tokio::spawn(write(scene.clone(), writer)));
    let mut known = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        known.extend(writer.await.expect("a writer"));
    }
    scene.is_over.store(true, Ordering::SeqCst);
    for helper in helpers {
        helper.await.expect("a helper");
    }
    assert_agreement(&scene, &known).await;
}

/// Nothing moves any more: what is listed is what writers know to be there, and the counters add up.
async fn assert_agreement(scene: &Scene, known: &[(String, Known)]) {
    let test = &scene.test;
    test.purge().await;
    let report = test.account.verify(&test.container).await.expect("a check");
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!(report.stored, report.live, "no ghost survives a full purge");
    let (listed, _) = test.list(1000, None).await;
    assert_eq!(listed.len() as u64, report.live);
    for item in &listed {
        let (_, version) = known.iter().find(|(id, _)| id == item.id()).expect("a writer's item");
        assert_eq!(item.etag().to_string(), version.etag);
        assert!(!version.was_missing, "P2: {version:?} is back");
    }
    let purged = test
        .account
        .ttl_report(&test.container)
        .await
        .expect("a report")
        .purged_total;
    let (created, deleted) = (*scene.created.lock(), *scene.deleted.lock());
    assert_eq!(purged, created - deleted - report.live, "each item ends once");
}

async fn write(scene: Arc<Scene>, writer: usize) -> Vec<(String, Known)> {
    let mut choices = crate::random::RandomChoices::new(writer as u64 + 1);
    let mut known: HashMap<String, Known> = HashMap::new();
    for _ in 0..WRITES {
        let id = format!("w{writer}-{}", choices.roll(ITEMS));
        match choices.roll(6) {
            0..3 => scene.upsert(&id, &mut choices, &mut known).await,
            3 => scene.delete(&id, &mut known).await,
            _ => scene.read_own(&id, &mut known).await,
        }
    }
    known.into_iter().collect()
}

impl Scene {
    fn now(&self) -> i64 {
        self.test.account.server_time().seconds().0
    }

    /// The defaults that may have been in force since so many had been acknowledged.
    fn defaults_since(&self, acknowledged: usize) -> BTreeSet<i64> {
        let defaults = self.defaults.lock();
        defaults.sent[acknowledged.saturating_sub(1)..]
            .iter()
            .copied()
            .collect()
    }

    fn acknowledged(&self) -> usize {
        self.defaults.lock().acknowledged
    }

    async fn upsert(&self, id: &str, choices: &mut crate::random::RandomChoices, known: &mut HashMap<String, Known>) {
        let own = choices.percent(50).then(|| 1 + choices.roll(5) as i64);
        let mut body = json!({"id": id});
        if let Some(own) = own {
            body["ttl"] = own.into();
        }
        let (since, before) = (self.acknowledged(), self.now());
        let (etag, written, is_new) = match choices.roll(4) {
            0 => self.upsert_in_a_batch(body).await,
            1 => self.upsert_in_a_procedure(body).await,
            _ => {
                let upserted = self.test.upsert(body, None).await;
                let (item, is_new) = upserted.expect("nothing stands in an upsert's way");
                (item.etag().to_string(), item.last_modified().0, is_new)
            }
        };
        assert!(before <= written && written <= self.now());
        *self.created.lock() += u64::from(is_new);
        if let Some(old) = known.get(id) {
            self.assert_possible(old, before, since, !is_new);
        } else {
            assert!(is_new);
        }
        let version = Known {
            etag,
            written,
            own,
            since,
            was_missing: false,
        };
        known.insert(id.to_owned(), version);
    }

    async fn upsert_in_a_batch(&self, mut body: Value) -> (String, i64, bool) {
        body["pk"] = "p".into();
        let upsert = BatchOperation::Upsert {
            document: Document::parse(body.to_string().as_bytes()).expect("an item"),
            if_match: None,
        };
        let batch = Batch {
            partition_key: key("p"),
            operations: vec![upsert],
        };
        let test = &self.test;
        let answer = test.account.batch(&test.begin().await, &test.container, batch).await;
        match answer.expect("a batch").value {
            BatchResponse::Committed(results) => match &results[0].done {
                OperationDone::Written(written) => (
                    written.item.etag().to_string(),
                    written.item.last_modified().0,
                    written.created,
                ),
                other => panic!("an upsert writes: {other:?}"),
            },
            other @ BatchResponse::RolledBack { .. } => panic!("nothing stands in an upsert's way: {other:?}"),
        }
    }

    async fn upsert_in_a_procedure(&self, mut body: Value) -> (String, i64, bool) {
        body["pk"] = "p".into();
        let execute = ExecuteProcedure {
            name: ScriptName::Id("upsert".into()),
            partition_key: key("p"),
            arguments: json!([body]).to_string(),
            is_logging: false,
        };
        let test = &self.test;
        let ctx = test.begin().await;
        let executed = test.account.execute_procedure(&ctx, &test.container, execute).await;
        let body = executed.expect("a run").value.body.expect("a body");
        let body: Value = serde_json::from_str(&body).expect("JSON");
        let item = &body["item"];
        (
            item["_etag"].as_str().expect("an etag").to_owned(),
            item["_ts"].as_i64().expect("a time"),
            body["created"].as_bool().expect("a claim"),
        )
    }

    async fn delete(&self, id: &str, known: &mut HashMap<String, Known>) {
        let (acknowledged, before) = (self.acknowledged(), self.now());
        let deleted = self.test.delete(id, None).await;
        if let Some(version) = known.remove(id) {
            self.assert_possible(&version, before, acknowledged, deleted.is_ok());
            if deleted.is_err() {
                known.insert(
                    id.to_owned(),
                    Known {
                        was_missing: true,
                        ..version
                    },
                );
            }
        }
        match deleted {
            Ok(()) => *self.deleted.lock() += 1,
            Err(kind) => assert_eq!(kind, ErrorKind::NotFound),
        }
    }

    async fn read_own(&self, id: &str, known: &mut HashMap<String, Known>) {
        let (acknowledged, before) = (self.acknowledged(), self.now());
        let read = self.test.read(id).await;
        let Some(version) = known.get_mut(id) else {
            assert_eq!(read.err(), Some(ErrorKind::NotFound));
            return;
        };
        self.assert_possible(version, before, acknowledged, read.is_ok());
        match read {
            Ok(item) => assert_eq!(item.etag().to_string(), version.etag),
            Err(_) => version.was_missing = true,
        }
    }

    /// Whether a request that began at `before`, when so many defaults had been acknowledged, and ends now, may have found a
    /// version live, or missing.
    fn assert_possible(&self, version: &Known, before: i64, acknowledged: usize, was_live: bool) {
        let end = |default: i64| match version.own.unwrap_or(default) {
            -1 => i64::MAX,
            seconds => version.written + seconds,
        };
        if was_live {
            assert!(!version.was_missing, "P2: {version:?} is back");
            let in_force = self.defaults_since(acknowledged);
            assert!(
                in_force.iter().any(|default| end(*default) > before),
                "{version:?} was found at {before} or later under {in_force:?}"
            );
        } else if !version.was_missing {
            let (in_force, after) = (self.defaults_since(version.since), self.now());
            assert!(
                in_force.iter().any(|default| end(*default) <= after),
                "{version:?} was missing at {after} or before under {in_force:?}"
            );
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}

async fn move_clock(scene: Arc<Scene>) {
    let mut choices = crate::random::RandomChoices::new(11);
    while !scene.is_over() {
        let by_ms = if choices.percent(10) {
            -500
        } else {
            choices.roll(400) as i64
        };
        scene.test.clock.advance(by_ms);
        for _ in 0..choices.roll(20) {
            tokio::task::yield_now().await;
        }
    }
}

/// A few splits while everything goes on.
async fn split(scene: Arc<Scene>) {
    const SPLITS: usize = 3;
    for _ in 0..SPLITS {
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        if scene.is_over() {
            return;
        }
        scene
            .test
            .account
            .split(&scene.test.container, None)
            .await
            .expect("a split");
    }
}

async fn flip_default(scene: Arc<Scene>) {
    for default in DEFAULTS.iter().cycle().skip(1) {
        if scene.is_over() {
            return;
        }
        scene.defaults.lock().sent.push(*default);
        scene
            .test
            .define(json!({"defaultTtl": default}))
            .await
            .expect("a change of settings");
        scene.defaults.lock().acknowledge();
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    }
}

async fn purge(scene: Arc<Scene>) {
    while !scene.is_over() {
        let purged = scene
            .test
            .account
            .purge(&scene.test.container, PurgeMode::Force, Some(3))
            .await;
        purged.expect("a purge");
        tokio::task::yield_now().await;
    }
}

async fn verify(scene: Arc<Scene>) {
    while !scene.is_over() {
        scene.test.assert_sound().await;
        scene.test.count().await;
        tokio::task::yield_now().await;
    }
}

/// Reads everybody's items: a version that was shown, then missing, is not shown again.
async fn look_around(scene: Arc<Scene>) {
    let mut last_seen: HashMap<String, String> = HashMap::new();
    let mut gone: BTreeSet<String> = BTreeSet::new();
    while !scene.is_over() {
        let before = scene.now();
        let (items, _) = scene.test.list(1000, None).await;
        let mut seen = HashMap::new();
        for item in &items {
            let etag = item.etag().to_string();
            assert!(!gone.contains(&etag), "P2: {} is back", item.id());
            if let Some(own) = shown(item)["ttl"].as_i64() {
                let end = item.last_modified().0 + own;
                assert!(
                    end > before,
                    "{} ended at {end} and was listed at {before} or later",
                    item.id()
                );
            }
            seen.insert(item.id().to_owned(), etag);
        }
        for (id, etag) in &last_seen {
            if seen.get(id) != Some(etag) {
                gone.insert(etag.clone());
            }
        }
        last_seen = seen;
        tokio::task::yield_now().await;
    }
}
