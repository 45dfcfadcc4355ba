use http::HeaderName;

use super::*;

#[test]
fn versions_are_dates_from_the_first_on() {
    let check = |version| {
        check_version(&HeaderMap::from_iter([(
            headers::VERSION.clone(),
            HeaderValue::from_static(version),
        )]))
    };
    for version in ["2015-12-16", "2020-07-15", "2020-11-05", ""] {
        assert!(check(version).is_ok(), "{version}");
    }
    for version in ["2015-12-15", "2020-7-15", "2020-07-15-1", "latest", "20200715"] {
        assert!(check(version).is_err(), "{version}");
    }
}

#[test]
fn a_coded_body_is_refused_with_what_it_is() {
    let check = |name: &'static str, values: &[&'static str]| {
        let name = HeaderName::from_static(name);
        let lines = values
            .iter()
            .map(|value| (name.clone(), HeaderValue::from_static(value)));
        let checked = check_codings(&lines.collect());
        checked.map_or_else(|failure| failure.status.http.as_u16(), |()| 200)
    };
    for (values, status) in [
        (&[][..], 200),
        (&["chunked"], 200),
        (&[" Chunked ,"], 200),
        (&["gzip, chunked"], 501),
        (&["gzip", "chunked"], 501),
        (&["chunked", "chunked"], 501),
        (&["identity, chunked"], 501),
    ] {
        assert_eq!(check("transfer-encoding", values), status, "{values:?}");
    }
    for (values, status) in [
        (&["identity"][..], 200),
        (&[""], 200),
        (&["gzip"], 415),
        (&["identity", "br"], 415),
        (&["x"], 415),
    ] {
        assert_eq!(check("content-encoding", values), status, "{values:?}");
    }
}

#[test]
fn durations_are_milliseconds_with_three_decimal_places() {
    for (micros, shown) in [
        (0, "0.000"),
        (7, "0.007"),
        (1_050, "1.050"),
        (123_456_789, "123456.789"),
        (u64::MAX, "18446744073709551.615"),
    ] {
        assert_eq!(milliseconds(Duration::from_micros(micros)), shown);
    }
}

#[test]
fn names_survive_a_header_and_unescaping() {
    assert_eq!(
        utf8_percent_encode("a b%ü-Ω", NAME_ESCAPES).to_string(),
        "a%20b%25%C3%BC-%CE%A9"
    );
}

#[test]
fn stand_ins_have_the_shape_of_errors() {
    let elsewhere = Request::get("/dbs").body(()).expect("valid");
    for (response, status) in [
        (stand_in::starting(&elsewhere), 503),
        (stand_in::panicked(), 500),
        (stand_in::unreadable(StatusCode::BAD_REQUEST), 400),
    ] {
        assert_eq!(response.status(), status);
        assert!(response.headers().contains_key(&headers::ACTIVITY_ID));
        assert_eq!(response.headers()[&headers::CONTENT_TYPE_OPTIONS], "nosniff");
        let body = json(response);
        assert!(body["code"].is_string() && body["message"].is_string(), "{body}");
    }
}

#[test]
fn health_says_that_the_store_is_being_recovered() {
    let health = Request::get("/_bolide/health").body(()).expect("valid");
    let response = stand_in::starting(&health);
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()[&headers::CONTENT_TYPE_OPTIONS], "nosniff");
    assert_eq!(json(response)["status"], "starting");
}

fn json(response: Response<Payload>) -> serde_json::Value {
    let Payload::Whole(body) = response.into_body() else {
        panic!("a stand-in is whole")
    };
    serde_json::from_slice(&body).expect("JSON")
}
