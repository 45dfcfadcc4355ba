use super::*;
use crate::{Parameters, Query, Schema};

fn usage(text: &str) -> Usage {
    let query = Query::compile(text, &Parameters::none(), &Schema::default()).expect(text);
    query.usage()
}

fn paths(text: &str) -> Vec<String> {
    let step = |step: &PathStep| match step {
        PathStep::Name(name) => name.clone(),
        _ => "[]".to_owned(),
    };
    let text_of = |path: &Vec<PathStep>| path.iter().map(step).collect::<Vec<_>>().join("/");
    usage(text).paths.iter().map(text_of).collect()
}

#[test]
fn conditions_name_the_paths_that_an_index_serves() {
    for (text, expected) in [
        ("SELECT * FROM c", vec![]),
        ("SELECT * FROM c WHERE c.name = 'x' AND c.a.b > 1", vec!["name", "a/b"]),
        (
            "SELECT * FROM root r WHERE r.tags[0] = 1 OR r['odd name'] IN (1)",
            vec!["tags/[]", "odd name"],
        ),
        (
            "SELECT VALUE t FROM c JOIN t IN c.tags WHERE t.n BETWEEN 1 AND 2",
            vec!["tags/[]/n"],
        ),
        ("SELECT VALUE STARTSWITH(r.name, 's', true) FROM root r", vec!["name"]),
        (
            "SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 'x') ORDER BY c.n",
            vec!["tags/[]", "n"],
        ),
        ("SELECT * FROM c WHERE c.a + 1 = 2 AND c.b LIKE 'x%'", vec!["b"]),
        (
            "SELECT * FROM c WHERE EXISTS(SELECT 1 FROM t IN c.tags WHERE t = 1)",
            vec!["tags/[]"],
        ),
    ] {
        assert_eq!(paths(text), expected, "{text}");
    }
}

#[test]
fn a_sort_by_several_paths_is_distinguished() {
    let used = usage("SELECT * FROM c WHERE c.x = 1 ORDER BY c.a, c.b DESC");
    assert_eq!(used.paths, [vec![PathStep::name("x")]]);
    assert_eq!(
        used.sort,
        [(vec![PathStep::name("a")], false), (vec![PathStep::name("b")], true)]
    );
}

#[test]
fn advice_agrees_with_the_services_baselines() {
    // .NET: QueryAdvisorBaselineTest.QueryAdviceParse.xml.
    for (text, expected) in [
        (
            "SELECT VALUE r.id FROM root r WHERE CONTAINS(r.name, \"Abc\")",
            vec!["QA1002"],
        ),
        (
            "SELECT GetCurrentTicks() FROM root r WHERE GetCurrentTimestamp() > 10",
            vec!["QA1009", "QA1008"],
        ),
        (
            "SELECT VALUE r.id FROM root r WHERE StringEquals(r.name, \"Abc\", false)",
            vec![],
        ),
        ("SELECT VALUE r.id FROM root r WHERE r.id = \"123\"", vec![]),
        (
            "SELECT * FROM r WHERE ARRAY_CONTAINS(r.a, {}, true) AND startswith(r.n, 'x', true)",
            vec!["QA1000", "QA1003"],
        ),
        (
            "SELECT UPPER(r.a) AS a FROM r WHERE LOWER(r.a) = 'x' AND ENDSWITH(r.b, 'y')",
            vec!["QA1006", "QA1004"],
        ),
        ("SELECT UPPER(r.a) AS a FROM r", vec![]),
    ] {
        assert_eq!(usage(text).advice, expected, "{text}");
    }
}
