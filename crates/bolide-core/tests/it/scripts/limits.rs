//! Scripts that exceed their limits do not affect other requests.

use std::sync::Arc;
use std::time::Duration;

use bolide_core::AccountOptions;
use bolide_model::error::Detail;
use bolide_model::time::Monotonic;
use bolide_model::{ErrorKind, Reason};
use serde_json::json;

use crate::test_container::{TestContainer, options, patient_options};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_procedure_ends_and_leaves_nothing_and_reads_go_on() {
    let monotonic = Monotonic::manual();
    let timed = AccountOptions {
        monotonic: monotonic.clone(),
        ..options()
    };
    let test = Arc::new(TestContainer::with_options(json!({"defaultTtl": -1}), None, timed).await);
    test.create(json!({"id": "a"})).await.unwrap();
    let endless = test.clone();
    let endless = tokio::spawn(async move {
        endless
            .execute("c.createDocument(l, {id: 'b', pk: 'p'}, function () { while (true) {} });")
            .await
    });
    while test.account.script_figures().running == 0 {
        tokio::task::yield_now().await;
    }
    for _ in 0..100 {
        assert!(test.has("a").await, "reads do not wait");
    }
    assert!(!endless.is_finished(), "it has time left");
    let write = test.clone();
    let write = tokio::spawn(async move { write.create(json!({"id": "c"})).await });
    // Not once by five seconds: the task that measures them may not have begun yet.
    while !endless.is_finished() || !write.is_finished() {
        monotonic.advance(Duration::from_secs(1));
        tokio::task::yield_now().await;
    }
    write.await.unwrap().expect("a write waits for its turn");
    assert_eq!(endless.await.unwrap(), Err(ErrorKind::ScriptTimeout));
    assert_eq!(test.listed().await, ["a", "c"]);
    test.assert_sound().await;
}

#[tokio::test]
async fn a_procedure_that_writes_too_much_is_told_to_stop() {
    let test = TestContainer::with_options(json!({"defaultTtl": -1}), None, patient_options()).await;
    let body = test
        .execute(
            "var n = 0, text = 'x'.repeat(1e6); (function next(e) { if (e) throw e; r.setBody(n); \
             if (c.createDocument(l, {id: 'i' + n, pk: 'p', text}, next)) n++; })();",
        )
        .await
        .unwrap();
    let written = body.as_u64().unwrap();
    assert_eq!(written, 34, "32 MiB, and the one that goes beyond");
    assert_eq!(test.count().await, written, "what was accepted is kept");
}

#[tokio::test]
async fn what_a_query_of_a_script_holds_is_counted() {
    let options = AccountOptions {
        memory_bytes: 8 * 1024 * 1024,
        ..options()
    };
    let test = TestContainer::with_options(json!({}), None, options).await;
    for n in 0..60 {
        let item = json!({"id": n.to_string(), "n": n, "text": "x".repeat(100_000)});
        test.create(item).await.unwrap();
    }
    let sorted = |most: u32| {
        format!(
            "c.queryDocuments(l, 'SELECT c.n, c.text FROM c WHERE c.n < {most} ORDER BY c.n', \
             function (e, rows) {{ r.setBody(e ? e.number : rows.length); }});"
        )
    };
    assert_eq!(test.execute(&sorted(10)).await, Ok(json!(10)), "a megabyte is its own");
    assert_eq!(test.execute(&sorted(60)).await, Ok(json!(429)), "more is not there");
    assert_eq!(test.execute(&sorted(9)).await, Ok(json!(9)), "all was given back");
}

#[tokio::test]
async fn memory_and_recursion_end_a_procedure_only() {
    let test = TestContainer::with_ttl(-1).await;
    for source in [
        "var all = []; for (;;) all.push([all.length]);",
        "(function deep() { deep() })();",
    ] {
        assert!(
            matches!(test.execute(source).await, Err(ErrorKind::ScriptFailed { .. })),
            "{source}"
        );
    }
    assert_eq!(test.execute("r.setBody(1)").await, Ok(json!(1)));
}

#[tokio::test]
async fn what_does_not_compile_says_so_when_it_runs() {
    let test = TestContainer::with_ttl(-1).await;
    assert_eq!(
        test.execute_in("p", "function (", &json!([])).await.unwrap_err().kind,
        ErrorKind::ScriptSyntax
    );
}

#[tokio::test]
async fn time_is_the_servers() {
    let test = TestContainer::with_ttl(-1).await;
    test.at(12_345);
    assert_eq!(
        test.execute("r.setBody([Date.now(), new Date().getTime()])").await,
        Ok(json!([12_345_000, 12_345_000]))
    );
}

/// Takes memory fast, so that memory ends it and not time, also on a busy machine.
const GREEDY: &str = "if (a) { var all = []; for (;;) all.push(new Uint8Array(1e6)); } r.setBody(1);";

/// Executes the procedure, which takes memory if `is_greedy`.
async fn run_greedy(test: &TestContainer, is_greedy: bool) -> Result<(), ErrorKind> {
    let source = super::run_script::procedure(GREEDY);
    let executed = test.execute_stored_with(&source, &json!([is_greedy])).await;
    executed.map(|_| ()).map_err(|error| error.kind)
}

fn is_script_failure(result: &Result<(), ErrorKind>) -> bool {
    matches!(result, Err(ErrorKind::ScriptFailed { .. }))
}

#[tokio::test]
async fn a_procedure_that_keeps_violating_its_limits_is_blocked_for_a_while() {
    // cosmos-rest §11.2
    let test = TestContainer::with_ttl(-1).await;
    test.execute(GREEDY).await.expect("it behaves by default");
    for second in [100, 200, 300] {
        test.at(second);
        assert!(is_script_failure(&run_greedy(&test, true).await), "at {second}");
    }
    for second in [300, 899] {
        test.at(second);
        assert_eq!(run_greedy(&test, false).await, Err(ErrorKind::Forbidden), "at {second}");
    }
    test.at(900);
    assert_eq!(
        run_greedy(&test, false).await,
        Ok(()),
        "ten minutes after the last violation"
    );
    for _ in 0..2 {
        assert!(is_script_failure(&run_greedy(&test, true).await));
    }
    assert_eq!(run_greedy(&test, false).await, Ok(()), "two are not three");
    for _ in 0..2 {
        assert!(is_script_failure(&run_greedy(&test, true).await));
    }
    assert_eq!(
        run_greedy(&test, false).await,
        Ok(()),
        "a run that ends well begins the count again"
    );
}

#[tokio::test]
async fn a_blocked_script_that_is_replaced_runs_again() {
    let test = TestContainer::with_ttl(-1).await;
    test.execute(GREEDY).await.unwrap();
    for _ in 0..3 {
        assert!(is_script_failure(&run_greedy(&test, true).await));
    }
    assert_eq!(run_greedy(&test, false).await, Err(ErrorKind::Forbidden));
    assert_eq!(test.execute(GREEDY).await, Ok(json!(1)), "stored anew, and executed");
}

#[tokio::test]
async fn triggers_and_functions_are_blocked_too() {
    let test = TestContainer::with_ttl(-1).await;
    let greedy = "function () { var all = []; for (;;) all.push(new Uint8Array(1e6)); }";
    test.define_script(bolide_core::ScriptKind::UserDefinedFunction, "greedy", greedy, None)
        .await;
    test.create(json!({"id": "a"})).await.unwrap();
    for _ in 0..3 {
        let error = test.query("SELECT VALUE udf.greedy() FROM c").await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::ScriptFailed { .. }), "{error:?}");
    }
    let error = test.query("SELECT VALUE udf.greedy() FROM c").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Forbidden);
    assert!(
        matches!(&error.detail, Detail::Reason(Reason::ScriptBlocked { id, .. }) if id == "greedy"),
        "{error:?}"
    );

    test.trigger("greedy", "Pre", "All", greedy).await;
    for _ in 0..3 {
        let kind = test.create_with_trigger("greedy").await.unwrap_err();
        assert!(matches!(kind, ErrorKind::ScriptFailed { .. }), "{kind:?}");
    }
    assert_eq!(test.create_with_trigger("greedy").await, Err(ErrorKind::Forbidden));
}
