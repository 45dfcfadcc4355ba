use super::*;

const FILE: &str = "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\ncmd: ./bolide-bench\npart: 1\n\n\ndesc: Trigger: Program termination\n\
                    \npositions: line\nevents: Ir\nsummary: 4100\n\n\nob=(1) /lib/ld.so\nfl=(1) ???\nfn=(1) main\n0 4000\n\ntotals: 4123\n";

#[test]
fn the_total_is_that_of_the_whole_process() {
    assert_eq!(total(FILE), Some(4123));
}

#[test]
fn a_file_without_its_end_has_no_total() {
    assert_eq!(total(FILE.split("totals").next().expect("the part before")), None);
}

#[test]
fn other_events_are_no_instructions() {
    assert_eq!(total(&FILE.replace("events: Ir", "events: Bc Ir")), None);
}

#[test]
fn what_both_processes_do_cancels_out() {
    assert_eq!(per_run((1_000_000 + 10 * 700, 10), (1_000_000 + 110 * 700, 110)), 700);
}

#[test]
fn a_fraction_is_rounded() {
    assert_eq!(per_run((0, 0), (29, 10)), 3);
    assert_eq!(per_run((0, 0), (24, 10)), 2);
}

#[test]
fn a_process_that_did_less_costs_nothing() {
    assert_eq!(per_run((50, 10), (40, 20)), 0);
}
