use serde_json::json;

use super::*;

fn take(rules: &FaultRules, operation: Operation, path: &str) -> Option<u16> {
    let route = Route::parse(path).expect("the path decodes");
    let fault = rules.take(operation, &Method::GET, &route)?;
    fault.failure.map(|failure| failure.status.http.as_u16())
}

#[test]
fn a_rule_applies_as_often_as_it_says_and_only_where_it_fits() {
    let rules = FaultRules::default();
    let rule = json!([{"match": {"method": "get", "resource": "docs", "operation": "ReadItem", "container": "c"},
        "status": 429, "subStatus": 3200, "retryAfterMs": 5, "times": 2}]);
    rules.replace(&rule).expect("well formed");
    assert_eq!(take(&rules, Operation::ReadItem, "/dbs/d/colls/other/docs/i"), None);
    assert_eq!(take(&rules, Operation::ReadFeed, "/dbs/d/colls/c/docs"), None);
    assert_eq!(take(&rules, Operation::ReadItem, "/dbs/d/colls/c/docs/i"), Some(429));
    assert_eq!(take(&rules, Operation::ReadItem, "/dbs/d/colls/c/docs/i"), Some(429));
    assert_eq!(take(&rules, Operation::ReadItem, "/dbs/d/colls/c/docs/i"), None);
}

#[test]
fn malformed_rules_are_refused_and_change_nothing() {
    let rules = FaultRules::default();
    rules.replace(&json!([{"status": 503}])).expect("well formed");
    for malformed in [
        json!({}),
        json!([1]),
        json!([{}]),
        json!([{"status": 200}]),
        json!([{"status": 503, "times": 0}]),
        json!([{"status": 503, "match": {"operation": "Sing"}}]),
        json!([{"status": 503, "match": {"verb": "GET"}}]),
        json!([{"delayMs": -1}]),
    ] {
        assert!(rules.replace(&malformed).is_err(), "{malformed}");
    }
    assert_eq!(take(&rules, Operation::ReadAccount, "/"), Some(503));
    rules.replace(&json!([])).expect("an empty list");
    assert_eq!(take(&rules, Operation::ReadAccount, "/"), None);
}
