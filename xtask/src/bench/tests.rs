use super::*;

#[test]
fn the_report_has_no_output_of_a_program() {
    let reason = "cosmium is not installed (go install x@latest), and go fails: go failed: a long text with an address";
    assert_eq!(
        absent("cosmium", reason),
        "--absent=cosmium=cosmium is not installed (go install x@latest), and go fails on this machine"
    );
    assert_eq!(
        absent("vercel", "node is not installed"),
        "--absent=vercel=node is not installed"
    );
}
