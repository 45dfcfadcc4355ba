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
fn what_no_index_covers_is_potential() {
    let usage = Usage {
        paths: vec![vec![PathStep::name("name")], vec![PathStep::name("_etag")]],
        ..Usage::default()
    };
    assert_eq!(
        indexes(&usage, &IndexingPolicy::default()),
        json!({
            "UtilizedIndexes": {"SingleIndexes": [{"IndexSpec": "/name/?"}], "CompositeIndexes": []},
            "PotentialIndexes": {"SingleIndexes": [{"IndexSpec": "/_etag/?"}], "CompositeIndexes": []},
        })
    );
}
