//! Scripts that want too much harm no one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_model::ErrorKind;
use serde_json::json;

use crate::stage::Stage;

/// The one test that waits for the time limit itself: five seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_procedure_ends_and_leaves_nothing_and_reads_go_on() {
    let stage = Arc::new(Stage::with_ttl(-1).await);
    stage.create(json!({"id": "a"})).await.unwrap();
    let began = Instant::now();
    let endless = stage.clone();
    let endless = tokio::spawn(async move {
        endless
            .execute("c.createDocument(l, {id: 'b', pk: 'p'}, function () { while (true) {} });")
            .await
    });
    while !endless.is_finished() && began.elapsed() < Duration::from_secs(2) {
        assert!(stage.has("a").await, "reads do not wait");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stage
        .create(json!({"id": "c"}))
        .await
        .expect("a write waits for its turn");
    assert!(began.elapsed() < Duration::from_secs(20), "and not for ever");
    assert_eq!(endless.await.unwrap(), Err(ErrorKind::ScriptTimeout));
    assert_eq!(stage.listed().await, ["a", "c"]);
    stage.assert_sound().await;
}

#[tokio::test]
async fn a_procedure_that_writes_too_much_is_told_to_stop() {
    let stage = Stage::with_ttl(-1).await;
    let body = stage
        .execute(
            "var n = 0, text = 'x'.repeat(1e6); (function next(e) { if (e) throw e; r.setBody(n); \
             if (c.createDocument(l, {id: 'i' + n, pk: 'p', text}, next)) n++; })();",
        )
        .await
        .unwrap();
    let written = body.as_u64().unwrap();
    assert!((5..60).contains(&written), "{written}");
    assert_eq!(stage.count().await, written, "what was accepted is kept");
}

#[tokio::test]
async fn memory_and_recursion_end_a_procedure_only() {
    let stage = Stage::with_ttl(-1).await;
    for source in [
        "var all = []; for (;;) all.push([all.length]);",
        "(function deep() { deep() })();",
    ] {
        assert!(
            matches!(stage.execute(source).await, Err(ErrorKind::ScriptFailed { .. })),
            "{source}"
        );
    }
    assert_eq!(stage.execute("r.setBody(1)").await, Ok(json!(1)));
}

#[tokio::test]
async fn what_does_not_compile_says_so_when_it_runs() {
    let stage = Stage::with_ttl(-1).await;
    assert_eq!(
        stage.execute_in("p", "function (", &json!([])).await.unwrap_err().kind,
        ErrorKind::ScriptSyntax
    );
}

#[tokio::test]
async fn time_is_the_servers() {
    let stage = Stage::with_ttl(-1).await;
    stage.at(12_345);
    assert_eq!(
        stage.execute("r.setBody([Date.now(), new Date().getTime()])").await,
        Ok(json!([12_345_000, 12_345_000]))
    );
}
