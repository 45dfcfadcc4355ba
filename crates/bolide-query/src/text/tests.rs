use proptest::prelude::*;

use super::ast::Query;
use super::printer::query_text;
use crate::error::{QueryError, Result, Span};
use crate::memory::Memory;

fn parse(text: &str) -> Result<Query> {
    super::parse(text, &Memory::new(usize::MAX, None))
}

fn printed(text: &str) -> String {
    query_text(&parse(text).unwrap())
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

fn syntax_error(text: &str) -> (String, Span) {
    match parse(text) {
        Err(QueryError::Compile(list)) => (list[0].message.clone(), list[0].location.unwrap()),
        other => panic!("expected a syntax error: {other:?}"),
    }
}

#[test]
fn operators_bind_as_the_table_says() {
    for (text, expected) in [
        ("SELECT VALUE 1 = 2 & 3 != 4", "SELECT VALUE ((1 = 2) & (3 != 4))"),
        ("SELECT VALUE 1 ? 2 ?? 3 : 4", "SELECT VALUE (1 ? (2 ?? 3) : 4)"),
        (
            "SELECT VALUE a AND b OR c AND d",
            "SELECT VALUE ((a AND b) OR (c AND d))",
        ),
        ("SELECT VALUE 1 || 2 OR 3 || 4", "SELECT VALUE ((1 || 2) OR (3 || 4))"),
        ("SELECT VALUE 1 - 2 - 3", "SELECT VALUE ((1 - 2) - 3)"),
        ("SELECT VALUE c.ab-cd", "SELECT VALUE (c.ab - cd)"),
        ("SELECT VALUE NOT c.a = 5", "SELECT VALUE ((NOT c.a) = 5)"),
        ("SELECT VALUE 1 << 2 + 3 < 4", "SELECT VALUE ((1 << (2 + 3)) < 4)"),
        (
            "SELECT VALUE 1 BETWEEN 2 AND 3 AND 4",
            "SELECT VALUE ((1 BETWEEN 2 AND 3) AND 4)",
        ),
    ] {
        assert_eq!(printed(text), expected, "{text}");
    }
}

#[test]
fn comments_end_with_the_line() {
    assert_eq!(printed("SELECT VALUE 1 --5\n+ 2 -- end"), "SELECT VALUE (1 + 2)");
}

#[test]
fn reserved_words_follow_their_case_rules() {
    assert!(parse("SELECT c.order FROM c").is_err());
    assert!(parse("SELECT NULL").is_ok(), "upper-case NULL is a name");
    assert_eq!(printed("select value c.first from c"), "SELECT VALUE c.first FROM c");
    let ranks = "SELECT c.rank FROM c ORDER BY c.rank";
    assert_eq!(printed(ranks), ranks);
}

#[test]
fn an_error_points_at_its_token() {
    let (message, location) = syntax_error("SELECT c.a, FROM c");
    assert_eq!(message, "Syntax error, incorrect syntax near 'FROM'.");
    assert_eq!(location, Span { start: 12, end: 16 });
}

#[test]
fn hostile_nesting_is_an_error() {
    for (open, close) in [
        ("(1 + ", ")"),
        ("[", "]"),
        ("-", ""),
        ("NOT ", ""),
        ("(SELECT VALUE ", ")"),
    ] {
        let text = format!("SELECT VALUE {}1{}", open.repeat(5000), close.repeat(5000));
        assert!(parse(&text).is_err(), "{open}");
    }
    let chain = format!("SELECT VALUE 1{}", " + 1".repeat(5000));
    assert!(parse(&chain).is_err(), "a chain of binary operators is deep, too");
}

#[test]
fn deep_expressions_within_the_limit_run_on_a_small_stack() {
    let nested =
        |open: &str, close: &str, n: usize| format!("SELECT VALUE {}c.a{} FROM c", open.repeat(n), close.repeat(n));
    for text in [
        nested("(", " OR c.b)", 200),
        nested("(", " + 1)", 200),
        nested("[", "]", 60),
        nested("(SELECT VALUE ", ")", 28),
        format!("SELECT VALUE 1{} FROM c", " + c.a".repeat(200)),
    ] {
        let query = crate::Query::compile(&text, &crate::Parameters::none(), &crate::Schema::metadata());
        let query = query.unwrap_or_else(|error| panic!("{error}: {text}"));
        let environment = crate::Environment::default();
        let mut page = query.execution(environment, crate::PageLimit::NONE, None).unwrap();
        page.push(br#"{"a":1,"b":true}"#, 1).unwrap();
        assert_eq!(page.finish(true).unwrap().rows.len(), 1, "{text}");
    }
}

#[test]
fn parentheses_close_in_the_right_place() {
    for (text, expected) in [
        ("SELECT VALUE ((1 + 2) * 3)", "SELECT VALUE ((1 + 2) * 3)"),
        ("SELECT VALUE (((a).b)[0] ?? ((c)))", "SELECT VALUE (a.b[0] ?? c)"),
        (
            "SELECT VALUE ((a) IN (1)) AND ((b) ? 1 : (2))",
            "SELECT VALUE ((a IN (1)) AND (b ? 1 : 2))",
        ),
        ("SELECT VALUE ((SELECT 1).a + 2)", "SELECT VALUE (( SELECT 1 ).a + 2)"),
    ] {
        assert_eq!(printed(text), expected, "{text}");
    }
    assert!(parse("SELECT VALUE ((1)").is_err() && parse("SELECT VALUE (1))").is_err());
}

#[test]
fn long_flat_filters_are_fine() {
    let text = format!("SELECT * FROM c WHERE c.a = 0{}", " OR c.a = 1".repeat(20_000));
    let query = parse(&text).unwrap();
    assert!(query.filter.unwrap().height < 10);
}

/// A grammar of expressions as text. Only literals that print unchanged.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("c".to_owned()),
        Just("c.a".to_owned()),
        Just("c[\"odd name\"].b[2]".to_owned()),
        Just("@p".to_owned()),
        Just("undefined".to_owned()),
        Just("null".to_owned()),
        any::<bool>().prop_map(|b| b.to_string()),
        any::<i32>().prop_map(|n| n.to_string()),
        any::<f64>()
            .prop_filter("finite", |n| n.is_finite())
            .prop_map(|n| format!("{n:e}")),
        "[a-z'\\\\\"\u{e9}\n]{0,6}".prop_map(|text| super::printer::string_literal(&text)),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let operator = prop::sample::select(vec![
            "+", "-", "*", "/", "%", "&", "|", "^", "||", "<<", ">>", ">>>", "=", "!=", "<", ">", "<=", ">=", "AND",
            "OR", "??",
        ]);
        prop_oneof![
            (inner.clone(), operator, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("(({a}) BETWEEN ({b}) AND ({c}))")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(({a}) NOT IN ({b}, 1))")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(({a}) LIKE ({b}) ESCAPE \"!\")")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, {{\"x\": {b}}}]")),
            inner.clone().prop_map(|a| format!("ABS({a})")),
            inner.clone().prop_map(|a| format!("NOT ({a})")),
            inner
                .clone()
                .prop_map(|a| format!("EXISTS(SELECT VALUE x FROM x IN c.l WHERE {a})")),
            inner.prop_map(|a| format!("(SELECT {a} AS y, 1).y")),
        ]
    })
}

/// One of some texts.
fn one_of(texts: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(texts).prop_map(str::to_owned)
}

/// A text after its keyword, or nothing.
fn optional(keyword: &'static str, text: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop::option::of(text).prop_map(move |text| text.map_or_else(String::new, |text| format!(" {keyword} {text}")))
}

/// A grammar of whole queries: every clause in every form.
fn query() -> impl Strategy<Value = String> {
    let head = (one_of(&["", "DISTINCT "]), one_of(&["", "TOP 5 ", "TOP @n "]));
    let selection = prop_oneof![
        Just("*".to_owned()),
        expression().prop_map(|value| format!("VALUE {value}")),
        (expression(), expression()).prop_map(|(a, b)| format!("{a} AS v, {b}, 2 w, c.a")),
    ];
    let source = one_of(&[
        "c",
        "Families.children AS c",
        "c.a[0][\"odd name\"] c",
        "c IN root.list",
        "(SELECT * FROM c WHERE c.a) AS c",
        "c IN (SELECT VALUE c.l FROM c)",
    ]);
    let joins = one_of(&[
        "",
        " JOIN t IN c.tags",
        " JOIN t IN c.tags JOIN (SELECT VALUE u FROM u IN t.us) AS v",
        " JOIN c.path p",
        " JOIN (SELECT 1)",
    ]);
    let group = optional("GROUP BY", one_of(&["c.a", "c.a, UPPER(c.b)", "{\"k\": c.a}"]));
    let order = optional(
        "ORDER BY",
        one_of(&[
            "c.a",
            "c.a DESC, c[\"b c\"] ASC",
            "RANK FullTextScore(c.t, \"x\")",
            "RANK RRF(FullTextScore(c.t, \"x\"), VectorDistance(c.v, [1, 2]), [1, -0.5])",
        ]),
    );
    let window = optional("OFFSET", one_of(&["0 LIMIT 1", "@o LIMIT @l"]));
    let filter = optional("WHERE", expression());
    (head, selection, (source, joins), filter, group, order, window).prop_map(
        |((distinct, top), selection, (source, joins), filter, group, order, window)| {
            format!("SELECT {distinct}{top}{selection} FROM {source}{joins}{filter}{group}{order}{window}")
        },
    )
}

proptest! {
    #[test]
    fn printed_queries_parse_to_the_same_tree(text in query()) {
        let once = query_text(&parse(&text).unwrap());
        let again = query_text(&parse(&once).unwrap());
        prop_assert_eq!(once, again);
    }

    /// Keywords in other cases, other white space and comments make no difference.
    #[test]
    fn the_look_of_a_text_does_not_matter(text in query()) {
        let spaced = text.replace(" FROM ", "\n-- a comment\r\n\tfrom ").replace(" WHERE ", " where\t");
        prop_assert_eq!(query_text(&parse(&text).unwrap()), query_text(&parse(&spaced).unwrap()));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,80}") {
        let _ = parse(&text);
        let _ = parse(&format!("SELECT {text} FROM c"));
    }
}

/// The JavaScript SDK escapes only quotes and backslashes in the values with which it resumes an ORDER BY.
#[test]
fn literals_may_contain_unescaped_control_characters() {
    let query = "SELECT VALUE 'a\tb\r\nc\u{1}' || \"\n\" || \"\\u0007\u{7}\"";
    let printed = query_text(&parse(query).unwrap());
    assert_eq!(query_text(&parse(&printed).unwrap()), printed);
    assert!(printed.contains("a\\tb\\r\\nc\\u0001"), "{printed}");
}
