//! The signatures were made with Python's `hmac` over the payload of cosmos-rest §2.1. They are from 2017, so an accepted one gives a 403 for its
//! date, and a refused one a 401.

use http::Request;

use super::*;
use bolide_model::account_key::{AccountKey, WELL_KNOWN_KEY};

const DATE: &str = "Thu, 27 Apr 2017 00:51:12 GMT";
/// For `GET /dbs/ToDoList`.
const SIGNATURE: &str = "mM0rMK/7o1MZhQwDitGRoGisPRPx09os/86Jk0YwquY=";

fn keys() -> Keys {
    Keys::new(AccountKey::parse(WELL_KNOWN_KEY).expect("the emulator's key"))
}

fn status(method: &str, path: &str, headers: &[(&str, &str)]) -> Result<Sender, u16> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (head, ()) = request.body(()).expect("the test builds a valid request").into_parts();
    let route = Route::parse(head.uri.path()).expect("the path decodes");
    authenticate(&keys(), &head, &route, |_| false).map_err(|failure| failure.status.http.as_u16())
}

fn signed(method: &str, path: &str, signature: &str) -> Result<Sender, u16> {
    let token = format!("type=master&ver=1.0&sig={signature}");
    status(method, path, &[("x-ms-date", DATE), ("authorization", &token)])
}

#[test]
fn links_may_be_signed_in_every_spelling() {
    for (method, path, signature) in [
        ("GET", "/", "gFB1bRB/PLJTG3bCgMuoVgNzOyFvZAamzEtLuSITjRc="),
        ("GET", "/dbs/ToDoList/", SIGNATURE),
        // decoded, and as it is in the path
        (
            "POST",
            "/dbs/d/colls/c%20d/docs",
            "xiL8SOoYbxRrl1suiWkgQqRDQZpFlv211sNvPLdK+gQ=",
        ),
        (
            "POST",
            "/dbs/d/colls/c%20d/docs",
            "3LYHe9wCC36hxGs0E5ADtncvMWDEHiThO+AMs9c8/cI=",
        ),
        // by resource id: only the last one, in lower case or as it is
        (
            "GET",
            "/dbs/SnxPAA==/colls/SnxPAOM2VfM=/pkranges",
            "N3M7NuuX26VjmmaheGUQpdT0rlD/FTS4Dl4dDlCmv+A=",
        ),
        (
            "GET",
            "/dbs/SnxPAA==/colls/SnxPAOM2VfM=/pkranges",
            "grOTAsQR1jMcdSxL0LeT6vm2jX1RkawDi/gyl3T+WHc=",
        ),
        ("PUT", "/offers/bQ1F", "a28FgZvKMPvv+4t1EfmFpoWMi2Z60+ahyIam3pFfSBI="),
    ] {
        assert_eq!(signed(method, path, signature), Err(403), "{method} {path}");
    }
}

#[test]
fn a_signature_is_good_for_one_verb_and_one_resource() {
    for (method, path) in [
        ("DELETE", "/dbs/ToDoList"),
        ("GET", "/dbs/todolist"),
        ("GET", "/dbs/ToDoList/colls"),
        ("GET", "/dbs"),
    ] {
        assert_eq!(signed(method, path, SIGNATURE), Err(401), "{method} {path}");
    }
}

#[test]
fn the_date_header_serves_where_the_other_is_missing() {
    let token = "type=master&ver=1.0&sig=DVsspIhVN8ZjQpXls0TzoncDTcCZbiuKYV+rJtl0xQ8=";
    assert_eq!(
        status("GET", "/dbs/ToDoList", &[("date", DATE), ("authorization", token)]),
        Err(403)
    );
    assert_eq!(status("GET", "/dbs/ToDoList", &[("authorization", token)]), Err(401));
}

#[test]
fn tokens_are_percent_decoded_in_either_case_and_a_plus_stays() {
    for token in [
        "type%3Dmaster%26ver%3D1.0%26sig%3DmM0rMK%2F7o1MZhQwDitGRoGisPRPx09os%2F86Jk0YwquY%3D",
        "type%3dmaster%26ver%3d1.0%26sig%3dmM0rMK/7o1MZhQwDitGRoGisPRPx09os%2f86Jk0YwquY%3d",
    ] {
        assert_eq!(
            status("GET", "/dbs/ToDoList", &[("x-ms-date", DATE), ("authorization", token)]),
            Err(403),
            "{token}"
        );
    }
    let with_plus = "type=master&ver=1.0&sig=xiL8SOoYbxRrl1suiWkgQqRDQZpFlv211sNvPLdK+gQ=";
    let headers = [("x-ms-date", DATE), ("authorization", with_plus)];
    assert_eq!(status("POST", "/dbs/d/colls/c%20d/docs", &headers), Err(403));
}

#[test]
fn a_date_may_be_lower_case_but_not_nonsense() {
    let lower = DATE.to_ascii_lowercase();
    let token = format!("type=master&ver=1.0&sig={SIGNATURE}");
    assert_eq!(
        status(
            "GET",
            "/dbs/ToDoList",
            &[("x-ms-date", &lower), ("authorization", &token)]
        ),
        Err(403)
    );
    assert!(parse_http_date(&lower).is_some());
    for nonsense in [
        "",
        "yesterday",
        "thu, 27 apr 2017 00:51:12",
        "2017-04-27t00:51:12z is no such date",
    ] {
        assert!(parse_http_date(nonsense).is_none(), "{nonsense}");
    }
}

#[test]
fn malformed_tokens_are_refused() {
    for token in [
        "",
        "Bearer x",
        "type=master",
        "type=master&sig=",
        "type=other&ver=1.0&sig=x",
        "type=master&ver=1.0&sig=%FF",
        "type=resource&ver=1&sig=x",
    ] {
        assert_eq!(
            status("GET", "/", &[("x-ms-date", DATE), ("authorization", token)]),
            Err(401),
            "{token}"
        );
    }
    assert_eq!(status("GET", "/", &[]), Err(401));
}

#[test]
fn a_mismatch_shows_the_text_that_the_server_signed() {
    let request = Request::get("/dbs/a%20b")
        .header("x-ms-date", DATE)
        .header("authorization", "type=master&ver=1.0&sig=AAAA");
    let (head, ()) = request.body(()).expect("valid").into_parts();
    let route = Route::parse(head.uri.path()).expect("the path decodes");
    let failure = authenticate(&keys(), &head, &route, |_| false).expect_err("no signature");
    let payload = r"get\ndbs\ndbs/a b\nthu, 27 apr 2017 00:51:12 gmt\n\n";
    assert!(failure.message.contains(payload), "{}", failure.message);
}

/// The emulator's form of a token: claims, and the account key instead of a signature.
fn jwt(key: &str, claims: &str) -> String {
    let part = |text: &str| JWT_BASE64.encode(text).trim_end_matches('=').to_owned();
    format!("type=aad&ver=1.0&sig={}.{}.{}", part("{}"), part(claims), part(key))
}

#[test]
fn the_emulators_token_has_the_rights_of_its_key_while_it_is_valid() {
    let always = r#"{"nbf":0,"exp":99999999999}"#;
    assert_eq!(
        status("GET", "/", &[("authorization", &jwt(WELL_KNOWN_KEY, always))]),
        Ok(Sender::Key(Access::Full))
    );
    for (key, claims) in [
        ("another key", always),
        (WELL_KNOWN_KEY, r#"{"nbf":0,"exp":1}"#),
        (WELL_KNOWN_KEY, r#"{"nbf":99999999998,"exp":99999999999}"#),
        (WELL_KNOWN_KEY, r#"{"nbf":0}"#),
        (WELL_KNOWN_KEY, "no claims"),
    ] {
        assert_eq!(
            status("GET", "/", &[("authorization", &jwt(key, claims))]),
            Err(401),
            "{key} {claims}"
        );
    }
    assert_eq!(
        status("GET", "/", &[("authorization", "type=aad&ver=1.0&sig=a.b")]),
        Err(401)
    );
}

#[test]
fn the_admin_api_takes_a_bearer_key() {
    let access = |authorization: &str| {
        let request = Request::get("/_bolide/clock").header("authorization", authorization);
        let (head, ()) = request.body(()).expect("valid").into_parts();
        authenticate_admin(&keys(), &head).map_err(|failure| failure.status.http.as_u16())
    };
    assert_eq!(access(&format!("Bearer {WELL_KNOWN_KEY}")), Ok(Access::Full));
    assert_eq!(access(&format!("bearer {WELL_KNOWN_KEY}")), Ok(Access::Full));
    assert_eq!(access("Bearer c2VjcmV0"), Err(401));
    assert_eq!(access(WELL_KNOWN_KEY), Err(401));
}
