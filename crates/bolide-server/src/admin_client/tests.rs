use super::*;

#[test]
fn errors_of_queries_become_sentences() {
    let document = r#"{"errors":[{"severity":"Error","location":{"start":7,"end":8},"code":"SC2001","message":"Identifier 'x' could not be resolved."}]}"#;
    let expected = "SC2001: Identifier 'x' could not be resolved. (characters 7 to 8)";
    assert_eq!(sentence(document).as_deref(), Some(expected));
    assert_eq!(sentence(r#"{"Errors":["No."]}"#).as_deref(), Some("No."));
    assert_eq!(sentence("no JSON"), None);
}
