use super::*;

#[test]
fn routes_of_the_admin_api_are_found_by_verb_and_whole_path() {
    let needs = |method: Method, path: &str| key_for(&method, &path.split('/').collect::<Vec<_>>());
    assert_eq!(needs(Method::GET, "health"), None);
    assert_eq!(needs(Method::POST, "health"), Some(Access::Full));
    assert_eq!(needs(Method::GET, "health/more"), Some(Access::Full));
    assert_eq!(needs(Method::POST, "dbs/d/colls/c/query"), Some(Access::ReadOnly));
    assert_eq!(needs(Method::POST, "dbs/d/colls/query/import"), Some(Access::Full));
    assert_eq!(needs(Method::PUT, "dbs/d/colls/c/query"), Some(Access::Full));
    assert_eq!(needs(Method::GET, "nowhere"), Some(Access::Full));
}

#[test]
fn every_route_is_found_at_its_path_and_by_its_method_alone() {
    for route in &ROUTES {
        let path = route
            .path
            .replace("{db}", "d")
            .replace("{c}", "c")
            .replace("{name}", "n");
        let segments: Vec<&str> = path.split('/').collect();
        let found = at(&segments).filter(|found| found.method == route.method);
        assert_eq!(
            found.map(|found| found.path).collect::<Vec<_>>(),
            [route.path],
            "{} {path}",
            route.method
        );
    }
    assert_eq!(at(&["dbs", "d", "colls", "c"]).count(), 0);
    assert_eq!(at(&[]).count(), 0);
}
