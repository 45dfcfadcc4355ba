use super::*;

fn machine(rustc: &str, processor: &str) -> Machine {
    Machine {
        rustc: rustc.to_owned(),
        processor: processor.to_owned(),
    }
}

fn of(figures: &[(&str, u64)]) -> BTreeMap<String, u64> {
    figures
        .iter()
        .map(|(name, figure)| ((*name).to_owned(), *figure))
        .collect()
}

fn verdicts(expected: &[(&str, u64)], measured: &[(&str, u64)]) -> Vec<(String, Verdict)> {
    let expected = Figures::new(&machine("rustc 1", "x"), of(expected));
    let compared = expected.compare(&of(measured), &|_| true);
    compared.into_iter().map(|one| (one.name, one.verdict)).collect()
}

fn verdict_of(expected: u64, measured: u64) -> Verdict {
    verdicts(&[("read", expected)], &[("read", measured)])[0].1
}

#[test]
fn ten_percent_are_allowed_and_no_more() {
    assert_eq!(verdict_of(1_000, 1_000), Verdict::Within);
    assert_eq!(verdict_of(1_000, 1_100), Verdict::Within);
    assert_eq!(verdict_of(1_000, 1_101), Verdict::Above);
    assert_eq!(verdict_of(1_000, 900), Verdict::Within);
    assert_eq!(verdict_of(1_000, 899), Verdict::Below);
}

#[test]
fn an_operation_without_a_figure_and_a_figure_without_an_operation_are_seen() {
    let verdicts = verdicts(&[("gone", 5), ("read", 7)], &[("new", 6), ("read", 7)]);
    let verdict = |name: &str| verdicts.iter().find(|(is, _)| is == name).map(|(_, verdict)| *verdict);
    assert_eq!(verdict("gone"), Some(Verdict::NotMeasured));
    assert_eq!(verdict("new"), Some(Verdict::NotExpected));
    assert_eq!(verdict("read"), Some(Verdict::Within));
}

#[test]
fn operations_that_are_not_wanted_are_not_compared() {
    let expected = Figures::new(&machine("rustc 1", "x"), of(&[("read", 7), ("write", 8)]));
    let compared = expected.compare(&of(&[("read", 7)]), &|name| name == "read");
    assert_eq!(compared.len(), 1);
}

#[test]
fn figures_of_another_compiler_or_processor_are_not_compared() {
    let figures = Figures::new(&machine("rustc 1", "x with avx2"), of(&[]));
    assert_eq!(figures.differs_from(&machine("rustc 1", "x with avx2")), None);
    let compiler = figures.differs_from(&machine("rustc 2", "x with avx2"));
    assert_eq!(compiler.as_deref(), Some("this is rustc 2, the figures are of rustc 1"));
    let processor = figures.differs_from(&machine("rustc 1", "x"));
    assert_eq!(
        processor.as_deref(),
        Some("this processor is x, the figures are of x with avx2")
    );
}

#[test]
fn a_processor_is_known_by_its_flags() {
    assert_eq!(
        processor("x86_64", "processor : 0\nflags\t\t: fpu avx avx2 sse\n"),
        "x86_64 with avx2"
    );
    assert_eq!(processor("x86_64", "processor : 0\nflags\t\t: fpu avx\n"), "x86_64");
    assert_eq!(processor("aarch64", ""), "aarch64");
}

#[test]
fn the_file_is_read_as_it_was_written() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("figures.json");
    let figures = Figures::new(&machine("rustc 1", "x"), of(&[("read", 7)]));
    write(&file, &figures).expect("written");
    let text = std::fs::read_to_string(&file).expect("a file");
    assert_eq!(
        text,
        "{\n  \"rustc\": \"rustc 1\",\n  \"processor\": \"x\",\n  \"instructions\": {\n    \"read\": 7\n  }\n}\n"
    );
    assert_eq!(read(&file).expect("read"), figures);
}

#[test]
fn a_comparison_says_both_figures_and_their_difference() {
    let expected = Figures::new(&machine("rustc 1", "x"), of(&[("read", 1_000)]));
    let compared = expected.compare(&of(&[("read", 1_250)]), &|_| true);
    assert_eq!(compared[0].to_string(), "read: 1250, expected 1000 (+25.0 %): TOO MANY");
}

#[test]
fn the_spread_of_runs_is_between_the_least_and_the_most() {
    let runs = [of(&[("read", 1_010)]), of(&[("read", 1_000)]), of(&[("read", 1_005)])];
    assert_eq!(spread(&runs), "read: 1000 to 1010 in 3 runs, 1.00 % apart\n");
}
