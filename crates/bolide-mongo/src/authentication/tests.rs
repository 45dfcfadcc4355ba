use bolide_model::account_key::{AccountKey, WELL_KNOWN_KEY};

use super::*;

const READ_ONLY_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZg==";

fn credentials() -> Credentials {
    let key = |text| AccountKey::parse(text).expect("a key");
    let keys = vec![
        (Access::Full, key(WELL_KNOWN_KEY)),
        (Access::ReadOnly, key(READ_ONLY_KEY)),
    ];
    Credentials::new(["localhost".to_owned()], keys)
}

fn start<'a>(mechanism: &'a str, payload: &'a [u8]) -> SaslStart<'a> {
    SaslStart {
        mechanism,
        database: "admin",
        payload,
        skip_empty_exchange: true,
        created: None,
    }
}

#[test]
fn passwords_are_accepted_only_over_tls() {
    let credentials = credentials();
    let payload = format!("\0localhost\0{READ_ONLY_KEY}");
    let start = start("PLAIN", payload.as_bytes());
    let step = credentials.start(&start, true).expect("authenticated");
    let Next::Done(principal) = step.next else {
        panic!("one exchange")
    };
    assert_eq!(principal.identity, Identity::Key(Access::ReadOnly));
    let refused = credentials.start(&start, false).expect_err("not over TCP");
    assert_eq!(refused.code, Code::MECHANISM_UNAVAILABLE);
}

#[test]
fn wrong_users_and_passwords_give_the_same_error() {
    let credentials = credentials();
    for payload in [
        format!("\0nobody\0{WELL_KNOWN_KEY}"),
        "\0localhost\0wrong".to_owned(),
        format!("other\0localhost\0{WELL_KNOWN_KEY}"),
        "\0localhost".to_owned(),
        String::new(),
    ] {
        let error = credentials.start(&start("PLAIN", payload.as_bytes()), true);
        let error = error.expect_err(&payload);
        assert_eq!(
            (error.code, error.message.as_str()),
            (Code(18), "Authentication failed."),
            "{payload}"
        );
    }
}

#[test]
fn salts_of_unknown_users_look_like_others_and_stay() {
    let first = |user: &str| {
        let payload = format!("n,,n={user},r=abc");
        let step = credentials().start(&start("SCRAM-SHA-256", payload.as_bytes()), false);
        let text = String::from_utf8(step.expect("begun").payload).expect("text");
        let (nonce, rest) = text.split_once(",s=").expect("a salt");
        assert!(nonce.starts_with("r=abc") && nonce.len() > 30, "{nonce}");
        rest.to_owned()
    };
    assert_eq!(first("nobody"), first("nobody"));
    assert_ne!(first("nobody"), first("localhost"));
    // 28 bytes in base64, and the iterations.
    for user in ["nobody", "localhost"] {
        let rest = first(user);
        assert_eq!((rest.len(), &rest[rest.len() - 8..]), (48, ",i=15000"), "{rest}");
    }
}

#[tokio::test]
async fn a_proof_for_an_unknown_user_fails() {
    let credentials = credentials();
    let step = credentials
        .start(&start("SCRAM-SHA-1", b"n,,n=nobody,r=abc"), false)
        .expect("begun");
    let text = String::from_utf8(step.payload).expect("text");
    let nonce = text.split(',').next().expect("a nonce");
    let Next::Continue(conversation) = step.next else {
        panic!("two exchanges")
    };
    let last = format!("c=biws,{nonce},p=AAAA");
    let error = credentials
        .proceed(conversation, last.as_bytes())
        .await
        .expect_err("unknown");
    assert_eq!(error.code, Code::AUTHENTICATION_FAILED);
}

#[test]
fn unknown_mechanisms() {
    for name in ["MONGODB-X509", "GSSAPI", "", "scram-sha-1"] {
        let error = credentials().start(&start(name, b""), true).expect_err(name);
        assert_eq!(error.code, Code::MECHANISM_UNAVAILABLE, "{name}");
    }
}

/// Source: mongo.md §4: users cannot be probed.
#[test]
fn salts_of_unknown_users_differ_between_databases() {
    let credentials = credentials();
    let salt = |database, user| credentials.salt(Mechanism::Sha256, database, user);
    assert_ne!(salt("a", "nobody"), salt("b", "nobody"));
    assert_eq!(salt("a", "localhost"), salt("b", "localhost"));
}
