use super::*;

fn parse(path: &str) -> Route<'_> {
    Route::parse(path).expect("the path decodes")
}

#[test]
fn slashes_at_the_ends_do_not_matter() {
    for path in [
        "/dbs/a/colls/b/docs/c",
        "/dbs/a/colls/b/docs/c/",
        "//dbs/a/colls/b/docs/c",
    ] {
        let route = parse(path);
        assert_eq!(route.kind, PathKind::Item, "{path}");
        assert_eq!(
            (&*route.database, &*route.container, &*route.leaf),
            ("a", "b", "c"),
            "{path}"
        );
    }
    assert_eq!(parse("/").kind, PathKind::Account);
    assert_eq!(parse("").kind, PathKind::Account);
}

#[test]
fn segments_are_decoded_after_splitting() {
    let route = parse("/dbs/%20a%2Fb/colls/%E6%97%A5/docs/50%25");
    assert_eq!(
        (&*route.database, &*route.container, &*route.leaf),
        (" a/b", "日", "50%")
    );
}

#[test]
fn bytes_that_are_not_utf8_are_refused() {
    assert!(Route::parse("/dbs/%FF").is_none());
}

#[test]
fn instances_sign_their_link_and_feeds_their_parents() {
    let signed = |path| {
        let signed = parse(path).signed();
        (signed.resource_type, signed.link)
    };
    assert_eq!(signed("/"), ("", ""));
    assert_eq!(signed("/dbs"), ("dbs", ""));
    assert_eq!(signed("/dbs/a/"), ("dbs", "dbs/a"));
    assert_eq!(signed("/dbs/a/colls"), ("colls", "dbs/a"));
    assert_eq!(signed("/dbs/a/colls/b/docs/c"), ("docs", "dbs/a/colls/b/docs/c"));
    assert_eq!(signed("/dbs/a/colls/b/docs/c/d"), ("docs", "dbs/a/colls/b/docs/c/d"));
    assert_eq!(signed("/dbs/a/colls/b/pkranges"), ("pkranges", "dbs/a/colls/b"));
    assert_eq!(
        signed("/dbs/a/colls/b/operations/partitionkeydelete"),
        ("colls", "dbs/a/colls/b")
    );
    assert_eq!(signed("/dbs/a/colls/b/sprocs/s"), ("sprocs", "dbs/a/colls/b/sprocs/s"));
    assert_eq!(signed("/offers/xyz"), ("offers", "offers/xyz"));
    assert_eq!(signed("/dbs/a/users/u"), ("users", "dbs/a/users/u"));
    assert_eq!(signed("/dbs/a/users/u/permissions"), ("permissions", "dbs/a/users/u"));
}

#[test]
fn users_are_no_containers() {
    let route = parse("/dbs/a/users/b/permissions/c");
    assert_eq!(
        (
            route.kind,
            &*route.database,
            &*route.container,
            &*route.user,
            &*route.leaf
        ),
        (PathKind::Permission, "a", "", "b", "c")
    );
}

#[test]
fn an_id_with_a_bare_slash_leads_nowhere() {
    let route = parse("/dbs/a/colls/b/docs/c/d");
    assert_eq!((route.kind, &*route.leaf), (PathKind::Item, ""));
}

#[test]
fn escaped_slashes_belong_to_the_id_and_to_what_is_signed() {
    for (path, id) in [
        ("/dbs/a/colls/b/docs/c%2Fd", "c/d"),
        ("/dbs/a/colls/b/docs/%2f", "/"),
        ("/dbs/a/colls/b/docs/c%2F/", "c/"),
        ("/dbs/a/colls/b/docs/c%5Cd", "c\\d"),
        ("/dbs/a/colls/b/docs/..%2F..%2Fsprocs%2Fs", "../../sprocs/s"),
    ] {
        let route = parse(path);
        assert_eq!((route.kind, &*route.leaf), (PathKind::Item, id), "{path}");
        let signed = route.signed();
        assert_eq!(signed.resource_type, "docs", "{path}");
        assert_eq!(signed.link, path.trim_matches('/'), "{path}");
    }
}
