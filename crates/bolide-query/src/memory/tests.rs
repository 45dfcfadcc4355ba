use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::*;
use crate::schema::PartitionKeyKind;
use crate::{Condition, Environment, Parameters, Query, Schema, SupportedFeatures};

/// Enough for every text here that mentions something once.
const LIMIT_BYTES: usize = 5_000_000;

fn environment() -> Environment {
    Environment {
        state_bytes: LIMIT_BYTES,
        ..Environment::default()
    }
}

/// Compiles and plans a query with `@p`, a string of 100,000 characters, and computes its key ranges.
fn prepare(text: &str) -> Result<()> {
    let parameters = Parameters::none().with("@p", &json!("x".repeat(100_000)));
    let schema = Schema::container(vec![vec!["pk".into()]], PartitionKeyKind::Hash);
    let schema = Schema {
        indexing: None,
        ..schema
    };
    let query = Query::compile_in(text, &parameters, &Arc::new(schema.clone()), environment())?;
    query.partition_key_ranges()?;
    query.plan(&SupportedFeatures::all()).map(|_| ())
}

fn listed(part: &str, count: usize, separator: &str) -> String {
    vec![part; count].join(separator)
}

#[test]
fn copies_of_a_parameter_are_counted_for_each_mention() {
    for (before, part, separator, after) in [
        ("SELECT VALUE 1 FROM c WHERE ", "c.a LIKE @p", " OR ", ""),
        ("SELECT VALUE 1 FROM c WHERE ", "c.pk = @p", " OR ", ""),
        ("SELECT VALUE 1 FROM c WHERE ", "c.a = CONCAT(@p, '!')", " OR ", ""),
        ("SELECT VALUE 1 FROM c WHERE ", "c[@p].b = 1", " OR ", ""),
        ("SELECT ", "c[@p]", ", ", " FROM c"),
        ("SELECT VALUE [", "[@p]", ", ", "] FROM c"),
        ("SELECT VALUE {a: [", "UPPER(@p)", ", ", "]} FROM c"),
    ] {
        let text = |count| format!("{before}{}{after}", listed(part, count, separator));
        assert_eq!(prepare(&text(1)), Ok(()), "{}", text(1));
        assert_eq!(
            prepare(&text(200)),
            Err(QueryError::TooLarge {
                limit_bytes: LIMIT_BYTES
            }),
            "200 times: {}",
            text(1)
        );
    }
}

#[test]
fn everything_compiled_from_a_text_is_counted() {
    let path = format!("c{}", listed(".a", 2_000, ""));
    let of_path = |count| {
        let part = "EXISTS(SELECT VALUE 1 FROM y IN x.b)";
        format!(
            "SELECT VALUE 1 FROM c JOIN x IN {path} WHERE {}",
            listed(part, count, " OR ")
        )
    };
    let scores = |count| {
        let score = format!("FullTextScore(c.text, {})", listed("'words'", 50, ", "));
        format!("SELECT * FROM c ORDER BY RANK RRF({})", listed(&score, count, ", "))
    };
    let numbers = |count| format!("SELECT VALUE [{}]", listed("1", count, ","));
    let patterns = |count| {
        format!(
            "SELECT VALUE 1 FROM c WHERE {}",
            listed("REGEXMATCH(c.a, 'x{400}')", count, " OR ")
        )
    };
    for (little, much) in [
        (of_path(1), of_path(100)),
        (scores(2), scores(100)),
        (numbers(1_000), numbers(30_000)),
        (patterns(1), patterns(200)),
    ] {
        let short = &little[..little.len().min(100)];
        assert_eq!(prepare(&little), Ok(()), "{short}");
        assert_eq!(
            prepare(&much),
            Err(QueryError::TooLarge {
                limit_bytes: LIMIT_BYTES
            }),
            "much of {short}"
        );
    }
}

#[test]
fn the_keys_that_a_filter_names_are_counted() {
    let schema = Schema::container(vec![vec!["pk".into()]], PartitionKeyKind::Hash);
    let ranges = |count: u32| {
        let parameters = Parameters::none().with("@keys", &(0..count).collect());
        let text = "SELECT VALUE 1 FROM c WHERE ARRAY_CONTAINS(@keys, c.pk)";
        let query = Query::compile_in(text, &parameters, &Arc::new(schema.clone()), environment())?;
        query.partition_key_ranges().map(|_| ())
    };
    assert_eq!(ranges(1_000), Ok(()));
    assert_eq!(
        ranges(30_000),
        Err(QueryError::TooLarge {
            limit_bytes: LIMIT_BYTES
        })
    );
}

#[test]
fn conditions_are_counted_too() {
    let condition = |count| format!("from c where c.a IN ({})", listed("1", count, ","));
    assert!(Condition::compile(&condition(100), environment()).is_ok());
    let refused = Condition::compile(&condition(30_000), environment()).map(|_| ());
    assert_eq!(
        refused,
        Err(QueryError::TooLarge {
            limit_bytes: LIMIT_BYTES
        })
    );
}

#[test]
fn a_pattern_that_is_made_of_items_is_counted_as_long_as_it_is_kept() {
    let item = json!({"id": "1", "a": "b", "list": (0..100).map(|n| format!("x{{{n}}}{{2}}")).collect::<Vec<_>>()});
    let text = "SELECT VALUE COUNT(1) FROM c JOIN x IN c.list WHERE REGEXMATCH(c.a, x)";
    let run = |state_bytes| {
        let environment = Environment {
            state_bytes,
            ..Environment::default()
        };
        let query = Query::compile(text, &Parameters::none(), &Schema::metadata())?;
        let mut page = query.execution(environment, crate::PageLimit::NONE, None)?;
        page.push(item.to_string().as_bytes(), 1)?;
        page.finish(true).map(|_| ())
    };
    assert_eq!(run(LIMIT_BYTES), Ok(()), "eight of them are kept");
    let limit_bytes = 50_000;
    assert_eq!(run(limit_bytes), Err(QueryError::TooLarge { limit_bytes }));
}

/// Counts the bytes that are taken from it.
#[derive(Default)]
struct Source {
    taken: AtomicUsize,
    max_bytes: usize,
}

impl MemorySource for Source {
    fn take(&self, bytes: usize) -> bool {
        let taken = self.taken.fetch_add(bytes, Ordering::SeqCst) + bytes;
        taken <= self.max_bytes
    }
}

/// Compiles with shared memory.
fn compile_from(source: &Arc<Source>, text: &str) -> Result<Query> {
    let environment = Environment {
        memory: Some(source.clone()),
        ..environment()
    };
    Query::compile_in(text, &Parameters::none(), &Arc::new(Schema::metadata()), environment)
}

fn source(max_bytes: usize) -> Arc<Source> {
    Arc::new(Source {
        max_bytes,
        ..Source::default()
    })
}

#[test]
fn a_query_keeps_its_memory_until_it_is_dropped() {
    let source = source(LIMIT_BYTES);
    let query = compile_from(&source, "SELECT VALUE REPLICATE('x', 10000) FROM c").unwrap();
    let taken = source.taken.load(Ordering::SeqCst);
    assert!((10_000..30_000).contains(&taken), "{taken}");
    assert_eq!(
        Arc::strong_count(&source),
        2,
        "the source gives it back when nobody has it"
    );
    drop(query);
    assert_eq!(Arc::strong_count(&source), 1);
}

#[test]
fn a_query_without_memory_is_refused_for_now() {
    let source = source(8_000);
    assert!(
        compile_from(&source, "SELECT * FROM c").is_ok(),
        "little is needed for little"
    );
    let refused = compile_from(&source, "SELECT VALUE REPLICATE('x', 10000) FROM c").map(|_| ());
    assert_eq!(refused, Err(QueryError::OutOfMemory));
}
