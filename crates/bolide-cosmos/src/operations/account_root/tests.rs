use super::*;

#[test]
fn the_query_engine_configuration_is_json() {
    let parsed: Value = serde_json::from_str(QUERY_ENGINE).expect("SDKs parse it");
    assert_eq!(parsed["maxSqlQueryInputLength"], 524_288);
}
