use super::*;

#[test]
fn metrics_are_pairs_without_blanks() {
    let metrics = QueryMetrics {
        retrieved_items: 4,
        output_rows: 1,
        ..QueryMetrics::default()
    };
    let header = metrics_header(&metrics);
    assert!(!header.contains(' '), "{header}");
    assert!(header.split(';').all(|pair| pair.split('=').count() == 2), "{header}");
    assert!(header.ends_with("indexUtilizationRatio=0.25"), "{header}");
    for time in [
        "totalExecutionTimeInMs",
        "queryCompileTimeInMs",
        "queryLogicalPlanBuildTimeInMs",
        "VMExecutionTimeInMs",
        "documentLoadTimeInMs",
    ] {
        let value = header
            .split(';')
            .find_map(|pair| pair.strip_prefix(time)?.strip_prefix('='));
        assert!(value.and_then(|ms| ms.parse::<f64>().ok()) > Some(0.0), "{header}");
    }
}
