//! The end of a script, and operations that it asks for afterwards. The tests take the part of the script's thread.

use std::time::Duration;

use bolide_model::time::Monotonic;
use bolide_script::Document as Name;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::task::JoinHandle;

use super::*;
use crate::fixture::Fixture;
use crate::partition::exclusive::ExclusiveJob;
use crate::scripts::fixture::BegunScript;

struct Served {
    transaction: Arc<ScriptTransaction>,
    budget: Arc<ScriptBudget>,
    messages: UnboundedReceiver<Message>,
}

impl ExclusiveJob for Served {
    type Output = Finished;

    fn run<'t>(&'t mut self, exclusive: &'t mut ExclusiveTransaction) -> BoxFuture<'t, Result<Finished, ExclusiveEnd>> {
        let quarantine = ScriptQuarantine::default();
        async move {
            serve(
                exclusive,
                &self.transaction,
                &self.budget,
                &mut self.messages,
                &quarantine,
            )
            .await
        }
        .boxed()
    }
}

/// A running script, under a clock that is moved by hand.
struct Script {
    clock: Monotonic,
    budget: Arc<ScriptBudget>,
    transaction: Arc<ScriptTransaction>,
    permit: ScriptPermit,
    sender: UnboundedSender<Message>,
    ended: JoinHandle<Result<Finished>>,
}

impl Script {
    async fn begin(fixture: &Fixture) -> Script {
        let BegunScript {
            clock,
            budget,
            transaction,
            permit,
        } = BegunScript::new(fixture, None).await;
        let partition = fixture.partition();
        let (sender, messages) = unbounded_channel();
        let served = Served {
            transaction: transaction.clone(),
            budget: budget.clone(),
            messages,
        };
        Script {
            clock,
            budget,
            transaction,
            permit,
            sender,
            ended: tokio::spawn(async move { partition.run_exclusive(served).await }),
        }
    }

    /// Runs an operation on a thread of its own. Returns the number of its error as the script sees it.
    async fn operate(&self, operation: Operation) -> Result<Reply, u32> {
        let mut remote = Remote {
            transaction: self.transaction.clone(),
            running: Arc::new(Running::new(self.budget.clone(), Cancel::default())),
            permit: self.permit.clone(),
            sender: self.sender.clone(),
        };
        let work = move || remote.operate(operation).map_err(|error| error.number);
        tokio::task::spawn_blocking(work).await.expect("an operation")
    }

    async fn create(&self, id: &str) -> Result<(), u32> {
        let document = json!({"id": id, "pk": "p"}).to_string();
        let create = Operation::Create {
            document,
            is_id_needed: true,
        };
        self.operate(create).await.map(|_| ())
    }

    /// Reports the end of the script.
    fn ends(&self, result: Result<Finished, ScriptError>) {
        assert!(self.sender.send(Message::Done(result)).is_ok());
    }

    /// Waits for the end of the transaction, and returns its result.
    async fn ended(&mut self) -> Result<Finished, ErrorKind> {
        (&mut self.ended).await.expect("a job").map_err(|error| error.kind)
    }
}

fn finished() -> Finished {
    Finished {
        body: Some("1".to_owned()),
        log: String::new(),
    }
}

#[tokio::test]
async fn a_script_that_returns_commits_and_has_nobody_to_ask_any_more() {
    let fixture = Fixture::with(json!({"defaultTtl": -1})).await;
    let mut script = Script::begin(&fixture).await;
    assert_eq!(script.create("a").await, Ok(()));
    script.ends(Ok(finished()));
    assert_eq!(
        script.ended().await.map(|finished| finished.body),
        Ok(Some("1".to_owned()))
    );
    let before = fixture.partition().lsn();
    assert_eq!(script.create("late").await, Err(500));
    let read = Operation::Read {
        target: Name::Id("a".into()),
        if_none_match: None,
    };
    assert_eq!(script.operate(read).await, Err(500), "reads, too");
    assert_eq!(fixture.listed().await, ["a"]);
    assert_eq!(fixture.partition().lsn(), before);
}

#[tokio::test]
async fn a_script_that_throws_leaves_nothing_and_has_nobody_to_ask_any_more() {
    let fixture = Fixture::with(json!({"defaultTtl": -1})).await;
    for (problem, kind) in [
        (Problem::Thrown { number: 409 }, ErrorKind::ScriptFailed { number: 409 }),
        (Problem::OutOfMemory, ErrorKind::ScriptFailed { number: 0 }),
        (Problem::OutOfTime, ErrorKind::ScriptTimeout),
        (Problem::TooLarge, ErrorKind::TooLarge),
        (Problem::Crashed, ErrorKind::ScriptFailed { number: 0 }),
    ] {
        let mut script = Script::begin(&fixture).await;
        assert_eq!(script.create("a").await, Ok(()), "the one before has left nothing");
        let message = "no".to_owned();
        script.ends(Err(ScriptError { problem, message }));
        assert_eq!(script.ended().await.map(|_| ()), Err(kind));
        assert_eq!(script.create("late").await, Err(500));
        assert_eq!(fixture.stored_ids().await, Vec::<String>::new());
    }
    fixture.assert_sound().await;
}

#[tokio::test]
async fn an_error_that_is_the_scripts_to_handle_goes_to_the_script() {
    let fixture = Fixture::with(json!({"defaultTtl": -1})).await;
    fixture.upsert(json!({"id": "a"})).await;
    let mut script = Script::begin(&fixture).await;
    assert_eq!(script.create("a").await, Err(409));
    assert_eq!(script.create("b").await, Ok(()));
    script.ends(Ok(finished()));
    assert!(script.ended().await.is_ok());
    assert_eq!(fixture.listed().await, ["a", "b"]);
}

/// Its thread does not come to an end, and its process is gone.
#[tokio::test]
async fn a_script_whose_time_ends_in_the_middle_leaves_nothing_and_others_go_on() {
    let fixture = Fixture::with(json!({"defaultTtl": -1})).await;
    let mut script = Script::begin(&fixture).await;
    assert_eq!(script.create("a").await, Ok(()));
    while !script.ended.is_finished() {
        script.clock.advance(Duration::from_secs(1));
        tokio::task::yield_now().await;
    }
    assert_eq!(script.ended().await.map(|_| ()), Err(ErrorKind::ScriptTimeout));
    assert!(script.budget.left().is_zero());
    assert_eq!(script.create("late").await, Err(500));
    fixture.upsert(json!({"id": "b"})).await;
    assert_eq!(fixture.stored_ids().await, ["b"]);
}

#[tokio::test]
async fn a_script_that_has_written_too_much_is_refused_everything_before_anybody_is_asked() {
    let fixture = Fixture::with(json!({"defaultTtl": -1})).await;
    let mut script = Script::begin(&fixture).await;
    assert_eq!(script.create("a").await, Ok(()));
    script.budget.used(bolide_model::RequestUnits::ZERO, 200 * 1024 * 1024);
    assert_eq!(script.create("b").await, Err(413));
    let message = "the operation was refused".to_owned();
    let problem = Problem::Thrown { number: 413 };
    script.ends(Err(ScriptError { problem, message }));
    assert_eq!(
        script.ended().await.map(|_| ()),
        Err(ErrorKind::ScriptFailed { number: 413 })
    );
    assert_eq!(fixture.stored_ids().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_thread_that_is_gone_without_a_word_commits_nothing() {
    let fixture = Fixture::with(json!({"defaultTtl": -1})).await;
    let script = Script::begin(&fixture).await;
    assert_eq!(script.create("a").await, Ok(()));
    let Script { sender, ended, .. } = script;
    drop(sender);
    let ended = ended.await.expect("a job").map(|_| ()).map_err(|error| error.kind);
    assert_eq!(ended, Err(ErrorKind::Internal));
    assert_eq!(fixture.stored_ids().await, Vec::<String>::new());
}
