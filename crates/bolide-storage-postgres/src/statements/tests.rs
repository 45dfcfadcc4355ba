use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::*;
use crate::connection::{PLAN_ONCE, SETTINGS};
use crate::schema::CREATE;

/// The text without comments.
fn statement(query: Query, home: u32) -> String {
    let text = query.text(HomeId(home));
    let lines = text.lines().filter(|line| !line.starts_with("--"));
    lines.collect::<Vec<_>>().join(" ")
}

#[test]
fn each_statement_names_one_home_for_each_use_of_the_table() {
    for query in Query::ALL {
        let text = statement(query, 4_711);
        let uses = text.matches("bolide_kv p").count()
            + text.matches("bolide_kv a").count()
            + text.matches("bolide_kv c").count()
            + text.matches("from bolide_kv where").count()
            + text.matches("delete from bolide_kv using").count()
            + text.matches("update bolide_kv set").count();
        let conditions = text.matches("part = 4711").count();
        assert_eq!(
            conditions, uses,
            "{query:?}: each use of the table is limited to one home: {text}"
        );
        assert!(text.contains("4711"), "{query:?} names the home");
        assert!(!text.contains('{'), "{query:?} has no other placeholder");
        // What an insert writes: the home, or what it has read from it.
        let inserts = text.split("insert into bolide_kv (part, k, v)").skip(1);
        for written in inserts.map(str::trim_start) {
            let begins = ["select a.part,", "select c.part,", "select 4711,", "values (4711,"];
            assert!(
                begins.iter().any(|begin| written.starts_with(begin)),
                "{query:?}: {written}"
            );
        }
        assert!(!text.contains(';'), "{query:?} is one statement");
    }
}

#[test]
fn statements_call_only_functions_that_run_on_any_shard() {
    let known = [
        "octet_length",
        "array_position",
        "cardinality",
        "unnest",
        "coalesce",
        "lag",
        "sum",
        "count",
        "substring",
        "greatest",
        // In the coordinator's catalog, not on a shard.
        "get_shard_id_for_distribution_column",
    ];
    for query in Query::ALL {
        let text = statement(query, 1);
        let calls = text.match_indices('(').filter_map(|(at, _)| {
            let name: String = text[..at]
                .chars()
                .rev()
                .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
                .collect();
            (!name.is_empty()).then(|| name.chars().rev().collect::<String>())
        });
        // An alias with columns, as `t(k, v)`, is none.
        for call in calls.filter(|name| {
            name.len() > 1 && !["any", "over", "conflict", "using", "bolide_kv", "wanted"].contains(&name.as_str())
        }) {
            assert!(known.contains(&call.as_str()), "{query:?} calls {call}");
        }
    }
}

#[test]
fn every_file_is_a_statement() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql");
    let files: BTreeSet<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "sql"))
        .collect();
    assert_eq!(files.len(), Query::ALL.len());
    let texts: BTreeSet<&str> = Query::ALL.map(Query::template).into();
    assert_eq!(texts.len(), Query::ALL.len(), "no two are the same");
}

/// A plan is kept while the table grows. One that uses `part` alone would read a whole partition each time.
#[test]
fn no_plan_for_a_small_table_reads_more_than_the_keys_that_are_asked_for() {
    let database = bolide_postgres_server::Database::create().expect("PostgreSQL is installed");
    database.run(CREATE).expect("a new database");
    // That of many keys is known to: see where it is sent. That of owners reads the catalog.
    let queries = Query::ALL.into_iter();
    let queries: Vec<_> = queries
        .filter(|query| !matches!(query, Query::Delete | Query::Owner))
        .collect();
    for rows in ["(1, 0)", "(1, 5)", "(6, 300)", "(301, 3000)"] {
        let grown = format!(
            "insert into bolide_kv select 1, decode(md5(n::text), 'hex'), repeat('x', 300)::bytea from generate_series{rows} n"
        );
        database.run(&grown).expect("rows");
        for query in &queries {
            let text = statement(*query, 1);
            let count = (1..10).filter(|number| text.contains(&format!("${number}"))).count();
            let arguments = vec!["null"; count].join(", ");
            let explained =
                format!("{SETTINGS} {PLAN_ONCE}; prepare asked as {text}; explain execute asked({arguments})");
            let plan = database.run(&explained).expect("a plan");
            let conditions: Vec<_> = plan.lines().filter(|line| line.contains("Index Cond")).collect();
            let is_by_key = |condition: &&str| condition.contains("part = 1") && condition.contains("(k ");
            assert!(conditions.iter().all(is_by_key), "{query:?} with {rows}: {plan}");
            assert!(!plan.contains("Seq Scan"), "{query:?}: {plan}");
        }
    }
}
