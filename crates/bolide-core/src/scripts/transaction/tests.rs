//! What the operations of a script see, and what is committed of them. The tests take the part of the script: they ask for operations one by one, read
//! from outside between two of them, and end the transaction as a script's return or exception does.

use std::time::Duration;

use bolide_model::ErrorKind;
use bolide_model::Lsn;
use bolide_model::time::Monotonic;
use bolide_script::Cancel;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;
use crate::fixture::Fixture;
use crate::partition::exclusive::ExclusiveJob;
use crate::scripts::fixture::BegunScript;

/// The next action of the script.
enum Event {
    Asks(ScriptRequest, oneshot::Sender<Result<ScriptResponse>>),
    /// It throws an exception that it does not catch.
    Throws,
}

/// Serves a script that returns when its events end.
struct Job {
    transaction: Arc<ScriptTransaction>,
    budget: Arc<ScriptBudget>,
    events: UnboundedReceiver<Event>,
}

impl ExclusiveJob for Job {
    type Output = Lsn;

    fn run<'t>(&'t mut self, exclusive: &'t mut ExclusiveTransaction) -> BoxFuture<'t, Result<Lsn, ExclusiveEnd>> {
        async move {
            while let Some(event) = self.events.recv().await {
                match event {
                    Event::Throws => return Err(Error::bad_request("thrown").into()),
                    Event::Asks(request, reply) => {
                        let answer = match self.transaction.answer(exclusive, &self.budget, request).await {
                            Err(ExclusiveEnd::Stale) => return Err(ExclusiveEnd::Stale),
                            Err(ExclusiveEnd::Refused(error)) => Err(error),
                            Ok(answer) => Ok(answer),
                        };
                        let _ = reply.send(answer);
                    }
                }
            }
            Ok(exclusive.lsn())
        }
        .boxed()
    }
}

/// A running script.
struct Script {
    transaction: Arc<ScriptTransaction>,
    running: Arc<Running>,
    /// By which the script has its time: ten seconds.
    clock: Monotonic,
    events: UnboundedSender<Event>,
    ended: JoinHandle<Result<Lsn>>,
}

impl Script {
    /// Begins a script in partition key `"p"`. `charge_limit`: request units after which it is to stop.
    async fn begin(fixture: &Fixture, charge_limit: Option<f64>) -> Script {
        let BegunScript {
            clock,
            budget,
            transaction,
            permit: _permit,
        } = BegunScript::new(fixture, charge_limit).await;
        let partition = fixture.partition();
        let (events, received) = unbounded_channel();
        let job = Job {
            transaction: transaction.clone(),
            budget: budget.clone(),
            events: received,
        };
        Script {
            transaction,
            running: Arc::new(Running::new(budget, Cancel::default())),
            clock,
            events,
            ended: tokio::spawn(async move { partition.run_exclusive(job).await }),
        }
    }

    async fn ask(&self, request: ScriptRequest) -> Result<ScriptResponse, ErrorKind> {
        let (reply, answer) = oneshot::channel();
        let gone = |_| panic!("the transaction has ended");
        self.events.send(Event::Asks(request, reply)).unwrap_or_else(gone);
        let answer = answer.await.map_err(|_| ErrorKind::Unavailable)?;
        answer.map_err(|error| error.kind)
    }

    /// The document that an operation on one answers with; `Null` where there is none.
    async fn operate(&self, operation: Operation) -> Result<Value, ErrorKind> {
        match self.ask(ScriptRequest::Point(operation)).await? {
            ScriptResponse::Reply(reply) if reply.resource.is_empty() => Ok(Value::Null),
            ScriptResponse::Reply(reply) => Ok(serde_json::from_str(&reply.resource).expect("JSON text")),
            ScriptResponse::Items(_) => panic!("an operation has a reply"),
        }
    }

    async fn create(&self, document: Value) -> Result<Value, ErrorKind> {
        let document = document.to_string();
        self.operate(Operation::Create {
            document,
            is_id_needed: true,
        })
        .await
    }

    async fn upsert(&self, document: Value) -> Result<Value, ErrorKind> {
        let document = document.to_string();
        self.operate(Operation::Upsert {
            document,
            is_id_needed: true,
            if_match: None,
        })
        .await
    }

    async fn replace(&self, id: &str, document: Value, if_match: Option<&str>) -> Result<Value, ErrorKind> {
        self.operate(Operation::Replace {
            target: Name::Id(id.into()),
            document: document.to_string(),
            if_match: if_match.map(str::to_owned),
        })
        .await
    }

    async fn read(&self, id: &str) -> Result<Value, ErrorKind> {
        self.read_named(Name::Id(id.into())).await
    }

    async fn read_named(&self, target: Name) -> Result<Value, ErrorKind> {
        self.operate(Operation::Read {
            target,
            if_none_match: None,
        })
        .await
    }

    async fn delete(&self, id: &str) -> Result<Value, ErrorKind> {
        self.operate(Operation::Delete {
            target: Name::Id(id.into()),
            if_match: None,
        })
        .await
    }

    /// A page of ids, from a query on a thread as those of scripts have. `before_items` is called before each look at items.
    async fn query(
        &self,
        text: &str,
        page_size: Option<usize>,
        continuation: Option<String>,
        before_items: impl Fn() + Send + 'static,
    ) -> Result<(Value, Option<String>), ErrorKind> {
        let query = ScriptQuery {
            text: text.to_owned(),
            parameters: vec![],
            page_size,
            continuation,
        };
        let (transaction, running, events) = (self.transaction.clone(), self.running.clone(), self.events.clone());
        let work = move || {
            transaction.query(&query, &running, |from| {
                before_items();
                let (reply, answer) = oneshot::channel();
                let asked = events.send(Event::Asks(ScriptRequest::Items { from }, reply));
                assert!(asked.is_ok(), "the transaction has ended");
                answer.blocking_recv().expect("an answer")
            })
        };
        let page = tokio::task::spawn_blocking(work).await.expect("a query");
        let page = page.map_err(|error| error.kind)?;
        let rows = serde_json::from_str(&page.resource).expect("JSON text");
        Ok((rows, page.continuation))
    }

    /// All ids that a query finds.
    async fn ids(&self) -> Value {
        let page = self
            .query("SELECT VALUE c.id FROM c ORDER BY c.id", None, None, || {})
            .await;
        page.expect("a page").0
    }

    /// The script returns.
    async fn commit(self) -> Result<Lsn> {
        let Script { events, ended, .. } = self;
        drop(events);
        ended.await.expect("a job")
    }

    /// The script throws.
    async fn throw(self) -> ErrorKind {
        let Script { events, ended, .. } = self;
        assert!(events.send(Event::Throws).is_ok());
        ended.await.expect("a job").expect_err("it has thrown").kind
    }
}

fn lsn(fixture: &Fixture) -> Lsn {
    fixture.partition().lsn()
}

#[tokio::test]
async fn nothing_shows_before_the_commit_and_all_of_it_with_one_number_then() {
    // TTL-252
    let fixture = Fixture::with(json!({"defaultTtl": -1})).await;
    fixture.upsert(json!({"id": "old"})).await;
    fixture.upsert(json!({"id": "kept", "n": 1})).await;
    let before = lsn(&fixture);
    let script = Script::begin(&fixture, None).await;
    script
        .create(json!({"id": "new", "pk": "p"}))
        .await
        .expect("a new item");
    script
        .upsert(json!({"id": "kept", "pk": "p", "n": 2}))
        .await
        .expect("a new version");
    script.delete("old").await.expect("a deletion");
    // The script sees what it did, nobody else does.
    assert_eq!(script.read("kept").await.expect("its own version")["n"], 2);
    assert_eq!(script.read("old").await, Err(ErrorKind::NotFound));
    assert_eq!(script.ids().await, json!(["kept", "new"]));
    assert_eq!(fixture.listed().await, ["kept", "old"]);
    assert!(fixture.read("new").await.is_none());
    assert_eq!(lsn(&fixture), before);
    assert_eq!(script.commit().await.expect("a commit"), before.next());
    assert_eq!(lsn(&fixture), before.next());
    assert_eq!(fixture.listed().await, ["kept", "new"]);
    let [new, kept] = [fixture.read("new").await, fixture.read("kept").await].map(|item| item.expect("an item"));
    assert_eq!((new.lsn(), new.last_modified()), (kept.lsn(), kept.last_modified()));
    assert_ne!(
        new.etag(),
        kept.etag(),
        "the same write of the log, and another version"
    );
    fixture.assert_sound().await;
}

#[tokio::test]
async fn an_exception_takes_everything_back() {
    let fixture = Fixture::with(json!({"defaultTtl": 10})).await;
    fixture.upsert(json!({"id": "old", "ttl": -1})).await;
    fixture.upsert(json!({"id": "ghost"})).await;
    fixture.at(110);
    let rows = async |space| fixture.rows(fixture.partition().id, space).await;
    let before = (lsn(&fixture), rows(bolide_storage::Space::Log).await);
    let script = Script::begin(&fixture, None).await;
    script
        .create(json!({"id": "new", "pk": "p"}))
        .await
        .expect("a new item");
    script
        .create(json!({"id": "ghost", "pk": "p"}))
        .await
        .expect("none is in its way (TTL-241)");
    script.delete("old").await.expect("a deletion");
    assert_eq!(script.throw().await, ErrorKind::BadRequest);
    assert_eq!((lsn(&fixture), rows(bolide_storage::Space::Log).await), before);
    assert_eq!(
        fixture.stored_ids().await,
        ["ghost", "old"],
        "the ghost that was in the way, too"
    );
    assert_eq!(fixture.listed().await, ["old"]);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn an_operation_that_is_refused_changes_nothing_and_the_script_may_go_on() {
    let fixture =
        Fixture::with(json!({"defaultTtl": 10, "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}})).await;
    fixture.upsert(json!({"id": "a", "u": 1, "ttl": -1})).await;
    fixture.upsert(json!({"id": "ghost", "u": 2})).await;
    fixture.at(110);
    let script = Script::begin(&fixture, None).await;
    let refused = [
        (
            script.create(json!({"id": "a", "pk": "p", "u": 9})).await,
            ErrorKind::Conflict,
        ),
        (
            script.create(json!({"id": "b", "pk": "p", "u": 1})).await,
            ErrorKind::UniqueKeyConflict,
        ),
        (
            script.create(json!({"id": "ghost", "pk": "p", "u": 1})).await,
            ErrorKind::UniqueKeyConflict,
        ),
        (
            script
                .replace("a", json!({"id": "a", "pk": "p"}), Some("\"other\""))
                .await,
            ErrorKind::PreconditionFailed,
        ),
        (
            script.replace("ghost", json!({"id": "ghost", "pk": "p"}), None).await,
            ErrorKind::NotFound,
        ),
        (script.delete("none").await, ErrorKind::NotFound),
        (
            script.create(json!({"id": "b", "pk": "q"})).await,
            ErrorKind::BadRequest,
        ),
        (
            script.create(json!({"id": "b", "pk": "p", "ttl": 0})).await,
            ErrorKind::BadRequest,
        ),
        (script.create(json!({"pk": "p"})).await, ErrorKind::BadRequest),
    ];
    for (at, (answer, kind)) in refused.into_iter().enumerate() {
        assert_eq!(answer, Err(kind), "operation {at}");
    }
    assert_eq!(script.ids().await, json!(["a"]));
    let before = lsn(&fixture);
    script
        .create(json!({"id": "c", "pk": "p", "u": 3}))
        .await
        .expect("a new item");
    assert_eq!(script.commit().await.expect("a commit"), before.next());
    assert_eq!(fixture.listed().await, ["a", "c"]);
    assert_eq!(
        fixture.stored_ids().await,
        ["a", "c", "ghost"],
        "a ghost goes with the write that needs its permit"
    );
    fixture.assert_sound().await;
}

#[tokio::test]
async fn a_script_that_only_read_or_was_only_refused_commits_nothing() {
    let fixture = Fixture::with(json!({"defaultTtl": -1})).await;
    fixture.upsert(json!({"id": "a"})).await;
    let before = lsn(&fixture);
    let script = Script::begin(&fixture, None).await;
    assert_eq!(script.read("a").await.expect("an item")["id"], "a");
    assert_eq!(
        script.create(json!({"id": "a", "pk": "p"})).await,
        Err(ErrorKind::Conflict)
    );
    assert_eq!(script.commit().await.expect("no commit"), before);
    assert_eq!(lsn(&fixture), before);
}

#[tokio::test]
async fn what_was_accepted_before_the_request_units_ran_out_is_kept() {
    let fixture = Fixture::with(json!({"defaultTtl": -1})).await;
    let script = Script::begin(&fixture, Some(30.0)).await;
    let mut written = 0;
    while script.running.accepts() {
        script
            .create(json!({"id": format!("i{written}"), "pk": "p"}))
            .await
            .expect("a new item");
        written += 1;
        assert!(written < 100, "it is never told to stop");
    }
    let charged = script.running.budget.charge().0;
    assert!(charged >= 30.0, "{charged} units");
    // What is refused costs, too.
    assert_eq!(
        script.create(json!({"id": "i0", "pk": "p"})).await,
        Err(ErrorKind::Conflict)
    );
    assert!(script.running.budget.charge().0 > charged);
    script.commit().await.expect("a commit");
    assert_eq!(fixture.listed().await.len(), written);
}

#[tokio::test]
async fn a_query_ends_with_the_time_of_its_script_and_what_was_written_with_the_exception() {
    let fixture = Fixture::with(json!({"defaultTtl": -1})).await;
    for n in 0..5 {
        fixture.upsert(json!({"id": format!("i{n}")})).await;
    }
    let script = Script::begin(&fixture, None).await;
    script
        .create(json!({"id": "new", "pk": "p"}))
        .await
        .expect("a new item");
    assert!(script.running.accepts());
    let clock = script.clock.clone();
    let late = script.query("SELECT VALUE c.id FROM c", None, None, move || {
        clock.advance(Duration::from_secs(10));
    });
    assert_eq!(late.await.map(|_| ()), Err(ErrorKind::ScriptTimeout));
    assert!(script.running.was_late(), "whatever the script makes of the error");
    assert!(!script.running.accepts());
    script.throw().await;
    assert_eq!(fixture.listed().await, ["i0", "i1", "i2", "i3", "i4"]);
}

#[tokio::test]
async fn pages_of_a_query_go_on_behind_each_other_over_what_the_script_has_written() {
    let fixture = Fixture::with(json!({"defaultTtl": 10})).await;
    for n in 0..WALK_ROWS + 4 {
        fixture
            .upsert(json!({"id": format!("i{n:03}"), "ttl": if n == 2 { 10 } else { -1 }}))
            .await;
    }
    fixture.upsert(json!({"id": "i003", "pk": "other", "ttl": -1})).await;
    fixture.at(110);
    let script = Script::begin(&fixture, None).await;
    script.delete("i001").await.expect("a deletion");
    script
        .create(json!({"id": "new", "pk": "p"}))
        .await
        .expect("a new item");
    let mut expected: Vec<String> = (0..WALK_ROWS + 4)
        .filter(|n| ![1, 2].contains(n))
        .map(|n| format!("i{n:03}"))
        .collect();
    expected.push("new".into());
    const QUERY: &str = "SELECT VALUE c.id FROM c";
    let (mut seen, mut continuation) = (Vec::new(), None);
    loop {
        let page = script.query(QUERY, Some(300), continuation, || {}).await;
        let (rows, next) = page.expect("a page");
        let rows: Vec<String> = serde_json::from_value(rows).expect("ids");
        assert!(rows.len() <= 300);
        seen.extend(rows);
        let Some(next) = next else { break };
        let of_another = script.query("SELECT VALUE c.n FROM c", None, Some(next.clone()), || {});
        assert_eq!(
            of_another.await.map(|_| ()),
            Err(ErrorKind::BadRequest),
            "it is that of another query"
        );
        continuation = Some(next);
    }
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn no_operation_reaches_beyond_the_partition_key() {
    let fixture = Fixture::with(json!({"defaultTtl": -1})).await;
    let own = fixture.upsert(json!({"id": "own"})).await;
    let other = fixture.upsert(json!({"id": "other", "pk": "q"})).await;
    let script = Script::begin(&fixture, None).await;
    let rid = |item: &StoredItem| Name::Rid(item.rid().to_string());
    assert_eq!(script.read_named(rid(&own)).await.expect("its own")["id"], "own");
    assert_eq!(script.read_named(rid(&other)).await, Err(ErrorKind::NotFound));
    assert_eq!(script.delete("other").await, Err(ErrorKind::NotFound));
    let whole = ScriptRequest::Items { from: Bytes::new() };
    let Ok(ScriptResponse::Items(items)) = script.ask(whole).await else {
        panic!("items");
    };
    let ids: Vec<&str> = items.items.iter().map(|(_, item)| item.id()).collect();
    assert_eq!((ids, items.next), (vec!["own"], None), "however early it begins");
    script.commit().await.expect("nothing to commit");
    assert_eq!(fixture.listed().await, ["other", "own"]);
}

/// Another process has written the partition: what was decided on the old head is forgotten, and the script begins again.
#[tokio::test]
async fn a_transaction_whose_partition_has_moved_begins_anew_on_the_new_head() {
    let fixture = Fixture::with(json!({"defaultTtl": -1})).await;
    fixture.upsert(json!({"id": "a"})).await;
    let script = Script::begin(&fixture, None).await;
    script
        .create(json!({"id": "new", "pk": "p"}))
        .await
        .expect("a new item");
    let beside = fixture.reopened().await;
    beside.upsert(json!({"id": "b"})).await;
    assert_eq!(
        script.read("a").await,
        Err(ErrorKind::Unavailable),
        "its answer never comes"
    );
    assert_eq!(script.read("b").await.expect("the other's")["id"], "b");
    assert_eq!(
        script.read("new").await,
        Err(ErrorKind::NotFound),
        "of the first attempt"
    );
    script
        .create(json!({"id": "again", "pk": "p"}))
        .await
        .expect("a new item");
    script.commit().await.expect("a commit");
    assert_eq!(beside.listed().await, ["a", "again", "b"]);
    beside.assert_sound().await;
}

#[test]
fn an_id_is_made_up_only_where_the_script_lets_it_be() {
    let made = with_id(r#"{"pk": "p"}"#, false).expect("a document");
    let id = made.id().expect("an id");
    assert_eq!(
        id.split('-').map(str::len).collect::<Vec<_>>(),
        [8, 4, 4, 4, 12],
        "{id}"
    );
    let other = with_id(r#"{"pk": "p"}"#, false).expect("a document");
    assert_ne!(other.id().expect("an id"), id);
    let own = with_id(r#"{"id": "own", "pk": "p"}"#, false).expect("a document");
    assert_eq!(own.id().expect("an id"), "own");
    let without = with_id(r#"{"pk": "p"}"#, true).and_then(|document| document.id().map(str::to_owned));
    assert_eq!(without.map_err(|error| error.kind), Err(ErrorKind::BadRequest));
    assert!(with_id("[]", false).is_err());
}
