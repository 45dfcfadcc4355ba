use super::*;

#[test]
fn a_made_certificate_can_be_used() {
    let certificate = Certificate::make("127.0.0.1").expect("it can be made");
    assert!(certificate.acceptor().is_ok());
}

#[test]
fn every_name_of_this_machine_occurs_once() {
    let names = subject_names("db.example");
    for name in ["localhost", "127.0.0.1", "::1", "db.example"] {
        assert_eq!(names.iter().filter(|known| *known == name).count(), 1, "{name}");
    }
    assert!(!subject_names("0.0.0.0").iter().any(|name| name == "0.0.0.0"));
}
