use super::*;

#[test]
fn parameters_have_a_name_with_an_at_sign_and_a_json_value() {
    assert_eq!(parameter("@n=[1, 2]"), Ok(("@n".to_owned(), serde_json::json!([1, 2]))));
    assert_eq!(parameter("@n=\"a=b\""), Ok(("@n".to_owned(), serde_json::json!("a=b"))));
    for text in ["n=1", "@=1", "@n", "@n=ada"] {
        assert!(parameter(text).is_err(), "{text}");
    }
}

#[test]
fn errors_of_queries_become_sentences() {
    let document = r#"{"errors":[{"severity":"Error","location":{"start":7,"end":8},"code":"SC2001","message":"Identifier 'x' could not be resolved."}]}"#;
    let expected = "SC2001: Identifier 'x' could not be resolved. (characters 7 to 8)";
    assert_eq!(sentence(document).as_deref(), Some(expected));
    assert_eq!(sentence(r#"{"Errors":["No."]}"#).as_deref(), Some("No."));
    assert_eq!(sentence("no JSON"), None);
}
