use super::*;

#[test]
fn a_name_that_was_given_here_is_recognised() {
    let name = added_name("0123456789abcdef0123456789abcdef");
    assert_eq!(name, "bolide-0123456789abcdef");
    assert!(is_added_name(&name));
    for other in [
        "bolide-",
        "bolide-ca",
        "bolide-0123456789abcdeg",
        "company-0123456789abcdef",
    ] {
        assert!(!is_added_name(other), "{other}");
    }
}
