use super::super::report::tests::example;
use super::*;

#[test]
fn a_plot_has_a_bar_for_each_side_with_figures() {
    let plots = all(&example()).expect("plots");
    let files: Vec<&str> = plots.iter().map(|(file, ..)| file.as_str()).collect();
    assert_eq!(files, ["throughput.svg", "latency-p50.svg", "latency-p99.svg"]);
    for (file, _, content) in &plots {
        assert!(
            content.starts_with("<svg") && content.trim_end().ends_with("</svg>"),
            "{file}"
        );
        // A bar and its mark in the legend.
        for colour in ["#0072B2", "#E69F00"] {
            assert_eq!(
                content.matches(&format!("fill=\"{colour}\"")).count(),
                2,
                "{file} {colour}"
            );
        }
        for text in ["ycsb-a", "bolide", "redis"] {
            assert!(content.contains(text), "{file} has no {text}");
        }
        assert!(!content.contains("vercel"), "{file} has a side without figures");
    }
}

#[test]
fn without_figures_there_is_no_plot() {
    let mut report = example();
    report.workloads.clear();
    assert_eq!(all(&report).expect("no plots"), []);
}

#[test]
fn scales_end_at_powers_of_ten() {
    assert_eq!([power_below(250.0), power_above(250.0)], [100.0, 1_000.0]);
    assert_eq!([power_below(1.0), power_above(1.0)], [0.1, 10.0]);
}
