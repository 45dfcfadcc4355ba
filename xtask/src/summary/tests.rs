use super::*;

#[test]
fn one_failure_fails_the_whole_and_is_named_but_the_rest_still_runs() {
    let mut summary = Summary::default();
    summary.run("first", || Err("broken".into()));
    summary.run("second", || Ok(Outcome::Passed));
    let error = summary.finish().expect_err("first failed").to_string();
    assert_eq!(error, "failed: first");
    assert!(summary.to_string().contains("FAILED: broken"));
}

#[test]
fn a_skipped_scenario_is_visible_and_not_a_failure() {
    let mut summary = Summary::default();
    summary.run("conformance", || Ok(Outcome::PassedBut("not run: 5 cases".to_owned())));
    assert!(summary.finish().is_ok());
    assert!(summary.to_string().contains("passed, but not run: 5 cases"));
}

#[test]
fn a_skipped_check_is_visible_and_not_a_failure() {
    let mut summary = Summary::default();
    summary.run("deny", || Ok(Outcome::Skipped("not installed".to_owned())));
    assert!(summary.finish().is_ok());
    assert!(summary.to_string().contains("skipped: not installed"));
}
