use super::*;

#[test]
fn a_known_gap_that_passes_is_a_failure_and_one_that_fails_is_not() {
    assert_eq!(with_known_gap(Ok(()), false), Verdict::Passed);
    assert!(matches!(with_known_gap(Ok(()), true), Verdict::Failed(_)));
    assert!(matches!(
        with_known_gap(Err("status".into()), true),
        Verdict::Skipped(_)
    ));
    assert!(matches!(
        with_known_gap(Err("status".into()), false),
        Verdict::Failed(_)
    ));
}

#[test]
fn verdicts_are_in_the_order_of_the_cases() {
    let numbers: Vec<usize> = (0..50).collect();
    let verdicts = run_all(&numbers, |number| Verdict::Skipped(number.to_string()));
    let expected: Vec<Verdict> = numbers
        .iter()
        .map(|number| Verdict::Skipped(number.to_string()))
        .collect();
    assert_eq!(verdicts, expected);
}

#[test]
fn the_report_ends_with_its_three_counts_and_shows_every_reason_to_skip() {
    let verdicts = [
        ("a", Verdict::Passed),
        (
            "b",
            Verdict::Failed("step 3 item.read: status: expected 404, got 200".to_owned()),
        ),
        ("c", Verdict::Skipped("mongo".to_owned())),
        ("d", Verdict::Skipped("mongo".to_owned())),
        ("e", Verdict::PassedBut("not over several ranges".to_owned())),
    ];
    let verdicts = verdicts
        .into_iter()
        .map(|(name, verdict)| (name.to_owned(), verdict))
        .collect();
    let text = Report {
        title: "ttl scenarios on memory".to_owned(),
        verdicts,
    }
    .to_string();
    assert!(
        text.ends_with("\nskipped 2: mongo\n2 passed, 1 failed, 2 skipped"),
        "{text}"
    );
    assert!(
        text.contains("FAILED b: step 3 item.read: status: expected 404, got 200\n"),
        "{text}"
    );
    assert!(text.contains("passed in part 1: not over several ranges\n"), "{text}");
}
