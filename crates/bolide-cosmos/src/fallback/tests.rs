use super::*;

#[test]
fn answers_have_the_shape_of_errors() {
    let elsewhere = Request::get("/dbs").body(()).expect("valid");
    for (response, status) in [
        (starting(&elsewhere, Purpose::Database), 503),
        (panicked(), 500),
        (unreadable(StatusCode::BAD_REQUEST), 400),
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
    let response = starting(&health, Purpose::Database);
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()[&headers::CONTENT_TYPE_OPTIONS], "nosniff");
    assert_eq!(json(response)["status"], "starting");
}

#[test]
fn the_health_port_tells_a_living_server_from_a_ready_one() {
    for (path, status) in [("/alive", 200), ("/ready", 503), ("/status", 503), ("/dbs", 404)] {
        let request = Request::get(path).body(()).expect("valid");
        assert_eq!(starting(&request, Purpose::Health).status(), status, "{path}");
    }
}

fn json(response: Response<Payload>) -> serde_json::Value {
    let Payload::Whole(body) = response.into_body() else {
        panic!("the answer is whole")
    };
    serde_json::from_slice(&body).expect("JSON")
}
