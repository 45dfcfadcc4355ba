use super::*;

#[test]
fn one_failure_fails_the_whole_and_is_named_but_the_rest_still_runs() {
    let mut summary = Summary::default();
    summary.run(&[("first", ()), ("beside it", ())], |(name, ())| match *name {
        "first" => Err("broken".into()),
        _ => Ok(Outcome::Passed),
    });
    summary.run(&[("second", ())], |_| Ok(Outcome::Passed));
    let error = summary.finish().expect_err("first failed").to_string();
    assert_eq!(error, "failed: first");
    let table = summary.to_string();
    assert!(table.contains("FAILED: broken"));
    let order = ["first ", "beside it ", "second "].map(|name| table.find(name).expect("it has a line"));
    assert!(order.is_sorted(), "{table}");
}

#[test]
fn a_skipped_scenario_is_visible_and_not_a_failure() {
    let mut summary = Summary::default();
    summary.run(&[("conformance", ())], |_| {
        Ok(Outcome::PassedBut("not run: 5 cases".to_owned()))
    });
    assert!(summary.finish().is_ok());
    assert!(summary.to_string().contains("passed, but not run: 5 cases"));
}

#[test]
fn a_skipped_check_is_visible_and_not_a_failure() {
    let mut summary = Summary::default();
    summary.run(&[("deny", ())], |_| Ok(Outcome::Skipped("not installed".to_owned())));
    assert!(summary.finish().is_ok());
    assert!(summary.to_string().contains("skipped: not installed"));
}
