use super::*;

fn split_texts(arguments: &[&str]) -> (Vec<String>, Vec<(&'static str, String)>) {
    let (kept, secrets) = split(arguments.iter().map(OsString::from));
    let text = |argument: OsString| argument.into_string().expect("UTF-8");
    (
        kept.into_iter().map(text).collect(),
        secrets.into_iter().map(|(name, value)| (name, text(value))).collect(),
    )
}

#[test]
fn keys_are_taken_out_in_both_spellings() {
    let (kept, secrets) = split_texts(&[
        "serve",
        "--key",
        "a",
        "--port",
        "0",
        "--secondary-key=b=",
        "--readonly-key",
        "c",
        "--key-file",
        "f",
    ]);
    assert_eq!(kept, ["serve", "--port", "0", "--key-file", "f"]);
    assert_eq!(
        secrets,
        [
            ("BOLIDE_KEY", "a".to_owned()),
            ("BOLIDE_SECONDARY_KEY", "b=".to_owned()),
            ("BOLIDE_READONLY_KEY", "c".to_owned()),
        ]
    );
}

#[test]
fn addresses_of_stores_are_taken_out_because_they_may_have_a_password() {
    let (kept, secrets) = split_texts(&[
        "copy",
        "--from",
        "http://127.0.0.1:8081",
        "--to-store",
        "postgres://user:password@host/database",
        "--store=postgres://user:other@host/database",
        "--to-store-ca",
        "f",
    ]);
    assert_eq!(kept, ["copy", "--from", "http://127.0.0.1:8081", "--to-store-ca", "f"]);
    assert_eq!(
        secrets,
        [
            ("BOLIDE_TO_STORE", "postgres://user:password@host/database".to_owned()),
            ("BOLIDE_STORE", "postgres://user:other@host/database".to_owned()),
        ]
    );
}

#[test]
fn what_is_no_secret_stays() {
    let equals = format!("--secondary-key={WELL_KNOWN_KEY}");
    let arguments = ["--key", WELL_KNOWN_KEY, &equals, "--", "--key", "a"];
    let (kept, secrets) = split_texts(&arguments);
    assert_eq!(kept, arguments);
    assert_eq!(secrets, []);
}
