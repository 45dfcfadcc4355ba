use time::macros::datetime;

use super::*;
use crate::doctor::report::Verdict;

#[test]
fn clocks_may_differ_by_less_than_fifteen_minutes() {
    let now = datetime!(2026-01-31 12:00:00 UTC);
    let verdict = |date: &str| {
        let mut report = Report::default();
        check_clocks(&mut report, Some(date), now);
        report.on("clocks").first().map(|(verdict, _)| *verdict)
    };
    assert_eq!(verdict("Sat, 31 Jan 2026 12:00:59 GMT"), Some(Verdict::Ok));
    assert_eq!(verdict("Sat, 31 Jan 2026 12:05:00 GMT"), Some(Verdict::Warn));
    assert_eq!(verdict("Sat, 31 Jan 2026 11:44:59 GMT"), Some(Verdict::Fail));
    assert_eq!(verdict("soon"), None);
}

#[test]
fn a_signature_is_that_of_the_documentation() {
    // Computed with `openssl dgst -sha256 -hmac` over the documented payload, with the 16 bytes 0123456789abcdef as the key.
    let key = AccountKey::parse("MDEyMzQ1Njc4OWFiY2RlZg==").expect("valid");
    let token = authorization(&key, "", "Sat, 31 Jan 2026 12:00:00 GMT");
    assert_eq!(token, EXPECTED);
}

const EXPECTED: &str = "type%3Dmaster%26ver%3D1%2E0%26sig%3D06e23rFyJx4WMCK9EHrM3WdWmBkQMIY372BubZp3W2o%3D";
