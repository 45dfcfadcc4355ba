use super::*;

#[test]
fn routes_of_the_admin_api_are_told_by_verb_and_whole_path() {
    let needs = |method: Method, path: &str| key_for(&method, &path.split('/').collect::<Vec<_>>());
    assert_eq!(needs(Method::GET, "health"), None);
    assert_eq!(needs(Method::POST, "health"), Some(Access::Full));
    assert_eq!(needs(Method::GET, "health/more"), Some(Access::Full));
    assert_eq!(needs(Method::POST, "dbs/d/colls/c/query"), Some(Access::ReadOnly));
    assert_eq!(needs(Method::POST, "dbs/d/colls/query/import"), Some(Access::Full));
    assert_eq!(needs(Method::PUT, "dbs/d/colls/c/query"), Some(Access::Full));
    assert_eq!(needs(Method::GET, "nowhere"), Some(Access::Full));
}
