use super::*;

#[test]
fn a_field_is_found_by_its_name() {
    let text = "Name:\tbolide\nVmRSS:\t   24816 kB\nThreads:\t4\n";
    assert_eq!(field(text, "VmRSS:").expect("it is there"), 24_816);
    assert!(field(text, "VmHWM:").is_err());
}

#[test]
fn the_time_of_a_process_is_apart_from_that_of_its_ended_children() {
    let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 100 200 0 0 12 3 40 5 20 0 1 0 100 1 1";
    let times = parse_cpu_times(stat).expect("a status");
    assert_eq!(times, [Duration::from_millis(150), Duration::from_millis(450)]);
    parse_cpu_times("7 (a) S 1").expect_err("fields are missing");
}
