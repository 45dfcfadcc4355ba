use crate::{Environment, PageLimit, Parameters, Progress, Query, Schema};

/// The rows of a query over items, joined.
fn rows(query: &str, items: &[&str]) -> String {
    let query = Query::compile(query, &Parameters::none(), &Schema::metadata()).expect("a query");
    let mut page = query
        .execution(Environment::default(), PageLimit::NONE, None)
        .expect("a page");
    for (rid, item) in (1..).zip(items) {
        assert_eq!(
            page.push(item.as_bytes(), rid).expect("it has no errors"),
            Progress::Continue
        );
    }
    let rows = page.finish(true).expect("it ends").rows.into_joined();
    String::from_utf8(rows).expect("JSON is UTF-8")
}

#[test]
fn a_text_is_found_however_it_is_written() {
    let items = [
        r#"{"n":1,"a":"Oslo"}"#,
        r#"{"n":2,"a":"\u004fslo"}"#,
        r#"{"n":3,"\u0061":"Oslo"}"#,
        r#"{"n":4,"a":"Bergen"}"#,
        r#"{"n":5,"b":"Oslo","a":"Turku"}"#,
        r#"{"n":6,"a":"Bergen \"Oslo\""}"#,
    ];
    assert_eq!(rows("SELECT VALUE c.n FROM c WHERE c.a = 'Oslo'", &items), "1,2,3");
    assert_eq!(
        rows("SELECT VALUE c.n FROM c WHERE 'Oslo' = c.a AND c.n > 1", &items),
        "2,3"
    );
    assert_eq!(
        rows("SELECT VALUE c.n FROM c WHERE c.a = 'Oslo' OR c.n = 4", &items),
        "1,2,3,4"
    );
    assert_eq!(
        rows("SELECT VALUE c.n FROM c WHERE NOT (c.a = 'Oslo')", &items),
        "4,5,6"
    );
    assert_eq!(rows("SELECT VALUE c.n FROM c WHERE c.a != 'Oslo'", &items), "4,5,6");
    assert_eq!(
        rows("SELECT VALUE c.n FROM c WHERE c.a = 'Bergen \"Oslo\"'", &items),
        "6"
    );
}

#[test]
fn a_part_of_a_text_is_found_however_it_is_written() {
    let items = [
        r#"{"n":1,"a":"Oslo S","k":"x"}"#,
        r#"{"n":2,"a":"\u004fslo \u0053"}"#,
        r#"{"n":3,"\u0061":"Oslo S"}"#,
        r#"{"n":4,"a":"Bergen"}"#,
        r#"{"n":5,"a":"Turku","b":"Oslo S"}"#,
        r#"{"n":6,"a":"in Oslo Sentrum"}"#,
        r#"{"n":7,"a":"OSLO S"}"#,
        r#"{"n":8,"a":["Oslo S"]}"#,
        r#"{"n":9,"a":"Oslo\tS"}"#,
        r#"{"n":10,"a":"M\u00e5l\u00f8y"}"#,
        r#"{"n":11,"a":"Måløy"}"#,
    ];
    let cases = [
        ("CONTAINS(c.a, 'Oslo S')", "1,2,3,6"),
        ("CONTAINS(c.a, 'Oslo S', false)", "1,2,3,6"),
        ("CONTAINS(c.a, 'Oslo S', true)", "1,2,3,6,7"),
        ("CONTAINS(c.a, 'k')", "5"),
        ("CONTAINS(c.a, '')", "1,2,3,4,5,6,7,9,10,11"),
        ("CONTAINS(c.a, 'o\\tS')", "9"),
        ("CONTAINS(c.a, 'ålø')", "10,11"),
        ("CONTAINS('Oslo S in', c.a)", "1,2,3"),
        ("STARTSWITH(c.a, 'Oslo')", "1,2,3,9"),
        ("STARTSWITH(c.a, 'oslo', true)", "1,2,3,7,9"),
        ("ENDSWITH(c.a, 'lo S')", "1,2,3"),
        ("ENDSWITH(c.a, 'LO s', true)", "1,2,3,7"),
        ("STRINGEQUALS(c.a, 'Oslo S')", "1,2,3"),
        ("STRINGEQUALS('Oslo S', c.a)", "1,2,3"),
        ("STRINGEQUALS(c.a, 'oslo s', true)", "1,2,3,7"),
        ("STRINGEQUALS(c.a, '')", ""),
        ("c.a LIKE '%Oslo_S%'", "1,2,3,6,9"),
        ("c.a LIKE '_slo%'", "1,2,3,9"),
        ("c.a LIKE '[A-C]erg%n'", "4"),
        ("c.a LIKE '%'", "1,2,3,4,5,6,7,9,10,11"),
        ("c.n > 1 AND CONTAINS(c.a, 'Oslo S')", "2,3,6"),
        ("NOT CONTAINS(c.a, 'o')", "4,5,7,10,11"),
        ("CONTAINS(c.a, 'Turku') OR c.n = 4", "4,5"),
        ("CONTAINS(c.a || '!', 'S!')", "1,2,3,7,9"),
        ("CONTAINS(UPPER(c.a), 'OSLO S')", "1,2,3,6,7"),
    ];
    for (condition, expected) in cases {
        let query = format!("SELECT VALUE c.n FROM c WHERE {condition}");
        assert_eq!(rows(&query, &items), expected, "{condition}");
    }
}

#[test]
fn system_properties_are_searched_by_evaluation() {
    let items = [r#"{"n":1,"_etag":"abc"}"#];
    assert_eq!(
        rows("SELECT VALUE c.n FROM c WHERE CONTAINS(c._etag, 'b')", &items),
        "1"
    );
}

#[test]
fn items_that_cannot_match_are_found_by_their_text_alone() {
    let conditions = [
        ("CONTAINS(c.a, 'slo')", true),
        ("STARTSWITH(c.a, 'Osl')", true),
        ("STARTSWITH(c.a, 'slo')", false),
        ("ENDSWITH(c.a, 'slo')", true),
        ("ENDSWITH(c.a, 'Osl')", false),
        ("STRINGEQUALS(c.a, 'Oslo')", true),
        ("STRINGEQUALS(c.a, 'Osl')", false),
        ("c.a LIKE '%sl%'", true),
        ("c.a LIKE '_s%lx%'", false),
        ("CONTAINS(c.a, 'turku', true)", true),
        ("c.n > 5 AND CONTAINS(c.a, 'turku')", false),
    ];
    for (condition, may_match) in conditions {
        let text = format!("SELECT VALUE c.n FROM c WHERE {condition}");
        let query = Query::compile(&text, &Parameters::none(), &Schema::metadata()).expect("a query");
        let page = query
            .execution(Environment::default(), PageLimit::NONE, None)
            .expect("a page");
        assert_eq!(
            page.prefilter.may_match(br#"{"n":1,"a":"Oslo"}"#),
            may_match,
            "{condition}"
        );
    }
}

#[test]
fn an_element_that_is_joined_is_part_of_its_item() {
    let items = [
        r#"{"n":1,"l":[{"s":"x"},{"s":"y"},{"s":"x"}]}"#,
        r#"{"n":2,"l":[{"s":"\u0078"}]}"#,
        r#"{"n":3,"l":["x"]}"#,
        r#"{"n":4,"l":[]}"#,
    ];
    assert_eq!(
        rows("SELECT VALUE c.n FROM c JOIN e IN c.l WHERE e.s = 'x'", &items),
        "1,1,2"
    );
    assert_eq!(rows("SELECT VALUE c.n FROM c JOIN e IN c.l WHERE e = 'x'", &items), "3");
}

#[test]
fn a_computed_text_need_not_be_in_the_item() {
    let items = [r#"{"a":"x","b":"y","l":["x"]}"#];
    assert_eq!(rows("SELECT VALUE 1 FROM c WHERE CONCAT(c.a, c.b) = 'xy'", &items), "1");
    assert_eq!(rows("SELECT VALUE 1 FROM c WHERE (c.a || c.b) = 'xy'", &items), "1");
    let joined = "SELECT VALUE 1 FROM c JOIN (SELECT VALUE CONCAT(e, 'y') FROM e IN c.l) AS f WHERE f = 'xy'";
    assert_eq!(rows(joined, &items), "1");
    let of_subquery = "SELECT VALUE 1 FROM (SELECT VALUE {\"s\": CONCAT(c.a, c.b)} FROM c) AS d WHERE d.s = 'xy'";
    assert_eq!(rows(of_subquery, &items), "1");
}

#[test]
fn a_query_that_fails_also_fails_without_the_text_of_its_prefilter() {
    let query = "SELECT VALUE 1 FROM c WHERE (SELECT VALUE e FROM e IN c.l) = 1 AND c.a = 'x'";
    let query = Query::compile(query, &Parameters::none(), &Schema::metadata()).expect("a query");
    let mut page = query
        .execution(Environment::default(), PageLimit::NONE, None)
        .expect("a page");
    assert!(page.push(br#"{"a":"y","l":[1,2]}"#, 1).is_err());
}
