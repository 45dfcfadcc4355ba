//! Functions by example; every expected value is from the reference or from arithmetic by hand.

use crate::{Environment, PageLimit, Parameters, Query, Schema};

fn value(expression: &str) -> String {
    value_in(expression, &Schema::metadata())
}

/// The JSON of an expression; empty when it is undefined.
fn value_in(expression: &str, schema: &Schema) -> String {
    let query = Query::compile(&format!("SELECT VALUE {expression}"), &Parameters::none(), schema).unwrap();
    let page = query.execution(Environment::default(), PageLimit::NONE, None).unwrap();
    String::from_utf8(page.finish(true).unwrap().rows.into_joined()).unwrap()
}

fn check(cases: &[(&str, &str)]) {
    for (expression, expected) in cases {
        assert_eq!(value(expression), *expected, "{expression}");
    }
}

fn number(expression: &str) -> f64 {
    value(expression)
        .parse()
        .unwrap_or_else(|_| panic!("{expression} is {}", value(expression)))
}

#[test]
fn very_large_numbers_are_written_with_an_exponent_of_three_digits() {
    check(&[
        ("ToString(2049537175849502700)", "\"2.0495371758495027e+018\""),
        ("ToString(-1e17)", "\"-1e+017\""),
        ("ToString(1e100)", "\"1e+100\""),
        ("ToString(12345678901234567)", "\"12345678901234567\""),
        ("ToString(1/0)", "\"Infinity\""),
    ]);
}

#[test]
fn of_members_with_one_name_the_last_stays_among_few_and_among_many() {
    check(&[(r#"{"a": 1, "b": 2, "a": 3}"#, r#"{"a":3,"b":2}"#)]);
    let many: Vec<String> = (0..100).map(|n| format!("\"m{}\": {n}", n % 60)).collect();
    let object = value(&format!("{{{}}}", many.join(", ")));
    assert!(
        object.starts_with(r#"{"m0":60,"m1":61,"#) && object.ends_with(r#""m59":59}"#),
        "{object}"
    );
}

#[test]
fn positions_count_utf16_units() {
    check(&[
        (r#"LENGTH("a\ud83d\ude00b")"#, "4"),
        (r#"INDEX_OF("a\ud83d\ude00b", "b")"#, "3"),
        (r#"LEFT("\u00e9\u00e8", 1)"#, "\"é\""),
        (r#"SUBSTRING("a\ud83d\ude00b", 3, 9)"#, "\"b\""),
        (r#"RIGHT("\u00e9\u00e8", 1)"#, "\"è\""),
    ]);
}

#[test]
fn documented_edges_of_string_functions_hold() {
    check(&[
        (r#"LASTINDEXOF("abcdeabc", "abc", 6)"#, "0"),
        (r#"LASTINDEXOF("abcdeabc", "abc", 7)"#, "5"),
        (r#"LTRIM("AdventureWorks", "Adventure")"#, "\"Works\""),
        (r#"REPLACE("abc", "", "x")"#, ""),
        (r#"REPLICATE("ab", 5001)"#, ""),
        (r#"REPLICATE("", 1e300)"#, "\"\""),
        (r#"LEFT("abc", 1.5)"#, ""),
        (r#"CONTAINS_ALL_CS("abc", undefined, "x")"#, "false"),
        (r#"STRINGSPLIT("a,,b", ",")"#, r#"["a","","b"]"#),
        (r#"UPPER("stra\u00dfe")"#, "\"STRAßE\""),
    ]);
}

#[test]
fn like_matches_whole_strings_only() {
    check(&[
        (r#""abc" LIKE "a%""#, "true"),
        (r#""abc" LIKE "b%""#, "false"),
        (r#""a\nc" LIKE "a%c""#, "true"),
        (r#""a%c" LIKE "a[%]c""#, "true"),
        (r#""abc" LIKE "a[%]c""#, "false"),
        (r#""a_c" LIKE "a!_c" ESCAPE "!""#, "true"),
        (r#""abc" LIKE "a[^b]c""#, "false"),
        (r#""a.c" LIKE "a.c""#, "true"),
        (r#""abc" LIKE "a.c""#, "false"),
        (r#""a]" LIKE "a]""#, "true"),
        (r#"1 LIKE "1""#, ""),
        (r#""aXbXc" LIKE "%X%X_""#, "true"),
    ]);
}

#[test]
fn hostile_patterns_finish() {
    let text = "a".repeat(200);
    let pattern = "%a".repeat(60) + "b";
    assert_eq!(value(&format!("\"{text}\" LIKE \"{pattern}\"")), "false");
    assert_eq!(value(&format!("REGEXMATCH(\"{text}\", \"(a+)+$b\")")), "false");
    assert_eq!(value(r#"REGEXMATCH("a", "(")"#), "");
    assert_eq!(value(r#"REGEXMATCH("aa", "^(a)\\1$")"#), "true");
}

#[test]
fn dates_accept_their_shape_and_nothing_else() {
    for good in [
        "2020-02-29",
        "2020-02-29Z",
        "2021-01-01T00:00:00",
        "2021-01-01 23:59:59.1234567Z",
    ] {
        assert_eq!(value(&format!("IS_DATETIME(\"{good}\")")), "true", "{good}");
    }
    for bad in [
        "2021-02-29",
        "2021-13-01",
        "2021-01-01T00",
        "2021-01-01T00:00:00.",
        "2021-01-01t00:00:00",
        "2021-01-01T00:00:00+01:00",
        "2021-01-01T00:00:00.12345678",
        "2021-01-01T24:00:00",
        "\u{e9}021-01-01",
        "",
    ] {
        assert_eq!(value(&format!("IS_DATETIME(\"{bad}\")")), "false", "{bad}");
    }
}

#[test]
fn date_arithmetic_clamps_and_counts_boundaries() {
    check(&[
        (
            r#"DateTimeAdd("mm", 1, "2020-01-31T00:00:00")"#,
            "\"2020-02-29T00:00:00.0000000Z\"",
        ),
        (
            r#"DateTimeAdd("yyyy", -1, "2020-02-29")"#,
            "\"2019-02-28T00:00:00.0000000Z\"",
        ),
        (r#"DateTimeAdd("yyyy", 9999, "2020-02-29")"#, ""),
        (
            r#"DateTimeDiff("yyyy", "2020-12-31T23:59:59", "2021-01-01T00:00:00")"#,
            "1",
        ),
        (
            r#"DateTimeDiff("hh", "2021-01-01T00:59:59", "2021-01-01T01:00:00")"#,
            "1",
        ),
        (
            r#"DateTimeBin("2021-01-08T18:35:00", "hh", 5)"#,
            "\"2021-01-08T15:00:00.0000000Z\"",
        ),
        (
            r#"DateTimeBin("2021-01-08T18:35:00", "dd", 7)"#,
            "\"2021-01-07T00:00:00.0000000Z\"",
        ),
        (
            r#"DateTimeBin("2021-05-08", "mm", 3)"#,
            "\"2021-04-01T00:00:00.0000000Z\"",
        ),
        (r#"DateTimeFromParts(2020, 2, 30)"#, ""),
        (
            r#"DateTimeFromParts(2020, 2, 29, 1, 2, 3, 4)"#,
            "\"2020-02-29T01:02:03.0000004Z\"",
        ),
        (r#"TicksToDateTime(-1)"#, "\"1969-12-31T23:59:59.9999999Z\""),
        (
            r#"DateTimeFormat("2020-02-29T01:02:03.1200000Z", "yyyy\\yMM fff FFFF")"#,
            "\"2020y02 120 12\"",
        ),
    ]);
}

#[test]
fn integers_wrap_and_never_divide_by_zero() {
    check(&[
        ("INTADD(9223372036854775807, 1)", "-9223372036854775808"),
        ("INTDIV(-9223372036854775808, -1)", "-9223372036854775808"),
        ("INTDIV(1, 0)", ""),
        ("INTMOD(-12, 5)", "-2"),
        ("INTADD(20, 0.1)", ""),
        ("4294967296 | 0", "0"),
        ("-1 >>> 0", "4294967295"),
        ("~130679749712577953", "-1022657953"),
    ]);
}

#[test]
fn distances_follow_the_ellipsoid() {
    // One degree of the equator and of the first meridian degree, WGS-84.
    let point = |x: f64, y: f64| format!(r#"{{"type": "Point", "coordinates": [{x}, {y}]}}"#);
    let equator = number(&format!("ST_DISTANCE({}, {})", point(0.0, 0.0), point(1.0, 0.0)));
    assert!((equator - 111_319.490_793).abs() < 1e-4, "{equator}");
    let line = r#"{"type": "LineString", "coordinates": [[-10, 0], [10, 0]]}"#;
    let to_line = number(&format!("ST_DISTANCE({}, {line})", point(3.0, 1.0)));
    assert!((to_line - 110_574.388_558).abs() < 1e-3, "{to_line}");
    let past_the_end = number(&format!("ST_DISTANCE({}, {line})", point(11.0, 0.0)));
    assert!((past_the_end - equator).abs() < 1e-6, "{past_the_end}");
}

#[test]
fn a_clockwise_shell_is_the_rest_of_the_world() {
    let ring = |positions: &str| format!(r#"{{"type": "Polygon", "coordinates": [[{positions}]]}}"#);
    let square = ring("[0,0],[1,0],[1,1],[0,1],[0,0]");
    let outside = ring("[0,0],[0,1],[1,1],[1,0],[0,0]");
    let inside = r#"{"type": "Point", "coordinates": [0.5, 0.5]}"#;
    let far = r#"{"type": "Point", "coordinates": [50, -30]}"#;
    check(&[
        (&format!("ST_WITHIN({inside}, {square})"), "true"),
        (&format!("ST_WITHIN({far}, {square})"), "false"),
        (&format!("ST_WITHIN({inside}, {outside})"), "false"),
        (&format!("ST_WITHIN({far}, {outside})"), "true"),
    ]);
    let sum = number(&format!("ST_AREA({square}) + ST_AREA({outside})"));
    assert!((sum - 510_065_621_724_088.0).abs() / sum < 1e-9, "{sum}");
}

#[test]
fn holes_are_outside() {
    let polygon =
        r#"{"type": "Polygon", "coordinates": [[[0,0],[10,0],[10,10],[0,10],[0,0]], [[4,4],[6,4],[6,6],[4,6],[4,4]]]}"#;
    let point = |x: f64| format!(r#"{{"type": "Point", "coordinates": [{x}, 5]}}"#);
    for geometry in [false, true] {
        let schema = Schema {
            geometry,
            ..Schema::metadata()
        };
        let within = |x: f64| value_in(&format!("ST_WITHIN({}, {polygon})", point(x)), &schema);
        assert_eq!(
            (within(2.0).as_str(), within(5.0).as_str()),
            ("true", "false"),
            "geometry={geometry}"
        );
    }
    assert_eq!(
        value_in(
            &format!("ST_AREA({polygon})"),
            &Schema {
                geometry: true,
                ..Schema::metadata()
            }
        ),
        "96"
    );
}

#[test]
fn bow_ties_and_open_rings_are_invalid() {
    let polygon = |ring: &str| format!(r#"ST_ISVALID({{"type": "Polygon", "coordinates": [{ring}]}})"#);
    assert_eq!(value(&polygon("[[0,0],[1,1],[1,0],[0,1],[0,0]]")), "false");
    assert_eq!(value(&polygon("[[0,0],[1,0],[1,1],[0,1],[0,2]]")), "false");
    assert_eq!(value(&polygon("[[0,0],[1,0],[1,1],[0,1],[0,0]]")), "true");
    assert_eq!(value("ST_ISVALID(undefined)"), "false");
}

#[test]
fn full_text_matches_words_and_neighbours() {
    check(&[
        (r#"FullTextContains("Johnson ran", "John")"#, "false"),
        (r#"FullTextContains("He was running", "run")"#, "true"),
        (r#"FullTextContains("states united", "united states")"#, "false"),
        (
            r#"FullTextContains("the bicycle", {"term": "bicicle", "distance": 1})"#,
            "true",
        ),
        (r#"FullTextContains(1, "x")"#, ""),
        (r#"_FullTextWordCount("the quick brown fox")"#, "3"),
    ]);
}

#[test]
fn rarer_and_denser_terms_score_higher() {
    let score = |text: &str, hits: u32| number(&format!("_FullTextScore(\"{text}\", [\"fox\"], 100, 1000, [{hits}])"));
    assert!(score("fox den", 5) > score("fox den", 50));
    assert!(score("fox fox den", 5) > score("fox wolf den", 5));
    assert!(score("fox den", 5) > score("fox den wolf bear hare owl crow pike", 5));
    assert_eq!(score("wolf", 5), 0.0);
}
