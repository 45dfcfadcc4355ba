//! Change streams: one order of all changes, and the ends of documents in it.

use bolide_model::epk::Epk;
use std::collections::BTreeMap;
use std::sync::Arc;

use bolide_core::{
    ChangeKind, ChangeStream, CollectionDefinition, Container, DocumentDraft, OpenTransaction, StreamContent,
    StreamEvent, StreamPosition, StreamScope,
};
use bolide_model::UnixMillis;
use bolide_model::ttl::Policy;
use bolide_mql::bson::{RawDocument, RawDocumentBuf, rawdoc};
use bolide_mql::index::IndexDefinition;

use super::fixture::{START, TestCollection, date_index, dated};

async fn stream(test: &TestCollection, after: Option<StreamPosition>) -> ChangeStream {
    let scope = StreamScope::Database("db".to_owned());
    test.account
        .open_change_stream(scope, after, |_, _| false)
        .await
        .expect("a stream")
}

/// Reads everything that there is, in batches of `max`.
async fn read(test: &TestCollection, stream: &mut ChangeStream, max: usize) -> Vec<StreamEvent> {
    let mut events = Vec::new();
    loop {
        let batch = stream
            .next(test.account.server_time(), max, usize::MAX)
            .await
            .expect("a batch");
        assert!(batch.events.len() <= max);
        events.extend(batch.events);
        if !batch.has_more {
            return events;
        }
    }
}

/// What happened to which document.
fn told(event: &StreamEvent) -> (ChangeKind, i32) {
    let StreamContent::Document(change) = &event.content else {
        panic!("an event of a document: {event:?}");
    };
    let document = change.current.as_deref().unwrap_or(&change.note);
    let document = RawDocument::from_bytes(document).expect("a document");
    (change.kind, document.get_i32("_id").expect("a number"))
}

async fn collection(test: &TestCollection, name: &str) -> Arc<Container> {
    let definition = CollectionDefinition::new(RawDocumentBuf::new(), None, IndexDefinition::id_index(None).unwrap());
    let created = test.account.create_collection("db", name, definition, Policy::Off);
    created.await.expect("a collection")
}

async fn insert(test: &TestCollection, container: &Arc<Container>, id: i32) {
    let definition = container.collection().expect("a collection");
    let draft = DocumentDraft::new(rawdoc! { "_id": id }, &definition, test.account.draft_options()).expect("valid");
    let ctx = test.account.begin().await.expect("a clock");
    let write = test
        .account
        .write_document(&ctx, (container, Epk::start()), move |batch| batch.insert(&draft));
    write.await.expect("committed").value.expect("the _id is free");
}

async fn insert_both(test: &TestCollection, other: &Arc<Container>, id: i32) {
    let account = &test.account;
    let now = account.begin().await.expect("a clock").now;
    let until = UnixMillis(now.0 + 60_000);
    let begun = account.begin_transaction(&test.collection, now, until).await;
    let transaction = OpenTransaction::new(begun.expect("a transaction"));
    for (container, id) in [(&test.collection, id), (other, id + 1)] {
        let definition = container.collection().expect("a collection");
        let draft = DocumentDraft::new(rawdoc! { "_id": id }, &definition, account.draft_options()).expect("valid");
        let inserted = transaction.write(container, |batch| batch.insert(&draft)).await;
        inserted.expect("written").expect("the _id is free");
    }
    let taken = transaction.take().await.expect("it is open");
    account.commit_transaction(taken, None).await.expect("committed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_stream_misses_nothing_and_repeats_nothing_while_others_commit() {
    const EACH: i32 = 60;
    let test = Arc::new(TestCollection::new().await);
    let other = collection(&test, "d").await;
    let begin = stream(&test, None).await.position();
    let mut writers = Vec::new();
    for writer in 0..4 {
        let (test, other) = (test.clone(), other.clone());
        writers.push(tokio::spawn(async move {
            for number in 0..EACH {
                let id = writer * 10_000 + number * 10;
                match writer {
                    0 => insert(&test, &test.collection, id).await,
                    1 => insert(&test, &other, id).await,
                    _ => insert_both(&test, &other, id).await,
                }
            }
        }));
    }
    let mut reader = stream(&test, Some(begin)).await;
    let expected = usize::try_from(EACH * 6).expect("small");
    let mut events = Vec::new();
    while events.len() < expected {
        let changed = reader.changed();
        let new = read(&test, &mut reader, 7).await;
        if new.is_empty() {
            // The clock stands still, so only a commit can end the wait.
            changed.await;
        }
        events.extend(new);
    }
    for writer in writers {
        writer.await.expect("it ends");
    }
    assert!(events.windows(2).all(|pair| pair[0].position < pair[1].position));
    let mut ids: Vec<i32> = events.iter().map(|event| told(event).1).collect();
    let mut again = stream(&test, Some(begin)).await;
    let again = read(&test, &mut again, usize::MAX).await;
    assert_eq!(again.iter().map(|event| told(event).1).collect::<Vec<_>>(), ids);
    let mut at = BTreeMap::new();
    for event in &events {
        at.insert(told(event).1, event.time);
    }
    for id in (20_000..40_000).step_by(10).filter(|id| at.contains_key(id)) {
        assert_eq!(
            at.get(&id),
            at.get(&(id + 1)),
            "both parts of a transaction have one time"
        );
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), expected);
}

/// What a stream tells, by the rule that a document ends `seconds` after its date.
#[derive(Default)]
struct Model {
    now: i64,
    seconds: i64,
    /// By id: the date, and the number of the version.
    live: BTreeMap<i32, (i64, u64)>,
    versions: u64,
    told: Vec<(ChangeKind, i32, i64)>,
}

impl Model {
    /// Tells the ends up to now. What a change of the rule has ended, it has ended at that time.
    fn end(&mut self, since: i64) {
        let end = |date: i64| (date + self.seconds * 1000).max(since);
        let live = self.live.iter();
        let mut ended: Vec<_> = live.map(|(id, (date, version))| (end(*date), *version, *id)).collect();
        ended.retain(|(end, _, _)| *end <= self.now);
        ended.sort_unstable();
        for (end, _, id) in ended {
            self.live.remove(&id);
            self.told.push((ChangeKind::Expire, id, end));
        }
    }

    fn write(&mut self, id: i32, date: i64, kind: ChangeKind) {
        self.versions += 1;
        self.told.push((kind, id, self.now));
        self.live.insert(id, (date, self.versions));
        // A date in the past ends the document as soon as it is there.
        self.end(self.now);
    }
}

/// Runs a random program. Returns what streams told, read at random times and read at the end, and what they should have told.
async fn run(seed: u64, is_purged: bool) -> (Vec<(ChangeKind, i32, i64)>, Vec<(ChangeKind, i32, i64)>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut test = TestCollection::new().await;
    test.create_index(date_index(5)).await.unwrap().unwrap();
    let begin = stream(&test, None).await.position();
    let mut reader = stream(&test, Some(begin)).await;
    let mut model = Model {
        now: START,
        seconds: 5,
        ..Model::default()
    };
    let mut events = Vec::new();
    for _ in 0..60 {
        let id = random.i32(1..6);
        let date = model.now + random.i64(-12_000..6_000);
        match random.i32(0..12) {
            0..=3 => {
                let was_free = test.insert(dated(id, date)).await.is_ok();
                assert_eq!(was_free, !model.live.contains_key(&id), "seed {seed}");
                if was_free {
                    model.write(id, date, ChangeKind::Create);
                }
            }
            4 | 5 => {
                let was_there = test.replace(dated(id, date)).await;
                assert_eq!(was_there, model.live.contains_key(&id), "seed {seed}");
                if was_there {
                    model.write(id, date, ChangeKind::Replace);
                }
            }
            6 => {
                if test.delete(id).await {
                    model.live.remove(&id);
                    model.told.push((ChangeKind::Delete, id, model.now));
                }
            }
            7 => {
                let seconds = random.u32(1..9);
                test.change_index("at_1", Some(seconds)).await;
                model.seconds = i64::from(seconds);
                model.end(model.now);
            }
            8 => {
                let read_until = reader.position();
                test.reopen().await;
                reader = stream(&test, Some(read_until)).await;
            }
            9 => events.extend(read(&test, &mut reader, 3).await),
            _ => {
                model.now += random.i64(1..4_000);
                test.set_clock(model.now);
                model.end(i64::MIN);
            }
        }
        if is_purged {
            test.purge().await;
        }
    }
    events.extend(read(&test, &mut reader, 3).await);
    let shown = |event: &StreamEvent| {
        let (kind, id) = told(event);
        (kind, id, event.happened.0)
    };
    let at_random_times: Vec<_> = events.iter().map(shown).collect();
    let mut whole = stream(&test, Some(begin)).await;
    let at_the_end: Vec<_> = read(&test, &mut whole, 1000).await.iter().map(shown).collect();
    assert_eq!(at_the_end, at_random_times, "seed {seed}");
    (at_the_end, model.told)
}

#[tokio::test]
async fn streams_agree_with_the_rule_whether_the_purge_is_eager_or_never_runs() {
    for seed in 0..40 {
        for is_purged in [false, true] {
            let (told, expected) = run(seed, is_purged).await;
            assert_eq!(told, expected, "seed {seed}, purged: {is_purged}");
        }
    }
}
