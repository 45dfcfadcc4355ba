use http::HeaderValue;

use super::*;

fn is_allowed(account: ConsistencyLevel, asked: &'static str) -> bool {
    let headers = [(headers::CONSISTENCY_LEVEL.clone(), HeaderValue::from_static(asked))];
    account.check(&HeaderMap::from_iter(headers)).is_ok()
}

#[test]
fn no_request_asks_for_more_than_the_account_promises() {
    for (place, account) in ConsistencyLevel::ALL.into_iter().enumerate() {
        for (asked_place, asked) in ConsistencyLevel::ALL.into_iter().enumerate() {
            assert_eq!(
                is_allowed(account, asked.name()),
                asked_place <= place,
                "{account:?} {asked:?}"
            );
        }
    }
}

#[test]
fn levels_are_read_in_any_case_and_unknown_ones_are_refused() {
    for asked in ["session", "EVENTUAL", ""] {
        assert!(is_allowed(ConsistencyLevel::Session, asked), "{asked}");
    }
    for asked in ["Sometimes", "Strong,Session"] {
        assert!(!is_allowed(ConsistencyLevel::Strong, asked), "{asked}");
    }
}
