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

#[test]
fn a_made_certificate_is_fit_to_be_trusted() {
    let certificate = Certificate::make("db.example", &[]).expect("it can be made");
    let chain = chain(&certificate.certificate).expect("PEM");
    let facts = CertificateFacts::of(&chain[0]).expect("a certificate");
    assert!(!facts.is_authority && facts.is_self_signed && facts.is_valid_now());
    assert!(facts.valid.1 - facts.valid.0 <= time::Duration::days(825));
    assert!(facts.names.iter().any(|name| name == "db.example"), "{:?}", facts.names);
}

#[test]
fn a_certificate_that_ends_soon_is_made_anew() {
    let files = tempfile::TempDir::new().expect("a temporary directory");
    let (certificate, key) = (files.path().join("c.pem"), files.path().join("k.pem"));
    for (days, is_kept) in [(40, true), (10, false), (-1, false)] {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("valid");
        params.not_after = now() + DAY * days;
        let pair = KeyPair::generate().expect("a key");
        fs::write(&certificate, params.self_signed(&pair).expect("a certificate").pem()).expect("written");
        fs::write(&key, pair.serialize_pem()).expect("written");
        let kept = Certificate::kept(&certificate, &key).expect("readable");
        assert_eq!(kept.is_ok(), is_kept, "{days}: {:?}", kept.err());
    }
}
