//! The exact texts that SDKs write into a query: filters with which they resume a sorted query, and queries for several items.
//!
//! Sources: .NET's `OrderByCrossPartitionQueryPipelineStage` and `CosmosElementToQueryLiteral`, and `OrderByDocumentQueryExecutionContext`
//! of version 2; Java's `OrderByDocumentQueryExecutionContext`, `ReadManyByPartitionKeyQueryHelper` and `LeaseStoreManagerImpl`; JavaScript's
//! `OrderByQueryRangeStrategy`; Python's `_query_builder`; Go's `cosmos_query_builder.go`; the Rust engine of Go's and Python's extensions,
//! which writes `true` only. The Rust SDK writes no filter: it sends `resumeFilter`.

use std::sync::Arc;

use bolide_core::QueryItems;
use serde_json::{Value, json};

use crate::test_container::TestContainer;

const PLACEHOLDER: &str = "{documentdb-formattableorderbyquery-filter}";

/// Returns items in the order of `c.m`, which the first item lacks.
fn items() -> Vec<Value> {
    let sorted = [
        ("none", None),
        ("null", Some(json!(null))),
        ("false", Some(json!(false))),
        ("true", Some(json!(true))),
        ("-3", Some(json!(-3))),
        ("1e10", Some(json!(10_000_000_000_u64))),
        ("quotes", Some(json!("a'b\"c"))),
        ("z", Some(json!("z"))),
        ("array", Some(json!([1]))),
        ("object", Some(json!({"x": 1}))),
    ];
    let item = |(n, (id, m)): (usize, (&str, Option<Value>))| {
        let mut item = json!({"id": id, "n": n, "g": n / 4});
        if let Some(m) = m {
            item["m"] = m;
        }
        item
    };
    sorted.into_iter().enumerate().map(item).collect()
}

async fn filled() -> TestContainer {
    let test = TestContainer::with(json!({"indexingPolicy": {
        "includedPaths": [{"path": "/*"}, {"path": "/m/?"}],
        "compositeIndexes": [
            [{"path": "/g", "order": "ascending"}, {"path": "/n", "order": "descending"}],
            [{"path": "/m", "order": "ascending"}, {"path": "/n", "order": "ascending"}],
        ],
    }}))
    .await;
    for item in items() {
        test.create(item).await.unwrap();
    }
    test
}

/// Returns the ids of all rows, separated by spaces.
async fn ids(test: &TestContainer, text: String, parameters: Vec<(String, Value)>) -> String {
    let query = QueryItems {
        parameters: Arc::new(parameters),
        text,
        cross_partition: true,
        ..QueryItems::default()
    };
    let ctx = test.begin().await;
    let page = test.account.query(&ctx, &test.container, &query).await;
    let page = page
        .unwrap_or_else(|refusal| panic!("{}: {refusal:?}", query.text))
        .value;
    let rows: Vec<Value> = serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat()).unwrap();
    let id = |row: &Value| {
        row.pointer("/payload/id")
            .or(row.get("id"))
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    };
    rows.iter().map(id).collect::<Vec<_>>().join(" ")
}

/// For each `ORDER BY` list, the filters that SDKs write for it, and the items that pass.
const FILTERS: [(&str, &[(&str, &str)]); 4] = [
    (
        "c.m",
        &[
            // Every first page; Python and the Rust engine write no other filter.
            ("true", "none null false true -3 1e10 quotes z array object"),
            // .NET 3.
            (
                "( IS_DEFINED(c.m) OR IS_NULL(c.m) OR IS_BOOLEAN(c.m) OR IS_NUMBER(c.m) OR IS_STRING(c.m) OR IS_ARRAY(c.m) OR IS_OBJECT(c.m) )",
                "null false true -3 1e10 quotes z array object",
            ),
            (
                "( true OR IS_NULL(c.m) OR IS_BOOLEAN(c.m) OR IS_NUMBER(c.m) OR IS_STRING(c.m) OR IS_ARRAY(c.m) OR IS_OBJECT(c.m) )",
                "none null false true -3 1e10 quotes z array object",
            ),
            (
                "( c.m > null OR IS_BOOLEAN(c.m) OR IS_NUMBER(c.m) OR IS_STRING(c.m) OR IS_ARRAY(c.m) OR IS_OBJECT(c.m) )",
                "false true -3 1e10 quotes z array object",
            ),
            (
                "( c.m >= true OR IS_NUMBER(c.m) OR IS_STRING(c.m) OR IS_ARRAY(c.m) OR IS_OBJECT(c.m) )",
                "true -3 1e10 quotes z array object",
            ),
            (
                "( c.m >= 1E+10 OR IS_STRING(c.m) OR IS_ARRAY(c.m) OR IS_OBJECT(c.m) )",
                "1e10 quotes z array object",
            ),
            (
                r#"( c.m > "a'b\"c" OR IS_ARRAY(c.m) OR IS_OBJECT(c.m) )"#,
                "z array object",
            ),
            // No comparison by order is true for arrays and objects.
            ("( c.m >= [1] OR IS_OBJECT(c.m) )", "object"),
            (r#"( c.m > {"x":1} )"#, ""),
            // .NET 2, Java 3: only of the same type.
            ("c.m >= -3", "-3 1e10"),
            (r#"c.m > "a'b\"c""#, "z"),
            // Java 4.
            (
                "(IS_DEFINED(c.m) OR IS_NULL(c.m) OR IS_BOOLEAN(c.m) OR IS_NUMBER(c.m) OR IS_STRING(c.m) OR IS_ARRAY(c.m) OR IS_OBJECT(c.m))",
                "null false true -3 1e10 quotes z array object",
            ),
            (
                "(c.m > false OR IS_NUMBER(c.m) OR IS_STRING(c.m) OR IS_ARRAY(c.m) OR IS_OBJECT(c.m))",
                "true -3 1e10 quotes z array object",
            ),
            (
                "(c.m >= 1.0E10 OR IS_STRING(c.m) OR IS_ARRAY(c.m) OR IS_OBJECT(c.m))",
                "1e10 quotes z array object",
            ),
            // JavaScript.
            ("(c.m >= null)", "null"),
            ("(c.m > false)", "true"),
            ("(c.m >= 10000000000)", "1e10"),
            (r#"(c.m >= 'a\u0027b"c')"#, "quotes z"),
        ],
    ),
    (
        "c.m DESC",
        &[
            // .NET 3.
            ("( false )", ""),
            ("( NOT IS_DEFINED(c.m) )", "none"),
            ("( c.m < null OR NOT IS_DEFINED(c.m) )", "none"),
            (
                "( c.m <= -3 OR NOT IS_DEFINED(c.m) OR IS_NULL(c.m) OR IS_BOOLEAN(c.m) )",
                "-3 true false null none",
            ),
            (
                "( c.m < [1] OR NOT IS_DEFINED(c.m) OR IS_NULL(c.m) OR IS_BOOLEAN(c.m) OR IS_NUMBER(c.m) OR IS_STRING(c.m) )",
                "z quotes 1e10 -3 true false null none",
            ),
            // Java 4.
            (
                "(c.m <= 1.0E10 OR NOT IS_DEFINED(c.m) OR IS_NULL(c.m) OR IS_BOOLEAN(c.m))",
                "1e10 -3 true false null none",
            ),
            // JavaScript.
            ("(c.m <= 'z')", "z quotes"),
        ],
    ),
    (
        "c.g, c.n DESC",
        &[
            // .NET 3.
            (
                "((c.g > 1  OR IS_STRING(c.g)  OR IS_ARRAY(c.g)  OR IS_OBJECT(c.g) )) OR \
                 ((c.g = 1 ) AND (c.n < 6  OR NOT IS_DEFINED(c.n)  OR IS_NULL(c.n)  OR IS_BOOLEAN(c.n) ))",
                "1e10 -3 object array",
            ),
            // .NET 2.
            ("(c.g > 1 ) OR (c.g = 1 AND c.n <= 6 )", "quotes 1e10 -3 object array"),
            // Java 4.
            (
                "((c.g > 1 OR IS_STRING(c.g) OR IS_ARRAY(c.g) OR IS_OBJECT(c.g))) OR \
                 ((c.g = 1) AND (c.n <= 6 OR NOT IS_DEFINED(c.n) OR IS_NULL(c.n) OR IS_BOOLEAN(c.n)))",
                "quotes 1e10 -3 object array",
            ),
            // JavaScript.
            ("(c.g >= 1 AND c.n <= 6)", "quotes 1e10 -3"),
        ],
    ),
    (
        "c.m, c.n",
        // Under a composite index arrays and objects sort where undefined does.
        &[
            // .NET 3.
            (
                "((IS_DEFINED(c.m) OR IS_NULL(c.m)  OR IS_BOOLEAN(c.m)  OR IS_NUMBER(c.m)  OR IS_STRING(c.m)  OR IS_ARRAY(c.m)  OR IS_OBJECT(c.m) )) OR \
                 ((NOT IS_DEFINED(c.m)) AND (c.n > 0  OR IS_STRING(c.n)  OR IS_ARRAY(c.n)  OR IS_OBJECT(c.n) ))",
                "array object null false true -3 1e10 quotes z",
            ),
            // Java 4.
            (
                r#"((c.m > "z" OR IS_ARRAY(c.m) OR IS_OBJECT(c.m))) OR ((c.m = "z") AND (c.n >= 7 OR IS_STRING(c.n) OR IS_ARRAY(c.n) OR IS_OBJECT(c.n)))"#,
                "array object z",
            ),
        ],
    ),
];

#[tokio::test]
async fn filters_that_sdks_write_where_they_go_on_are_understood() {
    let test = filled().await;
    for (order, filters) in FILTERS {
        let features = "OrderBy, MultipleOrderBy";
        let text = format!("SELECT * FROM c WHERE c.n >= 0 ORDER BY {order}");
        let plan = test
            .account
            .query_plan(&test.container, &text, &[], features, None)
            .await;
        let plan: Value = serde_json::from_str(&plan.unwrap()).unwrap();
        let rewritten = plan["queryInfo"]["rewrittenQuery"].as_str().unwrap();
        assert!(rewritten.contains(PLACEHOLDER));
        for (filter, expected) in filters {
            let text = rewritten.replace(PLACEHOLDER, filter);
            assert_eq!(ids(&test, text, vec![]).await, *expected, "{order}: {filter}");
        }
    }
}

#[tokio::test]
async fn queries_that_sdks_make_of_several_items_are_understood() {
    let test = filled().await;
    for (text, values, expected) in [
        // Java, JavaScript, Go.
        (
            "SELECT * FROM c WHERE c.id IN (@param_id0, @param_id1)",
            json!({"@param_id0": "z", "@param_id1": "null"}),
            "null z",
        ),
        // Python.
        (
            "SELECT * FROM c WHERE c.id IN ( @param_id0, @param_id1 )",
            json!({"@param_id0": "z", "@param_id1": "null"}),
            "null z",
        ),
        (
            r#"SELECT * FROM c WHERE ( ( c.id = @param_id0 AND IS_DEFINED(c["m"]) = false ) OR ( c.id = @param_id1 AND c["m"] = @param_pk10 ) )"#,
            json!({"@param_id0": "none", "@param_id1": "z", "@param_pk10": "z"}),
            "none z",
        ),
        ("SELECT * FROM c WHERE false", json!({}), ""),
        // Go.
        (
            r#"SELECT * FROM c WHERE IS_NULL(c["m"]) AND c.id IN (@param_id0)"#,
            json!({"@param_id0": "null"}),
            "null",
        ),
        (
            r#"SELECT * FROM c WHERE (c.id = @param_id0 AND IS_DEFINED(c["m"]) = false) OR (c.id = @param_id1 AND c["m"] = @param_pk10)"#,
            json!({"@param_id0": "none", "@param_id1": "-3", "@param_pk10": -3}),
            "none -3",
        ),
        // Java.
        (
            "SELECT c.id FROM c\n WHERE (c[\"m\"] IN (@__rmPk_0, @__rmPk_1) OR NOT IS_DEFINED(c[\"m\"]))",
            json!({"@__rmPk_0": "z", "@__rmPk_1": null}),
            "none null z",
        ),
        (
            "SELECT c.id FROM c WHERE (c.n > 1\n) AND ((c[\"m\"] = @__rmPk_0 AND c[\"g\"] = @__rmPk_1) OR (c[\"m\"] = @__rmPk_2 AND c[\"g\"] = @__rmPk_3))",
            json!({"@__rmPk_0": true, "@__rmPk_1": 0, "@__rmPk_2": "z", "@__rmPk_3": 9}),
            "true",
        ),
        // Java's and .NET's leases of change feeds, Java's throughput control.
        (
            "SELECT TOP @Top * FROM c WHERE STARTSWITH(c.id, @PartitionLeasePrefix) AND c.n <> null",
            json!({"@Top": 1, "@PartitionLeasePrefix": "qu"}),
            "quotes",
        ),
        (
            "SELECT * FROM c WHERE c.g = @GROUPID AND c.id != @CLIENTITEMID",
            json!({"@GROUPID": 2, "@CLIENTITEMID": "array"}),
            "object",
        ),
    ] {
        let parameters = values.as_object().unwrap().clone().into_iter().collect();
        assert_eq!(ids(&test, text.to_owned(), parameters).await, expected, "{text}");
    }
}
