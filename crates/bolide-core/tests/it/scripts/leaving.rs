//! Scripts whose client has gone, and requests that wait for the partition meanwhile.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bolide_core::{AccountOptions, ScriptHosting};
use bolide_model::ErrorKind;
use serde_json::json;

use crate::test_container::{TestContainer, options};

/// Returns a test whose scripts may run for `script_time`.
async fn test(script_time: Duration) -> Arc<TestContainer> {
    let options = AccountOptions {
        script_time,
        ..options()
    };
    Arc::new(TestContainer::with_options(json!({"defaultTtl": -1}), None, options).await)
}

/// Waits until no script holds any memory.
async fn all_is_given_back(test: &TestContainer) {
    while test.account.memory().used_bytes() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_procedure_that_nobody_waits_for_is_ended_and_gives_its_partition_back() {
    // The time is so long that only the client's leaving can end the script.
    let test = test(Duration::from_secs(1_000_000)).await;
    test.create(json!({"id": "a"})).await.unwrap();
    let running = tokio::spawn({
        let test = test.clone();
        async move {
            test.execute("c.createDocument(l, {id: 'b', pk: 'p'}, function () { for (;;); });")
                .await
        }
    });
    // The procedure creates its own item before the loop, inside the transaction.
    while test.account.script_figures().running == 0 {
        tokio::task::yield_now().await;
    }
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    test.create(json!({"id": "c"})).await.expect("the partition is free");
    assert_eq!(test.execute("r.setBody(1)").await, Ok(json!(1)), "scripts run");
    assert_eq!(test.listed().await, ["a", "c"], "nothing of it was stored");
    test.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_the_account_ends_what_runs() {
    let test = test(Duration::from_secs(1_000_000)).await;
    let running = tokio::spawn({
        let test = test.clone();
        async move { test.execute("for (;;);").await }
    });
    while test.account.script_figures().running == 0 {
        tokio::task::yield_now().await;
    }
    test.account.close().await.expect("it closes");
    assert!(running.await.expect("no panic").is_err());
    assert_eq!(
        test.execute("r.setBody(1)").await,
        Err(ErrorKind::Unavailable),
        "and none begins"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_get_their_turn_between_two_scripts() {
    let test = test(Duration::from_millis(300)).await;
    let ended = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for (n, source) in ["for (;;);", "for (;;) ;", "for (;;)  ;"].into_iter().enumerate() {
        let (test, ended) = (test.clone(), ended.clone());
        tasks.push(tokio::spawn(async move {
            assert_eq!(test.execute(source).await, Err(ErrorKind::ScriptTimeout), "{n}");
            ended.lock().expect("no panic").push("script");
        }));
    }
    // All three were requested before the write.
    while test.account.script_figures().waiting < 2 {
        tokio::task::yield_now().await;
    }
    test.create(json!({"id": "a"})).await.expect("it is written");
    ended.lock().expect("no panic").push("write");
    for task in tasks {
        task.await.expect("no panic");
    }
    let ended = ended.lock().expect("no panic").clone();
    let write = ended.iter().position(|what| *what == "write");
    assert!(write < Some(2), "at most one script ends ahead of it: {ended:?}");
}

#[tokio::test]
async fn without_a_way_to_run_them_scripts_are_refused() {
    let options = AccountOptions {
        script_hosting: ScriptHosting::None,
        ..options()
    };
    let test = TestContainer::with_options(json!({}), None, options).await;
    assert_eq!(test.execute("r.setBody(1)").await, Err(ErrorKind::Unavailable));
}

#[tokio::test]
async fn without_memory_for_it_a_script_is_refused_for_a_while() {
    let test = test(Duration::from_secs(5)).await;
    let memory = test.account.memory();
    let others = memory
        .try_take(memory.longest_share())
        .expect("all that a script could have");
    let error = test.execute("r.setBody(1)").await.expect_err("there is none left");
    assert!(matches!(error, ErrorKind::Throttled { .. }), "{error:?}");
    drop(others);
    assert_eq!(test.execute("r.setBody(1)").await, Ok(json!(1)));
    all_is_given_back(&test).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expensive_query_of_a_script_ends_with_the_script() {
    // An operation is refused in the last fifth of the time, and on a busy machine it is uncertain when that begins.
    let test = test(Duration::from_secs(8)).await;
    let many: Vec<u32> = (0..100).collect();
    for n in 0..300 {
        test.create(json!({"id": format!("i{n}"), "many": many})).await.unwrap();
    }
    // A million rows for each item take minutes.
    let query = "SELECT COUNT(1) FROM c JOIN x IN c.many JOIN y IN c.many JOIN z IN c.many WHERE x + y + z = -1";
    let source = format!(
        "if (!c.queryDocuments(l, '{query}', function (e, rows) {{ r.setBody(rows); }})) throw new Error('not accepted');"
    );
    assert_eq!(test.execute(&source).await, Err(ErrorKind::ScriptTimeout));
    all_is_given_back(&test).await;
}
