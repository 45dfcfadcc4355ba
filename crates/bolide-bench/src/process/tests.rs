use super::*;

#[test]
fn a_field_is_found_by_its_name() {
    let text = "Name:\tbolide\nVmRSS:\t   24816 kB\nThreads:\t4\n";
    assert_eq!(field(text, "VmRSS:").expect("it is there"), 24_816);
    assert!(field(text, "VmHWM:").is_err());
}
