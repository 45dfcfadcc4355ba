use bolide_model::RequestUnits;

use super::*;

fn at(range: u32, lsn: u64) -> RangePosition {
    RangePosition {
        range,
        lsn: Lsn(lsn),
        charge: RequestUnits::ZERO,
    }
}

#[test]
fn tokens_of_all_sdks_are_read() {
    for (text, seen) in [
        ("0:-1#57", vec![(0, 57)]),
        ("0:57", vec![(0, 57)]),
        ("0:0#57#1=-1", vec![(0, 57)]),
        ("0:-1#5,3:-1#9", vec![(0, 5), (3, 9)]),
        ("", vec![]),
    ] {
        let parsed = SessionToken::parse(text).expect(text);
        let expected: Vec<_> = seen.into_iter().map(|(range, lsn)| (range, Lsn(lsn))).collect();
        assert_eq!(parsed.seen, expected, "{text}");
    }
}

#[test]
fn garbage_is_refused() {
    for text in ["garbage", "0", "x:-1#5", "0:-1#", "0:-1#5#region", "0:a#5"] {
        assert_eq!(
            SessionToken::parse(text).expect_err(text).kind,
            ErrorKind::BadRequest,
            "{text}"
        );
    }
}

#[test]
fn an_invalid_token_is_refused_in_the_words_of_the_service() {
    let error = SessionToken::parse("invalidtoken").expect_err("no token");
    assert!(
        error
            .to_string()
            .starts_with("The session token provided 'invalidtoken' is invalid."),
        "{error}"
    );
}

#[test]
fn written_values_are_read_back() {
    let touched = [at(0, 5), at(3, 9)];
    let text = token(range_of_answer(&touched).expect("two ranges were touched"));
    assert_eq!(text, "3:-1#9");
    assert_eq!(
        SessionToken::parse(&text).expect("our own token").seen,
        vec![(3, Lsn(9))]
    );
    assert_eq!(range_of_answer(&[]), None);
}

#[test]
fn only_touched_ranges_can_be_behind() {
    let seen = SessionToken::parse("0:-1#5,7:-1#100").expect("well formed");
    assert!(seen.check(&[at(0, 5)]).is_ok());
    assert_eq!(
        seen.check(&[at(0, 4)]).expect_err("4 is before 5").kind,
        ErrorKind::SessionNotAvailable
    );
}
