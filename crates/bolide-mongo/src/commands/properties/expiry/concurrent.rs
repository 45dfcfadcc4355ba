//! Readers, writers, a clock and changes of a rule at the same time (P2, P10): each answer must be right at some moment between its start and its end.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bson::{DateTime, rawdoc};
use parking_lot::Mutex;

use super::RandomChoices;
use crate::commands::fixture::Shell;

/// The two values of `expireAfterSeconds`, in milliseconds.
const SHORT: i64 = 1_000;
const LONG: i64 = 3_000;
const CLOCK_STEPS: usize = 200;
/// Maximum number of documents of a writer: each read compares all.
const DOCUMENTS: i32 = 300;

/// An acknowledged document: its id and its date.
type Written = (i32, i64);

struct Shared {
    shell: Shell,
    written: Mutex<Vec<Written>>,
    is_over: AtomicBool,
}

impl Shared {
    fn runs(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_answer_is_wrong_while_time_and_rules_change() {
    let shell = Shell::new().await;
    let index = rawdoc! { "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 3 };
    shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    let shared = Arc::new(Shared {
        shell,
        written: Mutex::default(),
        is_over: AtomicBool::new(false),
    });
    let mut tasks = vec![tokio::spawn(change_rule(shared.clone()))];
    for number in 0..2 {
        tasks.push(tokio::spawn(write(shared.clone(), number)));
        tasks.push(tokio::spawn(read(shared.clone())));
    }
    for _ in 0..CLOCK_STEPS {
        shared.shell.advance(17);
        // A few commands run in between.
        shared.shell.ok(rawdoc! { "count": "c" }).await;
    }
    shared.is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.expect("no wrong answer");
    }
    assert!(
        shared.written.lock().len() > CLOCK_STEPS / 10,
        "the writers hardly got to write"
    );
}

async fn change_rule(shared: Arc<Shared>) {
    for seconds in [1, 3].into_iter().cycle() {
        if !shared.runs() {
            return;
        }
        let index = rawdoc! { "name": "at_1", "expireAfterSeconds": seconds };
        shared.shell.ok(rawdoc! { "collMod": "c", "index": index }).await;
    }
}

async fn write(shared: Arc<Shared>, number: i32) {
    let mut choices = RandomChoices::new(number.unsigned_abs().into());
    let mut id = number;
    while shared.runs() && id < 2 * DOCUMENTS {
        let at = shared.shell.now() - 2_000 + i64::try_from(choices.roll(3_000)).expect("small");
        let document = rawdoc! { "_id": id, "at": DateTime::from_millis(at) };
        shared
            .shell
            .ok(rawdoc! { "insert": "c", "documents": [document] })
            .await;
        shared.written.lock().push((id, at));
        id += 2;
    }
}

async fn read(shared: Arc<Shared>) {
    let mut gone = HashSet::new();
    while shared.runs() {
        // Documents whose insertion was acknowledged before the read.
        let written = shared.written.lock().clone();
        let from = shared.shell.now();
        let find = rawdoc! { "find": "c", "batchSize": 1_000_000, "projection": { "_id": 1 } };
        let found = shared.shell.first_batch(find).await;
        let to = shared.shell.now();
        let found: HashSet<i32> = found
            .iter()
            .map(|document| document.get_i32("_id").expect("an id"))
            .collect();
        for (id, at) in written {
            if found.contains(&id) {
                assert!(
                    from < at + LONG,
                    "{id} was seen at {from} or later, and ended at {} at the latest",
                    at + LONG
                );
                assert!(!gone.contains(&id), "{id} came back");
            } else {
                assert!(
                    at + SHORT <= to,
                    "{id} was missing at {to} or earlier, and ended at {} at the earliest",
                    at + SHORT
                );
                gone.insert(id);
            }
        }
    }
}
