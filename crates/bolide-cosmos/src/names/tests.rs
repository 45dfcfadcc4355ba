use std::net::{Ipv4Addr, SocketAddr};

use http::Request;

use super::*;
use crate::listener::Purpose;

fn head(uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::get(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).expect("a valid request").into_parts().0
}

fn listener(is_tls: bool) -> Listener {
    Listener {
        purpose: Purpose::Database,
        is_tls,
        local: SocketAddr::from((Ipv4Addr::LOCALHOST, 8081)),
    }
}

fn listed(emulator: bool) -> Names {
    Names::Listed {
        names: vec!["Build-7.corp.example".to_owned(), "build-7".to_owned()],
        emulator,
    }
}

fn is_answered(names: &Names, host: &str) -> bool {
    check_name(names, &head("/", &[("host", host)])).is_ok()
}

#[test]
fn with_the_well_known_key_only_names_of_the_machine_are_answered() {
    for host in [
        "localhost",
        "LOCALHOST.:8081",
        "127.0.0.1:8081",
        "127.8.8.8",
        "[::1]:8081",
        "[::ffff:127.0.0.1]",
        "build-7:9",
        "build-7.CORP.example.",
    ] {
        assert!(is_answered(&listed(false), host), "{host}");
        assert!(is_answered(&listed(true), host), "{host}");
    }
    for host in [
        "evil.example",
        "evil.example:8081",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "x@localhost",
        "localhost:8081@evil.example",
        "localhost:x",
        "[::1",
        "::1",
        "..",
    ] {
        assert!(!is_answered(&listed(false), host), "{host}");
        assert!(!is_answered(&listed(true), host), "{host}");
        assert!(is_answered(&Names::All, host), "{host}");
    }
}

#[test]
fn an_emulator_also_answers_to_names_in_networks_of_containers() {
    for host in [
        "10.0.0.7:8081",
        "[fd00::7]",
        "cosmos",
        "app.localhost",
        "host.docker.internal:8081",
        "Host.Containers.Internal",
    ] {
        assert!(is_answered(&listed(true), host), "{host}");
        assert!(!is_answered(&listed(false), host), "{host}");
    }
}

#[test]
fn every_name_of_the_host_is_checked() {
    let refused = |head: &Parts| check_name(&listed(false), head).is_err();
    assert!(refused(&head("http://evil.example/dbs", &[])));
    assert!(refused(&head("http://evil.example/dbs", &[("host", "localhost")])));
    assert!(refused(&head("http://localhost/dbs", &[("host", "evil.example")])));
    assert!(refused(&head("/", &[("host", "localhost"), ("host", "evil.example")])));
    assert!(refused(&head("/", &[("host", "localhost"), ("host", "localhost")])));
    assert!(!refused(&head(
        "http://localhost:8081/dbs",
        &[("host", "localhost:8081")]
    )));
    assert!(!refused(&head("/dbs", &[])), "no browser leaves the name out");
}

#[test]
fn the_refusal_names_the_option() {
    let refusal = check_name(&listed(false), &head("/", &[("host", "evil.example")])).expect_err("not ours");
    assert_eq!(refusal.status.http, StatusCode::BAD_REQUEST);
    assert!(refusal.message.contains("--allow-host"), "{}", refusal.message);
}

#[test]
fn pages_of_other_origins_are_refused() {
    let allowed = Origins::parse(&["https://App.example".to_owned()]).expect("an origin");
    let check = |origin: &str, is_tls| {
        let head = head("/", &[("host", "localhost:8081"), ("origin", origin)]);
        check_origin(&allowed, &head, listener(is_tls)).map(|page| page.is_some())
    };
    assert_eq!(check("http://localhost:8081", false), Ok(false), "its own");
    assert_eq!(check("https://localhost:8081", true), Ok(false), "its own");
    assert_eq!(check("https://app.example", false), Ok(true));
    assert_eq!(check("https://app.example:443", false), Ok(true));
    for other in [
        "http://localhost",
        "http://localhost:8082",
        "https://localhost:8081",
        "http://app.example",
        "https://app.example.evil.example",
        "http://evil.example",
        "null",
        "",
        "file://",
    ] {
        assert!(check(other, false).is_err(), "{other}");
    }
}

#[test]
fn requests_without_origin_are_not_from_pages_that_could_read_the_answer() {
    let head = head("/", &[("host", "localhost")]);
    assert_eq!(check_origin(&Origins::default(), &head, listener(false)), Ok(None));
}

#[test]
fn origins_are_scheme_host_and_port() {
    for text in [
        "null",
        "*",
        "app.example",
        "https://",
        "https://a/b",
        "ftp://a",
        "https://u@a",
    ] {
        assert!(Origins::parse(&[text.to_owned()]).is_err(), "{text}");
    }
    assert!(Origins::parse(&["http://[::1]:3000".to_owned()]).is_ok());
}

#[test]
fn a_configured_host_replaces_that_of_the_request_and_keeps_its_port() {
    let shown = |configured: &str, host: &str, is_tls| {
        let configured = Endpoint::of_host(configured).expect("a host");
        endpoint(Some(&configured), &head("/", &[("host", host)]), listener(is_tls))
    };
    assert_eq!(shown("cosmos", "localhost:49152", false), "http://cosmos:49152");
    assert_eq!(shown("10.0.0.7", "[::1]:8081", true), "https://10.0.0.7:8081");
    assert_eq!(shown("fd00::7", "localhost", true), "https://[fd00::7]");
    for other in ["", "cosmos:8081", "http://cosmos", "cosmos:", "[::1", "a b", "cosmos/"] {
        assert_eq!(Endpoint::of_host(other), Err(other.to_owned()));
    }
}

#[test]
fn the_explorer_shows_the_port_of_the_database() {
    let shown = |configured: Option<&Endpoint>, is_tls| {
        let head = head("/", &[("host", "db.local:1234")]);
        endpoint_on_port(configured, &head, listener(false), is_tls, 8081)
    };
    assert_eq!(shown(None, false), "http://db.local:8081");
    assert_eq!(shown(None, true), "https://db.local:8081");
    let host = Endpoint::of_host("cosmos").expect("a host");
    assert_eq!(shown(Some(&host), false), "http://cosmos:8081");
    let whole = Endpoint::parse("https://db.example").expect("a URL");
    assert_eq!(shown(Some(&whole), false), "https://db.example");
}

#[test]
fn an_address_always_has_a_port() {
    for (endpoint, expected) in [
        ("https://db.example", "db.example:443"),
        ("https://db.example/", "db.example:443"),
        ("http://db.example", "db.example:80"),
        ("https://[::1]", "[::1]:443"),
        ("https://[::1]:8081", "[::1]:8081"),
        ("https://localhost:8081", "localhost:8081"),
    ] {
        assert_eq!(with_port(endpoint), expected);
    }
}
