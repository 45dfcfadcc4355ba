use std::fmt::Write;

use super::*;
use crate::schema::{ComputedProperty, Schema};
use crate::value::Item;
use crate::{Parameters, Query};

/// One value of each kind, and neighbours.
const VALUES: &[&str] = &[
    "null", "false", "true", "-1", "0", "1", "1.5", "2", "1e400", r#""""#, r#""a""#, r#""ab""#, r#""b""#, "[]", "{}",
];

fn compile(text: &str) -> Query {
    let schema = Schema {
        computed: vec![ComputedProperty {
            name: "computed".to_owned(),
            query: "SELECT VALUE LOWER(c.a) FROM c".to_owned(),
        }],
        ..Schema::metadata()
    };
    let parameters = Parameters::none()
        .with("@list", &serde_json::json!([1, "b", [3]]))
        .with("@array", &serde_json::json!([1]))
        .with("@object", &serde_json::json!({"x": 1}));
    Query::compile(text, &parameters, &schema).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Each condition: its path, `=` if it is an equality, and those of [`VALUES`] that it admits.
fn conditions_of(text: &str) -> String {
    let shown = |condition: &IndexCondition| {
        let mut out = format!("{}", condition.path);
        if condition.is_equality {
            out.push_str(" =");
        }
        for value in VALUES {
            let item = format!("{{\"v\":{value}}}");
            let item = Item::complete(item.as_bytes()).expect("UTF-8");
            let keys = IndexPath::parse("/v").expect("a path").keys(&item);
            if condition.admits(&keys) {
                write!(out, " {value}").expect("a String");
            }
        }
        out
    };
    let conditions = compile(text).index_conditions();
    conditions.iter().map(shown).collect::<Vec<_>>().join("; ")
}

/// Compares the conditions of filters.
fn check(cases: &[(&str, &str)]) {
    for (filter, expected) in cases {
        assert_eq!(
            &conditions_of(&format!("SELECT * FROM c WHERE {filter}")),
            expected,
            "{filter}"
        );
    }
}

#[test]
fn comparisons_are_between_values_of_one_type() {
    check(&[
        ("c.a = 1", "/a/? = 1"),
        ("1.0 = c.a", "/a/? = 1"),
        ("c.a = null", "/a/? = null"),
        ("c.a = 'a'", "/a/? = \"a\""),
        ("c.a = @array", "/a/? = []"),
        ("c.a = @object", "/a/? = {}"),
        ("c.a = undefined", "/a/? ="),
        ("c.a = SQRT(-1)", "/a/? ="),
        ("c.a = c.b", ""),
        ("c.a > 1", "/a/? 1.5 2 1e400"),
        ("c.a >= 1", "/a/? 1 1.5 2 1e400"),
        ("c.a < 1", "/a/? -1 0"),
        ("c.a <= 1", "/a/? -1 0 1"),
        ("1 > c.a", "/a/? -1 0"),
        ("1 <= c.a", "/a/? 1 1.5 2 1e400"),
        ("c.a > 'a'", "/a/? \"ab\" \"b\""),
        ("c.a <= 'a'", "/a/? \"\" \"a\""),
        ("c.a >= true", "/a/? true"),
        ("c.a < true", "/a/? false"),
        ("c.a >= null", "/a/? null"),
        ("c.a > null", "/a/?"),
        ("c.a > @array", "/a/? ="),
        ("c.a > undefined", "/a/? ="),
        ("c.a <= SQRT(-1)", "/a/? ="),
        ("c.a + 1 > 1", ""),
    ]);
}

#[test]
fn different_values_are_those_of_other_types_too() {
    let all = VALUES.join(" ");
    let except = |value: &str| {
        VALUES
            .iter()
            .filter(|own| **own != value)
            .copied()
            .collect::<Vec<_>>()
            .join(" ")
    };
    check(&[
        ("c.a != null", &format!("/a/? {}", except("null"))),
        ("1 != c.a", &format!("/a/? {}", except("1"))),
        ("c.a != @array", &format!("/a/? {all}")),
        ("c.a != SQRT(-1)", &format!("/a/? {all}")),
        ("c.a != undefined", "/a/? ="),
    ]);
}

#[test]
fn ranges_and_lists() {
    check(&[
        ("c.a BETWEEN 0 AND 1.5", "/a/? 0 1 1.5"),
        ("c.a BETWEEN 'a' AND 'b'", "/a/? \"a\" \"ab\" \"b\""),
        ("c.a BETWEEN 0 AND 'a'", "/a/?"),
        ("c.a BETWEEN 2 AND 0", "/a/?"),
        ("c.a BETWEEN 1 AND c.b", "/a/? 1 1.5 2 1e400"),
        ("c.a BETWEEN c.b AND 0", "/a/? -1 0"),
        ("c.a BETWEEN c.b AND c.d", ""),
        ("1 BETWEEN c.a AND 2", ""),
        ("c.a IN (1, 'b', null)", "/a/? = null 1 \"b\""),
        (
            "c.a IN (1, 'b', null, undefined, 1.0, 2, @array)",
            "/a/? = null 1 2 \"b\" []",
        ),
        ("c.a IN (1, c.b)", ""),
        ("c.a NOT IN (1, 2)", ""),
        ("ARRAY_CONTAINS(@list, c.a)", "/a/? = 1 \"b\" []"),
        ("ARRAY_CONTAINS(@list, c.a, true)", "/a/? = 1 \"b\" []"),
    ]);
}

#[test]
fn strings_by_their_beginning() {
    check(&[
        ("STARTSWITH(c.a, 'a')", "/a/? \"a\" \"ab\""),
        ("STARTSWITH(c.a, 'a', false)", "/a/? \"a\" \"ab\""),
        ("STARTSWITH(c.a, 'a', true)", ""),
        ("STARTSWITH(c.a, 'a', c.b)", ""),
        ("STARTSWITH(c.a, 1)", ""),
        ("STARTSWITH(c.a, '')", "/a/? \"\" \"a\" \"ab\" \"b\""),
        ("STARTSWITH('ab', c.a)", ""),
        ("STRINGEQUALS(c.a, 'a')", "/a/? = \"a\""),
        ("STRINGEQUALS('a', c.a, false)", "/a/? = \"a\""),
        ("STRINGEQUALS(c.a, 'A', true)", ""),
        ("c.a LIKE 'a%'", "/a/? \"a\" \"ab\""),
        ("c.a LIKE 'a_%'", "/a/? \"a\" \"ab\""),
        ("c.a LIKE 'a'", "/a/? = \"a\""),
        ("c.a LIKE '%b'", "/a/? \"\" \"a\" \"ab\" \"b\""),
        ("c.a LIKE '[ab]%'", "/a/? \"\" \"a\" \"ab\" \"b\""),
        ("c.a LIKE c.b", ""),
        ("c.a NOT LIKE 'a%'", ""),
        ("CONTAINS(c.a, 'a')", ""),
    ]);
}

#[test]
fn types_and_booleans() {
    check(&[
        ("IS_DEFINED(c.a)", &format!("/a/? {}", VALUES.join(" "))),
        ("IS_NULL(c.a)", "/a/? null"),
        ("IS_BOOL(c.a)", "/a/? false true"),
        ("IS_NUMBER(c.a)", "/a/? -1 0 1 1.5 2 1e400"),
        ("IS_INTEGER(c.a)", "/a/? -1 0 1 1.5 2 1e400"),
        ("IS_STRING(c.a)", "/a/? \"\" \"a\" \"ab\" \"b\""),
        ("IS_ARRAY(c.a)", "/a/? []"),
        ("IS_OBJECT(c.a)", "/a/? {}"),
        (
            "IS_PRIMITIVE(c.a)",
            "/a/? null false true -1 0 1 1.5 2 1e400 \"\" \"a\" \"ab\" \"b\"",
        ),
        ("NOT IS_DEFINED(c.a)", ""),
        ("NOT IS_NULL(c.a)", ""),
        ("c.a", "/a/? = true"),
        ("NOT c.a", "/a/? = false"),
        ("c", ""),
        ("NOT (c.a = 1)", ""),
        ("c.computed = 'a'", ""),
        ("udf.f(c.a) = 1", ""),
        ("LENGTH(c.a) = 1", ""),
        ("(c.a ?? 1) = 1", ""),
    ]);
}

#[test]
fn paths_of_names_and_of_elements() {
    check(&[
        ("c.a.b = 1", "/a/b/? = 1"),
        ("c['a b'] = 1", "/\"a b\"/? = 1"),
        ("c._ts > 1", "/_ts/? 1.5 2 1e400"),
        ("c['*'] = 1", ""),
        ("c.l[0] = 1", "/l/[]/? = 1"),
        ("c.l[-1] = 1", ""),
        ("c.l[0].x = 1", ""),
        ("c[0] = 1", ""),
        ("ARRAY_CONTAINS(c.l, 1)", "/l/[]/? = 1"),
        ("ARRAY_CONTAINS(c.l, 1, false)", "/l/[]/? = 1"),
        ("ARRAY_CONTAINS(c.l, @object, true)", "/l/[]/? = {}"),
        ("ARRAY_CONTAINS(c.l, undefined)", "/l/[]/? ="),
        ("ARRAY_CONTAINS(c.l[0], 1)", ""),
        ("ARRAY_CONTAINS_ANY(c.l, 1, 'a')", "/l/[]/? = 1 \"a\""),
        ("ARRAY_CONTAINS_ANY(c.l, 1, c.b)", ""),
        ("ARRAY_CONTAINS_ALL(c.l, 1, c.b, 'a')", "/l/[]/? = 1; /l/[]/? = \"a\""),
        ("EXISTS(SELECT VALUE t FROM t IN c.l WHERE t = 1)", "/l/[]/? = 1"),
        (
            "EXISTS(SELECT VALUE t FROM t IN c.l WHERE t > 0 AND t < 1)",
            "/l/[]/? 1 1.5 2 1e400; /l/[]/? -1 0",
        ),
        ("EXISTS(SELECT VALUE t FROM t IN c.l WHERE t.x = 1)", ""),
        (
            "EXISTS(SELECT VALUE t FROM t IN c.l WHERE t = 1 AND c.a = 2)",
            "/l/[]/? = 1; /a/? = 2",
        ),
        ("EXISTS(SELECT VALUE COUNT(1) FROM t IN c.l WHERE t = 1)", ""),
        ("EXISTS(SELECT VALUE t FROM t IN c.l)", ""),
        ("NOT EXISTS(SELECT VALUE t FROM t IN c.l WHERE t = 1)", ""),
        ("(SELECT VALUE COUNT(1) FROM t IN c.l WHERE t = 1) = 0", ""),
        ("ALL(SELECT VALUE t FROM t IN c.l WHERE t = 1)", ""),
    ]);
}

#[test]
fn conjunctions_and_disjunctions() {
    check(&[
        ("c.a > 0 AND c.a < 2", "/a/? 1 1.5"),
        ("c.a > 0 AND (c.b = 1 AND c.a < 2)", "/a/? 1 1.5; /b/? = 1"),
        ("c.a > 0 AND c.a < 0", "/a/?"),
        ("c.a > 0 AND c.a = 'a'", "/a/? ="),
        ("c.a IN (0, 1, 'a') AND c.a < 1", "/a/? = 0"),
        ("c.a = 1 AND udf.f(c)", "/a/? = 1"),
        ("c.l[0] = 1 AND c.l[1] = 2", "/l/[]/? = 1; /l/[]/? = 2"),
        ("c.a = 1 OR c.a = 'a'", "/a/? = 1 \"a\""),
        ("c.a = 1 OR c.a > 1.5", "/a/? 1 2 1e400"),
        ("c.a = 1 OR c.b = 2", ""),
        ("c.a = 1 OR udf.f(c)", ""),
        ("c.a = 1 OR false", "/a/? = 1"),
        ("c.a = 1 OR (c.a < 0 AND c.b = 1)", "/a/? -1 1"),
        (
            "(c.a = 1 AND c.b = 2) OR (c.b = 1 AND c.a = 2)",
            "/a/? = 1 2; /b/? = 1 2",
        ),
        ("(c.a > 1 AND c.a < 1) OR c.b = 2", "/b/? = 2"),
        ("(c.a > 1 AND c.a < 1) OR (c.a > 2 AND c.a < 2)", "/a/?"),
        ("(c.a = 1 OR (c.a = 2 OR c.a = 'b')) AND c.a >= 2", "/a/? = 2"),
        ("ARRAY_CONTAINS(c.l, 1) OR ARRAY_CONTAINS(c.l, 2)", "/l/[]/? = 1 2"),
        ("true", ""),
        ("false", ""),
    ]);
}

#[test]
fn sources_of_the_query() {
    let cases = [
        ("SELECT * FROM c", ""),
        ("SELECT 1", ""),
        ("SELECT * FROM c.a AS x WHERE x.b = 1", "/a/b/? = 1"),
        ("SELECT * FROM t IN c.l WHERE t = 1", "/l/[]/? = 1"),
        (
            "SELECT VALUE t FROM c JOIN t IN c.l WHERE t = 1 AND c.a = 2",
            "/l/[]/? = 1; /a/? = 2",
        ),
        ("SELECT VALUE t FROM c JOIN t IN c.l WHERE t.x = 1", ""),
        (
            "SELECT VALUE t FROM c JOIN (SELECT VALUE t FROM t IN c.l) AS t WHERE t = 1",
            "",
        ),
        (
            "SELECT * FROM (SELECT VALUE {\"a\": c.b} FROM c) AS d WHERE d.a = 1",
            "",
        ),
        ("SELECT COUNT(1) AS n FROM c WHERE c.a = 1", "/a/? = 1"),
        ("SELECT c.a FROM c WHERE c.a = 1 GROUP BY c.a", "/a/? = 1"),
        ("SELECT * FROM c WHERE c.a = 1 ORDER BY c.b", "/a/? = 1"),
        // The score depends on how many of all items have the word.
        (
            "SELECT TOP 9 * FROM c WHERE c.a = 1 ORDER BY RANK FullTextScore(c.t, 'x')",
            "",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(conditions_of(text), expected, "{text}");
    }
}

#[test]
fn long_strings_are_compared_by_what_is_left_of_them() {
    // `y` is beyond what a key has.
    let long = |end: &str| format!("{}{end}", "x".repeat(1_500));
    let admits = |op: &str, constant: &str, stored: &str| {
        let query = compile(&format!("SELECT * FROM c WHERE c.a {op} '{constant}'"));
        let item = format!("{{\"a\":\"{stored}\"}}");
        let item = Item::complete(item.as_bytes()).expect("UTF-8");
        let [condition] = &query.index_conditions()[..] else {
            panic!("one condition")
        };
        condition.admits(&condition.path.keys(&item))
    };
    for op in ["=", "!=", "<", "<=", ">", ">=", "LIKE"] {
        for (constant, stored) in [("y", "y"), ("y", "z"), ("z", "y"), ("", "y"), ("y", "")] {
            assert!(admits(op, &long(constant), &long(stored)), "{op} {constant} {stored}");
        }
    }
    let other = "w".repeat(1_500);
    assert!(admits("<", &long(""), &other) && admits(">", &other, &long("")));
    assert!(!admits("=", &long(""), &other) && !admits(">", &long(""), &other) && !admits("<", &other, &long("")));
}

/// The number of intervals of each condition.
fn intervals(filter: &str) -> Vec<usize> {
    let conditions = compile(&format!("SELECT * FROM c WHERE {filter}")).index_conditions();
    conditions.iter().map(|condition| condition.intervals.len()).collect()
}

#[test]
fn nothing_equals_nan_and_everything_differs_from_it() {
    assert_eq!(intervals("c.a = SQRT(-1)"), [0]);
    assert_eq!(intervals("c.a IN (1, SQRT(-1))"), [1]);
    assert_eq!(intervals("c.a != SQRT(-1)"), [1]);
}

#[test]
fn intervals_are_limited() {
    let list = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let (most, more) = (list(MAX_INTERVALS), list(MAX_INTERVALS + 1));
    assert_eq!(intervals(&format!("c.a IN ({most})")), [MAX_INTERVALS]);
    assert_eq!(intervals(&format!("c.a IN ({more})")), [0_usize; 0]);
    assert_eq!(intervals(&format!("c.a IN ({most}) OR c.a = -1")), [0_usize; 0]);
    assert_eq!(intervals(&format!("c.a IN ({more}) AND c.b = 1")), [1]);
    assert_eq!(intervals(&format!("c.a IN ({most}) AND c.a >= 4000")), [96]);
}

#[test]
fn bounds_of_a_query_are_limited() {
    let parameters = Parameters::none().with("@p", &"x".repeat(2_000).into());
    let filter = (0..10_000)
        .map(|n| format!("c.a{n} > @p"))
        .collect::<Vec<_>>()
        .join(" AND ");
    let query = Query::compile(
        &format!("SELECT * FROM c WHERE {filter}"),
        &parameters,
        &Schema::metadata(),
    );
    let conditions = query.expect("a query").index_conditions();
    let bytes: usize = conditions
        .iter()
        .flat_map(|condition| &condition.intervals)
        .map(Interval::bytes)
        .sum();
    assert!(bytes > MAX_BYTES / 2 && bytes <= MAX_BYTES, "{bytes}");
}
