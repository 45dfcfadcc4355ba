//! User-defined functions in queries.

use bolide_core::ScriptKind;
use bolide_model::ErrorKind;
use serde_json::json;

use crate::test_container::TestContainer;

async fn test(functions: &[(&str, &str)]) -> TestContainer {
    let test = TestContainer::with_ttl(-1).await;
    for n in 1..=3 {
        test.create(json!({"id": format!("i{n}"), "n": n})).await.unwrap();
    }
    for (name, source) in functions {
        test.define_script(ScriptKind::UserDefinedFunction, name, source, None)
            .await;
    }
    test
}

#[tokio::test]
async fn functions_are_called_for_every_item() {
    let test = test(&[
        ("twice", "function (n) { return n * 2 }"),
        ("odd", "function (n) { if (n % 2) return {odd: true} }"),
    ])
    .await;
    let rows = test
        .query("SELECT VALUE udf.twice(c.n) FROM c WHERE udf.twice(c.n) > 2")
        .await;
    assert_eq!(rows, Ok(json!([4, 6])));
    // A function without a result returns undefined, and undefined is left out.
    assert_eq!(
        test.query("SELECT VALUE udf.odd(c.n).odd FROM c").await,
        Ok(json!([true, true]))
    );
    assert_eq!(
        test.query("SELECT c.n, udf.odd(c.n) AS o FROM c WHERE c.n = 2").await,
        Ok(json!([{"n": 2}]))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_that_fail_fail_the_query() {
    let test = test(&[
        ("throws", "function () { throw new Error('why') }"),
        ("numbered", "function() { throw new Error(32766, 'Error'); };"),
        ("broken", "function ("),
        ("endless", "function () { while (true) {} }"),
        ("context", "function () { return typeof getContext }"),
    ])
    .await;
    let failed = |name: &str| {
        let query = format!("SELECT VALUE udf.{name}(c.n) FROM c");
        let test = &test;
        async move { test.query(&query).await.expect_err("it fails") }
    };
    let thrown = failed("throws").await;
    assert_eq!(thrown.kind, ErrorKind::ScriptFailed { number: 0 });
    assert!(
        thrown.to_string().contains("why") && thrown.to_string().contains("throws"),
        "{thrown}"
    );
    // The sub-status, as the .NET SDK's tests expect.
    let numbered = failed("numbered").await;
    assert_eq!(numbered.kind, ErrorKind::ScriptFailed { number: 32766 }, "{numbered}");
    assert_eq!(failed("broken").await.kind, ErrorKind::ScriptSyntax);
    assert_eq!(failed("endless").await.kind, ErrorKind::ScriptTimeout);
    assert!(matches!(failed("none").await.kind, ErrorKind::QuerySyntax { .. }));
    assert_eq!(
        test.query("SELECT VALUE udf.context() FROM c WHERE c.n = 1").await,
        Ok(json!(["undefined"]))
    );
}

#[tokio::test]
async fn a_query_of_a_script_may_call_functions() {
    let test = test(&[("twice", "function (n) { return n * 2 }")]).await;
    let body = test.execute("c.queryDocuments(l, 'SELECT VALUE udf.twice(c.n) FROM c', function (e, d) { if (e) throw e; r.setBody(d) });").await;
    assert_eq!(body, Ok(json!([2, 4, 6])));
}
