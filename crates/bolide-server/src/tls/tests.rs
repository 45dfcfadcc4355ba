use super::*;

#[test]
fn a_made_certificate_can_be_used() {
    let certificate = Certificate::make("127.0.0.1", &[]).expect("it can be made");
    assert!(certificate.acceptor().is_ok());
}

#[test]
fn every_name_of_this_machine_occurs_once() {
    let names = subject_names("db.example", &["cosmos".to_owned(), "db.example".to_owned()]);
    for name in ["localhost", "127.0.0.1", "::1", "db.example", "cosmos"] {
        assert_eq!(names.iter().filter(|known| *known == name).count(), 1, "{name}");
    }
    assert!(!subject_names("0.0.0.0", &[]).iter().any(|name| name == "0.0.0.0"));
}

#[test]
fn a_kept_certificate_is_checked_for_the_names_that_are_asked_for() {
    let names = ["cosmos", "*.db.example", "10.1.2.3", "fd00::7"].map(str::to_owned);
    let certificate = Certificate::make("127.0.0.1", &names).expect("it can be made");
    assert_eq!(certificate.check_names(&names), Ok(()));
    assert_eq!(certificate.check_names(&["localhost".to_owned()]), Ok(()));
    for other in ["cosmos2", "*.example", "10.1.2.4"] {
        let why = certificate.check_names(&[other.to_owned()]).expect_err(other);
        assert!(why.contains(other), "{why}");
    }
}
