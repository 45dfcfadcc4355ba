use super::*;

#[test]
fn parameters_have_a_name_with_an_at_sign_and_a_json_value() {
    assert_eq!(parameter("@n=[1, 2]"), Ok(("@n".to_owned(), serde_json::json!([1, 2]))));
    assert_eq!(parameter("@n=\"a=b\""), Ok(("@n".to_owned(), serde_json::json!("a=b"))));
    for text in ["n=1", "@=1", "@n", "@n=ada"] {
        assert!(parameter(text).is_err(), "{text}");
    }
}
