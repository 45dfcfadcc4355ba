use super::*;

#[test]
fn only_names_of_this_machine_need_no_fingerprint() {
    let own = ["build-7.example".to_owned()];
    for name in [
        "localhost",
        "127.0.0.1",
        "::1",
        "cosmos",
        "db.localhost",
        "build-7.example",
        "192.168.1.7",
        "host.docker.internal",
    ] {
        assert!(is_of_this_machine(name, &own), "{name}");
    }
    for name in [
        "bank.example",
        "*.example",
        "*",
        "203.0.113.7",
        "2001:db8::1",
        "build-7.example.com",
    ] {
        assert!(!is_of_this_machine(name, &own), "{name}");
    }
}

#[test]
fn fingerprints_may_be_written_as_openssl_prints_them() {
    assert_eq!(normal("AB:cd:09"), "abcd09");
}
