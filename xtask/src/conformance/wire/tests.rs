use serde_json::json;

use super::*;

/// The example of the REST reference, "Access control on Cosmos DB resources".
#[test]
fn the_payload_has_five_lines_with_only_the_link_in_its_own_case() {
    let target = Target::instance(&[("dbs", "ToDoList")]);
    let payload = payload_to_sign("GET", &target, "Thu, 27 Apr 2017 00:51:12 GMT");
    assert_eq!(payload, "get\ndbs\ndbs/ToDoList\nthu, 27 apr 2017 00:51:12 gmt\n\n");
}

/// The expected text was computed with `openssl dgst -sha256 -mac HMAC`.
#[test]
fn the_signature_is_the_hmac_of_the_payload_under_the_decoded_key() {
    let payload = "get\ndbs\ndbs/ToDoList\nthu, 27 apr 2017 00:51:12 gmt\n\n";
    assert_eq!(signature(payload), "mM0rMK/7o1MZhQwDitGRoGisPRPx09os/86Jk0YwquY=");
}

#[test]
fn a_feed_is_signed_by_its_parent_and_an_instance_by_itself() {
    let container: [Level<'_>; 2] = [("dbs", "d"), ("colls", "c")];
    let feed = Target::feed(&container, "docs");
    assert_eq!(
        (feed.path.as_str(), feed.resource_type, feed.link.as_str()),
        ("/dbs/d/colls/c/docs", "docs", "dbs/d/colls/c")
    );
    let item = Target::instance(&[container[0], container[1], ("docs", "a b/ü")]);
    assert_eq!(item.path, "/dbs/d/colls/c/docs/a%20b%2F%C3%BC");
    assert_eq!(item.link, "dbs/d/colls/c/docs/a b/ü");
}

#[test]
fn partition_keys_are_ascii_on_the_wire() {
    let key_of = |value| {
        Request::admin(http::Method::GET, "")
            .partition_key(&value)
            .headers
            .remove(0)
            .1
    };
    assert_eq!(key_of(json!("é😀")), r#"["\u00e9\ud83d\ude00"]"#);
    assert_eq!(key_of(json!({})), "[{}]");
}
