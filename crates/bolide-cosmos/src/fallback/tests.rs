use super::*;

#[test]
fn answers_have_the_shape_of_errors() {
    let elsewhere = Request::get("/dbs").body(()).expect("valid");
    for (response, status) in [
        (starting(&elsewhere), 503),
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
    let response = starting(&health);
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()[&headers::CONTENT_TYPE_OPTIONS], "nosniff");
    assert_eq!(json(response)["status"], "starting");
}

fn json(response: Response<Payload>) -> serde_json::Value {
    let Payload::Whole(body) = response.into_body() else {
        panic!("the answer is whole")
    };
    serde_json::from_slice(&body).expect("JSON")
}
