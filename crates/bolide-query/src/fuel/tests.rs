//! Every query ends, whatever lengthens it: each family of functions, over an item written for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::{Condition, Environment, PageLimit, Parameters, Query, Schema};

/// Counts how often it is asked, and ends the execution after a number of calls.
struct CountedInterrupts {
    times: AtomicU64,
    allowed: u64,
}

impl CountedInterrupts {
    fn new(allowed: u64) -> Arc<CountedInterrupts> {
        Arc::new(CountedInterrupts {
            times: AtomicU64::new(0),
            allowed,
        })
    }
}

impl Interrupts for CountedInterrupts {
    fn pending(&self, _item: u64) -> Option<Interrupt> {
        let times = self.times.fetch_add(1, Ordering::Relaxed);
        (times >= self.allowed).then_some(Interrupt::Cancelled)
    }
}

fn run(text: &str, item: &serde_json::Value, environment: Environment) -> Result<Vec<u8>> {
    let query = Query::compile_in(
        text,
        &Parameters::none(),
        &Arc::new(Schema::metadata()),
        environment.clone(),
    )?;
    let mut page = query.execution(environment, PageLimit::NONE, None)?;
    page.push(item.to_string().as_bytes(), 1)?;
    Ok(page.finish(true)?.rows.into_joined())
}

/// A ring with `corners` corners around a point.
fn ring(corners: usize, x: f64, y: f64) -> serde_json::Value {
    let corner = |n: usize| {
        let angle = std::f64::consts::TAU * (n % corners) as f64 / corners as f64;
        serde_json::json!([x + angle.cos(), y + angle.sin()])
    };
    serde_json::json!({"type": "Polygon", "coordinates": [(0..=corners).map(corner).collect::<Vec<_>>()]})
}

/// An item with values over which the functions below are slow.
fn item() -> serde_json::Value {
    serde_json::json!({
        "id": "x",
        "xs": (0..300).collect::<Vec<_>>(),
        "long": (0..2_000).collect::<Vec<_>>(),
        "deep": (0..200).map(|n| serde_json::json!({"a": {"b": [n, n, n]}, "c": "text"})).collect::<Vec<_>>(),
        "words": "lorem ipsum dolor sit amet ".repeat(400),
        "t": "a".repeat(8_000),
        // An item without a text that a condition searches would not be evaluated.
        "searched": "aaaaaaaaab",
        "vector": (0..1_500).map(f64::from).collect::<Vec<_>>(),
        "one": ring(300, 10.0, 10.0),
        "other": ring(300, 14.0, 10.0),
        "date": "2020-01-01T00:00:00.0000000Z",
    })
}

/// Over 300 rows.
fn some(condition: &str) -> String {
    format!("SELECT VALUE COUNT(1) FROM c JOIN a IN c.xs WHERE {condition}")
}

/// Over 90,000 rows.
fn many(condition: &str) -> String {
    format!("SELECT VALUE COUNT(1) FROM c JOIN a IN c.xs JOIN b IN c.xs WHERE {condition}")
}

#[test]
fn every_family_of_functions_runs_out_of_fuel_within_an_item() {
    let item = item();
    let little = Environment {
        item_work: 400_000,
        ..Environment::default()
    };
    let rows = run(&some("a + 1 < 0 OR LENGTH(c.id) = a"), &item, little.clone());
    assert_eq!(rows, Ok(b"1".to_vec()), "the rows alone have fuel enough");
    for condition in [
        "RegexMatch(c.t, '(?=(a+)+b)x')",
        "RegexMatch(c.t, CONCAT('(a+)+', ToString(a), '$'))",
        "RegexMatch(c.t, '(a+a+)+y')",
        "CONTAINS(c.t, 'aaaaaaaaab')",
        "CONTAINS(c.t, 'AAAAAAAAAB', true)",
        "CONTAINS_ANY_CI(c.t, 'b', 'c', 'd')",
        "REPLACE(c.t, 'a', 'bb') = ''",
        "REVERSE(c.t) = 'b'",
        "TRIM(c.t, 'bca') = 'b'",
        "UPPER(c.t) = 'b'",
        "c.t || c.t || 'x' = c.t || c.t || 'y'",
        "StringSplit(c.words, ' ')[0] = 'x'",
        "c.t LIKE '%a%a%a%a%b'",
        "c.t LIKE CONCAT('%a%a%', ToString(a))",
        "SetUnion(c.long, c.long) = 1",
        "SetIntersect(c.long, c.deep) = 1",
        "ARRAY_CONTAINS(c.long, -1)",
        "ARRAY_CONTAINS(c.deep, {'a': {'b': [1, 2]}}, true)",
        "ARRAY_CONTAINS_ANY(c.long, -1, -2, -3)",
        "ARRAY_MEDIAN(c.long) = -1",
        "ARRAY_CONCAT(c.long, c.long) = 1",
        "c.deep = [a, a]",
        "ObjectToArray(c)[0] = 1",
        "ToString(c.deep) = ''",
        "StringToArray(ToString(c.long)) = 1",
        "VectorDistance(c.vector, c.vector) < -1",
        "FullTextContains(c.words, 'absent')",
        "FullTextContainsAll(c.words, {'term': 'absent', 'distance': 2})",
        "ST_INTERSECTS(c.one, c.other)",
        "ST_DISTANCE(c.one, c.other) < 0",
        "ST_WITHIN(c.one, c.other)",
        "ST_ISVALID(c.one) = false",
        "DateTimeFormat(c.date, c.t) = 'x'",
        "EXISTS(SELECT VALUE x FROM x IN c.long WHERE x < 0)",
        "ARRAY(SELECT DISTINCT VALUE x FROM x IN c.long) = 1",
        "(SELECT VALUE SUM(x) FROM x IN c.long) < 0",
    ] {
        let environment = Environment {
            item_work: 30_000_000,
            ..Environment::default()
        };
        let ended = run(&many(condition), &item, environment);
        assert_eq!(
            ended,
            Err(QueryError::Interrupted(Interrupt::TooMuchWork)),
            "{condition}"
        );
    }
}

#[test]
fn rows_alone_run_out_of_fuel() {
    let cross = "SELECT VALUE COUNT(1) FROM c JOIN a IN c.xs JOIN b IN c.xs JOIN d IN c.xs";
    let ended = run(cross, &item(), Environment::default());
    assert_eq!(ended, Err(QueryError::Interrupted(Interrupt::TooMuchWork)));
}

#[test]
fn queries_within_the_fuel_have_their_result() {
    let rows = run(&many("a = b"), &item(), Environment::default()).expect("within the limit");
    assert_eq!(rows, b"300");
}

#[test]
fn each_item_has_its_own_fuel() {
    let query = Query::compile(&many("a = b"), &Parameters::none(), &Schema::metadata()).expect("a query");
    let mut page = query
        .execution(Environment::default(), PageLimit::NONE, None)
        .expect("an execution");
    for rid in 0..30 {
        page.push(item().to_string().as_bytes(), rid)
            .expect("each is within the limit, together they are not");
    }
    assert_eq!(page.finish(true).expect("done").rows.into_joined(), b"9000");
}

#[test]
fn an_execution_is_ended_from_outside_within_an_item() {
    let asked = CountedInterrupts::new(3);
    let environment = Environment {
        interrupts: Some(asked.clone()),
        ..Environment::default()
    };
    let ended = run(&many("a + b < 0"), &item(), environment);
    assert_eq!(ended, Err(QueryError::Interrupted(Interrupt::Cancelled)));
    assert_eq!(
        asked.times.load(Ordering::Relaxed),
        4,
        "it asked no more once it was told"
    );
}

#[test]
fn a_backtracking_search_that_is_given_up_is_an_error_and_no_answer() {
    let item = serde_json::json!({"id": "x", "t": "a".repeat(40)});
    let ended = run(
        "SELECT VALUE RegexMatch(c.t, '^(?=(a|aa)+$)(a|aa)+\\\\1b$') FROM c",
        &item,
        Environment::default(),
    );
    assert_eq!(ended, Err(QueryError::Interrupted(Interrupt::TooMuchWork)));
}

/// Each of these would take hours, even without backtracking.
#[test]
fn look_arounds_in_loops_are_refused_over_a_text_that_is_too_long_for_them() {
    let item = serde_json::json!({"id": "x", "t": "a".repeat(100_000)});
    for pattern in [
        "^(?:(?=.*)a)*b",
        "^(?>(?:(?=.*)a)*)b",
        "^(?>(?:(?=(?>(?:(?=.*)a)*))a)*)b",
        "^(?:a(?!(?:(?<!c)a)*b))*b",
        "^(?>a(?:.*b)?)*c",
    ] {
        let text = format!("SELECT VALUE RegexMatch(c.t, '{pattern}') FROM c");
        let ended = run(&text, &item, Environment::default());
        assert_eq!(ended, Err(QueryError::Interrupted(Interrupt::TooMuchWork)), "{pattern}");
    }
}

#[test]
fn look_arounds_have_their_answers_where_they_are_usual() {
    let password = "^(?=.*[A-Z])(?=.*[0-9])(?!.* ).{8,}$";
    for (pattern, text, is_match) in [
        (password, "Sunflower7".to_owned(), true),
        (password, "sunflower7".to_owned(), false),
        ("^(?:(?!end).)*$", "x".repeat(2_000), true),
        ("^(?:(?!end).)*$", format!("{}end", "x".repeat(2_000)), false),
        ("^(?:(?=[a-z]+[0-9])[a-z]|[0-9])*$", "abc1def2".to_owned(), true),
        (r"\\b(\\w+) \\1\\b", "this is is it".to_owned(), true),
    ] {
        let item = serde_json::json!({"id": "x", "t": text});
        let query = format!("SELECT VALUE RegexMatch(c.t, '{pattern}') FROM c");
        let rows = run(&query, &item, Environment::default());
        assert_eq!(rows, Ok(is_match.to_string().into_bytes()), "{pattern}");
    }
}

/// The worker of a partition and the compiler of short conditions have only this much fuel, and cannot end a search.
#[test]
fn nothing_backtracks_where_fuel_is_short() {
    let environment = Environment {
        item_work: 1_000_000,
        ..Environment::default()
    };
    let condition = Condition::compile("from c where RegexMatch(c.t, '(?=a)a')", Environment::default());
    let ended = condition
        .expect("a condition")
        .holds(br#"{"t": "a"}"#, environment.clone());
    assert_eq!(ended, Err(QueryError::Interrupted(Interrupt::TooMuchWork)));
    let folded = Condition::compile("from c where RegexMatch('a', '(?=a)a')", environment).map(drop);
    assert_eq!(folded, Err(QueryError::Interrupted(Interrupt::TooMuchWork)));
}

/// The worker of a partition has this much, and cannot end a search.
#[test]
fn a_condition_whose_search_may_take_longer_is_not_judged_with_little_fuel() {
    let environment = Environment {
        item_work: 50_000,
        ..Environment::default()
    };
    let long = serde_json::json!({"t": "A".repeat(4_000)}).to_string();
    for pattern in [
        "(?:(?:(?:[)-a)))]{5}){5}){5})[^A]",
        "[A-Z]{40}[^A]",
        "(?i)sunflower field",
    ] {
        let text = format!("from c where RegexMatch(c.t, '{pattern}')");
        let condition = Condition::compile(&text, Environment::default()).expect("a condition");
        assert_eq!(
            condition.holds(br#"{"t": "A"}"#, environment.clone()),
            Ok(false),
            "{pattern}"
        );
        let ended = condition.holds(long.as_bytes(), environment.clone());
        assert_eq!(ended, Err(QueryError::Interrupted(Interrupt::TooMuchWork)), "{pattern}");
    }
}

/// A text that is compiled without a thread of its own has this much.
#[test]
fn a_condition_whose_pattern_takes_long_to_compile_is_not_compiled_with_little_fuel() {
    let environment = Environment {
        item_work: 500_000,
        ..Environment::default()
    };
    let classes = r"[\\x00-\\x{10ffff}]".repeat(5);
    for pattern in [format!("(?i){classes}"), r"\\w{3,20}".to_owned()] {
        let text = format!("from c where RegexMatch(c.t, '{pattern}')");
        let ended = Condition::compile(&text, environment.clone()).map(drop);
        assert_eq!(ended, Err(QueryError::Interrupted(Interrupt::TooMuchWork)), "{pattern}");
    }
}

#[test]
fn shapes_of_very_many_points_are_refused_before_their_pairs_are_visited() {
    let line = |y: f64| {
        let points: Vec<_> = (0..55_000)
            .map(|n| serde_json::json!([f64::from(n) / 1000.0, y]))
            .collect();
        serde_json::json!({"type": "LineString", "coordinates": points})
    };
    let item = serde_json::json!({"a": line(0.0), "b": line(2.0)});
    for function in ["ST_DISTANCE", "ST_INTERSECTS"] {
        let text = format!("SELECT VALUE {function}(c.a, c.b) FROM c");
        let ended = run(&text, &item, Environment::default());
        assert_eq!(
            ended,
            Err(QueryError::Interrupted(Interrupt::TooMuchWork)),
            "{function}"
        );
    }
}

#[test]
fn brackets_that_are_never_closed_are_looked_for_once() {
    let text = serde_json::json!("[".repeat(1_000_000));
    let parameters = Parameters::none().with("@p", &text);
    let query = Query::compile("SELECT VALUE '[' LIKE @p FROM c", &parameters, &Schema::metadata()).expect("a query");
    let mut page = query
        .execution(Environment::default(), PageLimit::NONE, None)
        .expect("an execution");
    page.push(b"{}", 1).expect("an item");
    assert_eq!(page.finish(true).expect("done").rows.into_joined(), b"false");
}

#[test]
fn a_pattern_whose_repetitions_multiply_is_invalid() {
    let item = serde_json::json!({"id": "x", "t": "aaa"});
    let rows = run(
        "SELECT VALUE RegexMatch(c.t, '(((a{500}){500}){500})') FROM c",
        &item,
        Environment::default(),
    );
    assert_eq!(rows, Ok(Vec::new()), "undefined, as for every invalid pattern");
}

#[test]
fn compiling_ends_too() {
    let parameter: serde_json::Value = (0..20_000).collect::<Vec<_>>().into();
    let list = vec!["SetUnion(@p, @p)"; 5_000].join(",");
    let parameters = Parameters::none().with("@p", &parameter);
    let text = format!("SELECT VALUE [{list}] FROM c");
    let compiled = Query::compile(&text, &parameters, &Schema::metadata()).map(|_| ());
    assert_eq!(compiled, Err(QueryError::Interrupted(Interrupt::TooMuchWork)));
}

#[test]
fn a_condition_runs_out_of_fuel() {
    let condition = "from c where EXISTS(SELECT VALUE 1 FROM a IN c.xs JOIN b IN c.xs WHERE CONTAINS(c.t, 'b'))";
    let condition = Condition::compile(condition, Environment::default()).expect("a condition");
    let environment = Environment {
        item_work: 1_000_000,
        ..Environment::default()
    };
    let ended = condition.holds(item().to_string().as_bytes(), environment);
    assert_eq!(ended, Err(QueryError::Interrupted(Interrupt::TooMuchWork)));
}
