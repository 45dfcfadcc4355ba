use super::super::report::tests::example;
use super::*;

#[test]
fn a_row_has_medians_spread_and_ratios() {
    let page = page(&example(), &[]);
    // Of 1000, 4000 and 800 µs the median is 1000; of the ratios 2.0, 3.0 and 1.5 it is 2.0; of 0.5, 0.25 and 0.6 it is 0.5.
    for row in [
        "| bolide | 10,000 | 5,000 – 12,000 | 1.00 | 200 | 1,000 | 800 – 4,000 | 1.00 | 2,000 | 64 |",
        "| redis | 18,000 | 15,000 – 20,000 | 2.00 | 100 | 500 | 480 – 1,000 | 0.50 | 1,000 | 64 |",
        "| vercel (not measured: status 500) | – | – | – | – | – | – | – | – | – |",
    ] {
        assert!(page.lines().any(|line| line == row), "{row}\nis missing in\n{page}");
    }
}

#[test]
fn what_a_system_did_wrong_is_beside_its_name() {
    let mut report = example();
    let redis = &mut report.workloads[0].sides[1];
    redis.rounds[0].wrong = 2;
    redis.rounds[2].wrong = 1;
    redis.rounds[1].latency.unfinished = 4;
    assert_eq!(name_and_remarks(redis), "redis (not finished: 4) (wrong responses: 3)");
}

#[test]
fn what_is_absent_is_named_with_its_reason() {
    let page = page(&example(), &[]);
    assert!(
        page.lines().any(|line| line == "- **cosmium**: no Go \\| here"),
        "{page}"
    );
}

#[test]
fn plots_and_sections_are_in_the_page() {
    let plots = [("a.svg".to_owned(), "Operations".to_owned())];
    let page = page(&example(), &plots);
    for line in [
        "![Operations](a.svg)",
        "## start",
        "`bolide-bench start --rounds 2`",
        "### Start",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is missing in\n{page}");
    }
}

#[test]
fn numbers_have_separators() {
    assert_eq!(
        [0.4, 999.0, 1_000.0, 1_234_567.8].map(whole),
        ["0", "999", "1,000", "1,234,568"]
    );
}
