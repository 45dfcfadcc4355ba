use super::*;

#[test]
fn an_endpoint_can_be_connected_to() {
    for (host, expected) in [
        ("127.0.0.1", "127.0.0.1:8081"),
        ("0.0.0.0", "127.0.0.1:8081"),
        ("::", "127.0.0.1:8081"),
        ("*", "127.0.0.1:8081"),
        ("::1", "[::1]:8081"),
        ("db.example", "db.example:8081"),
    ] {
        assert_eq!(endpoint(host, 8081), expected);
    }
}
