//! Functions by example; every expected value is from the reference or computed by hand.

use crate::{Environment, PageLimit, Parameters, Query, Schema};

fn value(expression: &str) -> String {
    value_in(expression, &Schema::metadata())
}

/// The JSON text of an expression; empty if it is undefined.
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
        "2021-01-01T00:00:00+01:00",
        "2021-01-01T00:00:00.5-11:30",
        "2021-01-01+02:00",
        "1601-01-01T00:00:00+00:00",
    ] {
        assert_eq!(value(&format!("IS_DATETIME(\"{good}\")")), "true", "{good}");
    }
    for bad in [
        "2021-02-29",
        "2021-13-01",
        "2021-01-01T00",
        "2021-01-01T00:00:00.",
        "2021-01-01t00:00:00",
        "2021-01-01T00:00:00+01",
        "2021-01-01T00:00:00+0100",
        "2021-01-01T00:00:00+24:00",
        "2021-01-01T00:00:00+01:60",
        "2021-01-01T00:00:00+01:00Z",
        "2021-01-01T00:00:00 +01:00",
        "1600-12-31T23:59:59+00:00",
        "1601-01-01T00:30:00+01:00",
        "9999-12-31T23:59:59-00:01",
        "2021-01-01T00:00:00.12345678",
        "2021-01-01T24:00:00",
        "\u{e9}021-01-01",
        "",
    ] {
        assert_eq!(value(&format!("IS_DATETIME(\"{bad}\")")), "false", "{bad}");
    }
}

/// EF Core stores every `DateTimeOffset` like this; earlier, its dates were undefined, and its counts of them 0.
#[test]
fn a_date_with_an_offset_is_the_moment_in_utc() {
    check(&[
        (r#"DateTimePart("yyyy", "1998-05-04T15:30:10.1234567+00:00")"#, "1998"),
        (r#"YEAR("2024-01-01T00:30:00+01:00")"#, "2023"),
        (
            r#"DateTimeAdd("hh", 1, "1902-01-02T10:00:00.1234567+01:30")"#,
            "\"1902-01-02T09:30:00.1234567Z\"",
        ),
        (r#"DateTimeToTimestamp("1970-01-01T00:00:00-00:01")"#, "60000"),
        (
            r#"DateTimeDiff("mi", "2024-01-01T00:00:00Z", "2024-01-01T00:00:00-02:00")"#,
            "120",
        ),
        (
            r#"DateTimeAdd("dd", 0, "2024-03-01+02:00")"#,
            "\"2024-02-29T22:00:00.0000000Z\"",
        ),
        (r#"YEAR("0001-01-01T00:00:00+00:00")"#, ""),
    ]);
}

/// The .NET and Java SDKs write it when they continue an ORDER BY.
#[test]
fn is_boolean_is_is_bool() {
    check(&[
        ("IS_BOOLEAN(false)", "true"),
        ("IS_BOOLEAN(0)", "false"),
        ("is_boolean(undefined)", "false"),
    ]);
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

/// A shape in GeoJSON.
fn shape(kind: &str, coordinates: &str) -> String {
    format!(r#"{{"type": "{kind}", "coordinates": {coordinates}}}"#)
}

/// Earlier, every point counted as on an edge whose ends are equal: distances were 0, and all shapes intersected.
#[test]
fn a_repeated_position_adds_nothing_to_a_shape() {
    let far = shape("Point", "[50, 40]");
    let far_line = shape("LineString", "[[50, 40], [51, 41]]");
    let line = shape("LineString", "[[0, 0], [1, 1], [2, 0]]");
    let line_again = shape("LineString", "[[0, 0], [0, 0], [1, 1], [1, 1], [2, 0], [2, 0]]");
    let still = shape("LineString", "[[1, 1], [1, 1]]");
    let square = shape("Polygon", "[[[0,0],[1,0],[1,1],[0,1],[0,0]]]");
    let square_again = shape("Polygon", "[[[0,0],[0,0],[1,0],[1,1],[1,1],[1,1],[0,1],[0,0],[0,0]]]");
    let speck = shape("Polygon", "[[[1,1],[1,1],[1,1],[1,1]]]");
    let inside = shape("Point", "[0.5, 0.5]");
    for geometry in [false, true] {
        let schema = Schema {
            geometry,
            ..Schema::metadata()
        };
        let value = |expression: String| value_in(&expression, &schema);
        for (once, again) in [(&line, &line_again), (&square, &square_again)] {
            for other in [&far, &far_line, &inside, &line, &still, &speck] {
                for function in ["ST_DISTANCE", "ST_INTERSECTS", "ST_WITHIN"] {
                    assert_eq!(
                        value(format!("{function}({other}, {again})")),
                        value(format!("{function}({other}, {once})")),
                        "{function}({other}, {again}), geometry={geometry}"
                    );
                }
            }
            for other in [&far, &far_line] {
                assert_eq!(value(format!("ST_INTERSECTS({other}, {again})")), "false");
            }
            assert_eq!(value(format!("ST_AREA({again})")), value(format!("ST_AREA({once})")));
            assert_eq!(value(format!("ST_ISVALID({again})")), "true");
        }
        let corner = shape("Point", "[1, 1]");
        for place in [&still, &speck] {
            assert_eq!(value(format!("ST_INTERSECTS({far}, {place})")), "false", "{place}");
            assert_eq!(value(format!("ST_WITHIN({far}, {place})")), "false", "{place}");
            assert_eq!(value(format!("ST_INTERSECTS({corner}, {place})")), "true", "{place}");
            let (to_place, to_corner) = (
                value(format!("ST_DISTANCE({far}, {place})")),
                value(format!("ST_DISTANCE({far}, {corner})")),
            );
            assert_eq!(to_place, to_corner, "{place}");
        }
    }
}

/// Earlier, the sides of short edges were lost in rounding: such shapes were invalid, or not within themselves.
#[test]
fn small_shapes_are_as_exact_as_large_ones() {
    for geometry in [false, true] {
        let schema = Schema {
            geometry,
            ..Schema::metadata()
        };
        for (x, y) in [(13.405, 52.52), (-122.1283, 47.6398), (179.5, -41.3), (0.3, 0.7)] {
            for size in [1e-1, 1e-3, 1e-5, 1e-6] {
                check_small(&schema, &|east, north| {
                    format!("[{}, {}]", x + east * size, y + north * size)
                });
            }
        }
    }
}

/// Checks the relations of shapes of a few units, at the positions that `at` returns.
fn check_small(schema: &Schema, at: &dyn Fn(f64, f64) -> String) {
    let ring = |corners: &[(f64, f64)]| {
        let corners: Vec<String> = corners.iter().map(|(x, y)| at(*x, *y)).collect();
        shape("Polygon", &format!("[[{}]]", corners.join(",")))
    };
    let hexagon = [
        (1.0, 0.0),
        (2.0, 0.0),
        (3.0, 1.0),
        (2.0, 2.0),
        (1.0, 2.0),
        (0.0, 1.0),
        (1.0, 0.0),
    ];
    let hexagon = ring(&hexagon);
    let half = ring(&[(1.0, 0.0), (2.0, 0.0), (2.0, 2.0), (1.0, 2.0), (1.0, 0.0)]);
    let beside = ring(&[(3.0, 1.0), (4.0, 1.0), (4.0, 2.0), (2.0, 2.0), (3.0, 1.0)]);
    let middle = shape("Point", &at(1.4, 0.9));
    for (expression, expected) in [
        (format!("ST_ISVALID({hexagon})"), "true"),
        (format!("ST_WITHIN({hexagon}, {hexagon})"), "true"),
        (format!("ST_WITHIN({half}, {hexagon})"), "true"),
        (format!("ST_WITHIN({hexagon}, {half})"), "false"),
        (format!("ST_WITHIN({middle}, {hexagon})"), "true"),
        (format!("ST_INTERSECTS({hexagon}, {beside})"), "true"),
        (format!("ST_DISTANCE({hexagon}, {beside})"), "0"),
        (format!("ST_WITHIN({beside}, {hexagon})"), "false"),
    ] {
        assert_eq!(value_in(&expression, schema), expected, "{expression}");
    }
}

/// Such a ring has no left side; earlier, it counted as one around the whole world.
#[test]
fn a_ring_that_goes_back_the_way_it_came_encloses_nothing() {
    for ring in [
        "[[[0,0],[1,0],[0,0],[0,0]]]",
        "[[[1,0],[2,1],[1,0],[0,0],[1,0]]]",
        "[[[1,1],[1,1],[1,1],[1,1]]]",
    ] {
        let ring = shape("Polygon", ring);
        for point in ["[50, 40]", "[0.5, 0.1]", "[-120, -70]"] {
            let point = shape("Point", point);
            check(&[
                (&format!("ST_WITHIN({point}, {ring})"), "false"),
                (&format!("ST_INTERSECTS({point}, {ring})"), "false"),
            ]);
        }
    }
}

#[test]
fn one_place_may_have_several_longitudes() {
    let meridian = shape("LineString", "[[180, 10], [180, 20]]");
    let to_the_pole = shape("LineString", "[[30, 80], [30, 90]]");
    let around_the_pole = shape("LineString", "[[-180, 90], [180, 90], [30, 80]]");
    let start = shape("Point", "[-180, 10]");
    let pole = shape("Point", "[77, 90]");
    let far = shape("Point", "[50, 40]");
    check(&[
        (&format!("ST_INTERSECTS({start}, {meridian})"), "true"),
        (&format!("ST_INTERSECTS({pole}, {to_the_pole})"), "true"),
        (&format!("ST_INTERSECTS({pole}, {around_the_pole})"), "true"),
        (&format!("ST_INTERSECTS({far}, {around_the_pole})"), "false"),
    ]);
}

/// Every great circle through one of the ends goes through the other.
#[test]
fn an_edge_between_opposite_places_holds_its_ends_and_not_the_world() {
    for (a, b) in [
        ("[-90, 0]", "[90, 0]"),
        ("[0, -90]", "[0, 90]"),
        ("[45, 30]", "[-135, -30]"),
        ("[10, 20]", "[-170, -20]"),
    ] {
        let line = shape("LineString", &format!("[{a}, {b}]"));
        let start = shape("Point", a);
        check(&[
            (&format!("ST_INTERSECTS({start}, {line})"), "true"),
            (&format!("ST_DISTANCE({start}, {line})"), "0"),
        ]);
        for point in ["[51, 43]", "[-20, -64]", "[-160, 12]"] {
            let point = shape("Point", point);
            check(&[(&format!("ST_INTERSECTS({point}, {line})"), "false")]);
        }
    }
}

#[test]
fn a_multi_polygon_of_none_is_invalid() {
    let none = shape("MultiPolygon", "[]");
    let point = shape("Point", "[0, 0]");
    check(&[
        (&format!("ST_ISVALID({none})"), "false"),
        (&format!("ST_DISTANCE({none}, {point})"), ""),
        (
            &format!("ST_WITHIN({none}, {})", shape("Polygon", "[[[0,0],[1,0],[1,1],[0,0]]]")),
            "",
        ),
    ]);
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
