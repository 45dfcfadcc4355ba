//! The names under which the server answers, and the web pages that may send requests to it.

use std::io::Write as _;

use bolide_model::account_key::WELL_KNOWN_KEY;

use crate::client::{Client, Request, Response, create_container, create_item};
use crate::http2::{HEADERS, Http2, STATUS_200, STATUS_400};
use crate::listening::{certificate, tls_client};
use crate::server::Server;

const OWN_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZg==";

/// The `Accept` header of a browser.
const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// The requests that a page with a rebound name would send.
fn requests() -> [Request; 6] {
    [
        Request::get("/"),
        Request::get("/_bolide/metrics"),
        Request::get("/_bolide/health").unsigned(),
        Request::get("/_explorer/emulator.pem").unsigned(),
        Request::get("/_explorer/index.html").unsigned(),
        Request::get("/").unsigned().header("accept", BROWSER),
    ]
}

#[test]
fn with_the_well_known_key_a_rebound_name_reaches_nothing() {
    let server = Server::in_memory(&["--allow-host", "db.example"]);
    let mut client = server.client();
    for request in requests() {
        for host in ["localhost", "127.0.0.1:8081", "[::1]:8081", "DB.example.:99"] {
            client.send(&request.clone().host(host)).expect(200);
        }
        for host in [
            "evil.example",
            "evil.example:8081",
            "10.0.0.7",
            "cosmos",
            "app.localhost",
        ] {
            let refusal = client.send(&request.clone().host(host)).expect_error(400);
            assert!(refusal.text().contains("--allow-host"), "{}", refusal.text());
        }
        let twice = request.clone().header("host", "evil.example");
        client.send(&twice).expect_error(400);
    }
    let pem = certificate(&server);
    tls_client(&server, &pem, "localhost")
        .send(&Request::get("/").host("evil.example"))
        .expect_error(400);
}

#[test]
fn http2_names_the_server_in_its_own_way() {
    let server = Server::in_memory(&[]);
    let mut client = Http2::connect(&server, 65_535);
    for (stream, authority, status) in [(1, "localhost:8081", STATUS_200), (3, "evil.example", STATUS_400)] {
        client.get(stream, "/_bolide/health", authority);
        let response = client.receive_kind(HEADERS);
        assert_eq!((response.stream, response.payload[0]), (stream, status), "{authority}");
    }
}

#[test]
fn targets_with_a_host_are_looked_at_too() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    let health = |host: &str| Request::get(&format!("http://{host}/_bolide/health")).header("authorization", "");
    client.send(&health("localhost")).expect(200);
    client
        .send(&health("evil.example").host("evil.example"))
        .expect_error(400);
    client.send(&health("localhost").host("evil.example")).expect_error(400);
    client.send(&health("evil.example")).expect_error(400);
}

#[test]
fn with_a_key_of_ones_own_every_name_is_answered_and_followed() {
    let server = Server::in_memory(&["--key", OWN_KEY]);
    let root = server
        .client()
        .send(&Request::get("/").key(OWN_KEY).host("db.example:99"))
        .expect(200)
        .json();
    assert_eq!(
        root["writableLocations"][0]["databaseAccountEndpoint"],
        "http://db.example:99/"
    );
}

#[test]
fn an_emulator_answers_to_names_in_networks_of_containers() {
    let server = Server::in_memory(&["--emulator", "--health-port", "0", "--explorer-port", "0"]);
    let mut client = server.client();
    for host in ["10.0.0.7:8081", "cosmos", "app.localhost", "host.docker.internal"] {
        client.send(&Request::get("/").host(host)).expect(200);
    }
    client.send(&Request::get("/").host("evil.example")).expect_error(400);
}

#[test]
fn pages_of_other_origins_are_refused_whatever_they_know() {
    let own = Server::in_memory(&["--key", OWN_KEY]);
    let public = Server::in_memory(&[]);
    for (server, key) in [(&own, OWN_KEY), (&public, WELL_KNOWN_KEY)] {
        let mut client = server.client();
        for request in requests() {
            let from = |origin: &str| request.clone().key(key).host("localhost:8081").header("origin", origin);
            client.send(&from("http://localhost:8081")).expect(200);
            for origin in [
                "http://localhost:3000",
                "https://localhost:8081",
                "http://evil.example",
                "null",
            ] {
                let refusal = client.send(&from(origin)).expect_error(403);
                assert!(refusal.text().contains("--allow-origin"), "{}", refusal.text());
                assert!(refusal.header("access-control-allow-origin").is_none());
            }
        }
    }
}

#[test]
fn an_allowed_origin_may_ask_and_read_the_answer() {
    const APP: &str = "http://localhost:3000";
    let server = Server::in_memory(&["--allow-origin", APP]);
    let mut client = server.client();
    let asked = "authorization,x-ms-date,x-ms-version";
    let preflight = Request::new("OPTIONS", "/dbs")
        .unsigned()
        .header("origin", APP)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", asked);
    let allowed = client.send(&preflight).expect(204);
    assert_eq!(allowed.header("access-control-allow-origin"), Some(APP));
    assert_eq!(allowed.header("access-control-allow-headers"), Some(asked));
    assert!(
        allowed
            .header("access-control-allow-methods")
            .is_some_and(|methods| methods.contains("PATCH"))
    );
    let read = client.send(&Request::get("/").header("origin", APP)).expect(200);
    assert_eq!(read.header("access-control-allow-origin"), Some(APP));
    let refused = client
        .send(&Request::get("/").unsigned().header("origin", APP))
        .expect_error(401);
    assert_eq!(
        refused.header("access-control-allow-origin"),
        Some(APP),
        "errors can be read too"
    );
    client
        .send(&Request::get("/").header("origin", "http://localhost:3001"))
        .expect_error(403);
}

/// A browser that follows a link to stored text must not take it for a page or a script.
#[test]
fn every_answer_says_that_its_type_is_not_to_be_guessed() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    create_container(&mut client);
    create_item(&mut client, "a");
    let is_said = |response: &Response| response.header("x-content-type-options") == Some("nosniff");
    const DOCS: &str = "/dbs/d/colls/c/docs";
    for request in requests().into_iter().chain([
        Request::get(DOCS).pk(),
        Request::get(&format!("{DOCS}/a")).pk(),
        Request::get(&format!("{DOCS}/none")).pk(),
        Request::new("HEAD", "/dbs/d/colls/c"),
        Request::new("OPTIONS", "/dbs"),
        Request::new("DELETE", &format!("{DOCS}/a")).pk(),
        Request::get("/_bolide/dbs/d/colls/c/export"),
        Request::get("/dbs").unsigned(),
        Request::get("/").host("evil.example"),
        Request::get("/").header("origin", "http://evil.example"),
    ]) {
        let response = client.send(&request);
        assert!(is_said(&response), "{request:?}: {response:?}");
    }
    let mut stream = client.into_stream();
    stream.write_all(b"garbage\r\n\r\n").expect("sent");
    let unreadable = Client::over(stream).receive(false).expect("a response");
    assert!(is_said(&unreadable), "{unreadable:?}");
}

#[test]
fn a_browser_gets_the_explorer_and_other_programs_the_usual_responses() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    let page = Request::get("/").unsigned().header("accept", BROWSER);
    for request in [
        &page,
        &Request::get("/_explorer/").unsigned(),
        &Request::get("/_explorer/index.html"),
    ] {
        let page = client.send(&request.clone().host("localhost:8081")).expect(200);
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        assert!(page.text().contains("src=\"/_explorer/app.js\""), "{}", page.text());
    }
    client
        .send(&Request::get("/").header("accept", BROWSER))
        .expect(200)
        .json();
    client.send(&Request::get("/").unsigned()).expect_error(401);
    client
        .send(&Request::post("/_explorer/index.html", "").unsigned())
        .expect_error(401);
    for path in ["/_explorer/index.html", "/_explorer/session", "/_explorer/app.js"] {
        let foreign = Request::get(path).unsigned().header("origin", "http://evil.example");
        client.send(&foreign).expect_error(403);
    }
    let foreign = page.header("origin", "http://evil.example");
    client.send(&foreign).expect_error(403);
}

#[test]
fn the_explorer_may_load_and_ask_nothing_but_its_own_server() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    let policies: Vec<String> = (0..2)
        .map(|_| {
            let page = client.send(&Request::get("/_explorer/").unsigned()).expect(200);
            let policy = page.header("content-security-policy").expect("a policy").to_owned();
            assert!(
                !policy.contains("unsafe-") && policy.contains("default-src 'none'"),
                "{policy}"
            );
            assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
            let (_, nonce) = policy.split_once("'nonce-").expect("a nonce");
            let (nonce, _) = nonce.split_once('\'').expect("its end");
            assert!(page.text().contains(&format!("content=\"{nonce}\"")), "{}", page.text());
            assert_eq!(page.header("cross-origin-resource-policy"), Some("same-origin"));
            policy
        })
        .collect();
    assert_ne!(policies[0], policies[1], "each page has a nonce of its own");
}

#[test]
fn files_of_the_explorer_are_sent_as_small_as_possible_and_once() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    let app = Request::get("/_explorer/app.js").unsigned();
    let plain = client.send(&app).expect(200);
    assert_eq!(plain.header("content-type"), Some("text/javascript; charset=utf-8"));
    assert_eq!(plain.header("content-encoding"), None);
    let zipped = client
        .send(&app.clone().header("accept-encoding", "br, gzip"))
        .expect(200);
    assert_eq!(zipped.header("content-encoding"), Some("gzip"));
    assert!(zipped.body.len() * 2 < plain.body.len());
    let refused = client
        .send(&app.clone().header("accept-encoding", "gzip;q=0"))
        .expect(200);
    assert_eq!(refused.header("content-encoding"), None);
    let etag = plain.header("etag").expect("an etag").to_owned();
    for known in [etag.clone(), format!("W/{etag}"), format!("\"other\", {etag}")] {
        let again = client.send(&app.clone().header("if-none-match", &known)).expect(304);
        assert!(again.body.is_empty());
    }
    client.send(&app.header("if-none-match", "\"other\"")).expect(200);
    let licences = client
        .send(&Request::get("/_explorer/licences.md").unsigned())
        .expect(200);
    assert_eq!(licences.header("content-type"), Some("text/plain; charset=utf-8"));
    client
        .send(&Request::get("/_explorer/none.js").unsigned())
        .expect_error(404);
    client
        .send(&Request::get("/_explorer/..%2fCargo.toml").unsigned())
        .expect_error(404);
}

#[test]
fn the_first_view_of_the_explorer_is_less_than_300_kilobytes() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    let files = ["", "app.js", "index.css", "icon.svg", "session"];
    let sizes = files.map(|file| {
        let request = Request::get(&format!("/_explorer/{file}")).unsigned();
        client
            .send(&request.header("accept-encoding", "gzip"))
            .expect(200)
            .body
            .len()
    });
    assert!(sizes.iter().sum::<usize>() <= 300_000, "{sizes:?}");
}

#[test]
fn the_explorer_is_told_no_key_of_ones_own() {
    let own = Server::in_memory(&["--key", OWN_KEY]);
    let session = own
        .client()
        .send(&Request::get("/_explorer/session").unsigned())
        .expect(200);
    assert!(session.json()["key"].is_null(), "{}", session.text());
    let known = Server::in_memory(&[]);
    let request = Request::get("/_explorer/session").unsigned().host("localhost:8081");
    let session = known.client().send(&request).expect(200).json();
    assert_eq!(session["key"], WELL_KNOWN_KEY);
    assert_eq!(session["endpoint"], "http://localhost:8081");
}

#[test]
fn without_the_explorer_there_is_only_the_certificate() {
    let server = Server::in_memory(&["--no-explorer"]);
    let mut client = server.client();
    for path in ["/_explorer/", "/_explorer/app.js", "/_explorer/session"] {
        client.send(&Request::get(path).unsigned()).expect_error(404);
    }
    client
        .send(&Request::get("/_explorer/emulator.pem").unsigned())
        .expect(200);
    client
        .send(&Request::get("/").unsigned().header("accept", BROWSER))
        .expect_error(401);
}
