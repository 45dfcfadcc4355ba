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
fn what_is_no_secret_stays() {
    let equals = format!("--secondary-key={WELL_KNOWN_KEY}");
    let arguments = ["--key", WELL_KNOWN_KEY, &equals, "--", "--key", "a"];
    let (kept, secrets) = split_texts(&arguments);
    assert_eq!(kept, arguments);
    assert_eq!(secrets, []);
}
