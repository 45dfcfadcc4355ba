use serde_json::json;

use super::*;

#[test]
fn packages_for_building_and_testing_are_left_out() {
    let package = |name: &str, source: Value| json!({"id": name, "name": name, "version": "1.0.0", "source": source});
    let dependency = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
    let metadata = json!({
        "packages": [
            package("bolide-server", Value::Null), package("own", Value::Null), package("linked", json!("registry")),
            package("deep", json!("registry")), package("for-tests", json!("registry")), package("for-builds", json!("registry")),
            package("unrelated", json!("registry")),
        ],
        "resolve": {"nodes": [
            {"id": "bolide-server", "deps": [
                dependency("own", Value::Null), dependency("for-tests", json!("dev")), dependency("for-builds", json!("build")),
            ]},
            {"id": "own", "deps": [dependency("linked", Value::Null)]},
            {"id": "linked", "deps": [dependency("deep", Value::Null), dependency("linked", Value::Null)]},
        ]},
    });
    let names: Vec<&str> = linked(&metadata)
        .iter()
        .filter_map(|package| package["name"].as_str())
        .collect();
    assert_eq!(names, ["deep", "linked"]);
}
