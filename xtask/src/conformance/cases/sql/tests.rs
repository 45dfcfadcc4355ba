use super::*;

#[test]
fn an_error_document_needs_its_activity() {
    let body = |message: &str| json!({"code": "BadRequest", "message": message});
    assert!(embedded(&body("Message: {\"errors\":[]}\r\nActivityId: 1")).is_some());
    assert!(embedded(&body("Message: {\"errors\":[]}")).is_none());
    assert!(embedded(&body("{\"errors\":[]}\r\nActivityId: 1")).is_none());
}

#[test]
fn dates_have_seven_digits_and_an_ending() {
    assert!(is_date_time("2023-11-14T22:13:20.0000000Z"));
    assert!(!is_date_time("2023-11-14T22:13:20.000000Z"));
    assert!(!is_date_time("2023-11-14 22:13:20.0000000Z"));
}
