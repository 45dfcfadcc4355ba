use super::*;

#[test]
fn names_are_quoted_as_the_services_baselines_have_them() {
    // .NET: IndexMetricsParserBaselineTest.IndexUtilizationParse.xml.
    for (name, expected) in [
        ("statement", "/statement"),
        ("素早く茶色の", "/素早く茶色の"),
        ("Der schnelle Fuchs", "/\"Der schnelle Fuchs\""),
        (" !\"!@#", "/\" !\\\"!@#\""),
    ] {
        assert_eq!(text(&[PathStep::name(name)]), expected);
    }
}

#[test]
fn paths_are_told_apart_by_the_policy() {
    let usage = Usage {
        paths: vec![vec![PathStep::name("name")], vec![PathStep::name("_etag")]],
        sort: vec![(vec![PathStep::name("a")], true)],
        advice: vec!["QA1002"],
    };
    let expected = QueryUsage {
        indexed: vec!["/name".to_owned()],
        unindexed: vec!["/_etag".to_owned()],
        sort: vec![("/a".to_owned(), true)],
        advice: vec!["QA1002"],
    };
    assert_eq!(of(usage, &IndexingPolicy::default()), expected);
}
