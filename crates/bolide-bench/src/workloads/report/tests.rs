use super::*;

fn round(operations_per_second: f64, p50: f64, p99: f64) -> Round {
    Round {
        operations_per_second,
        wrong: 0,
        latency: Percentiles {
            operations: 1_500,
            unfinished: 0,
            p50,
            p95: p99 / 2.0,
            p99,
            p999: p99 * 2.0,
            max: p99 * 4.0,
        },
    }
}

fn side(system: &str, rounds: Vec<Round>, failure: Option<&str>) -> Side {
    Side {
        system: system.to_owned(),
        memory_mib: failure.is_none().then_some(64.25),
        failure: failure.map(str::to_owned),
        rounds,
    }
}

/// Two sides with three rounds, and one that failed.
pub fn example() -> Report {
    let bolide = vec![
        round(10_000.0, 200.0, 1_000.0),
        // Something else ran.
        round(5_000.0, 400.0, 4_000.0),
        round(12_000.0, 180.0, 800.0),
    ];
    let redis = vec![
        round(20_000.0, 100.0, 500.0),
        round(15_000.0, 150.0, 1_000.0),
        round(18_000.0, 90.0, 480.0),
    ];
    Report {
        machine: "2 cores".to_owned(),
        date: "2026-01-31".to_owned(),
        profile: "release".to_owned(),
        settings: Settings {
            items: 10_000,
            clients: 32,
            seconds: 3.0,
            rounds: 3,
        },
        absent: vec![Absent {
            name: "cosmium".to_owned(),
            reason: "no Go | here".to_owned(),
        }],
        workloads: vec![Measured {
            name: "ycsb-a".to_owned(),
            description: "half reads, half updates".to_owned(),
            rate: 500,
            sides: vec![
                side("bolide", bolide, None),
                side("redis", redis, None),
                side("vercel", Vec::new(), Some("status 500")),
            ],
        }],
        sections: vec![Section {
            name: "start".to_owned(),
            arguments: "start --rounds 2".to_owned(),
            markdown: "## Start\n\n2 starts.\n".to_owned(),
        }],
    }
}

#[test]
fn a_summary_has_the_median_and_the_extremes() {
    let report = example();
    let bolide = &report.workloads[0].sides[0];
    let summary = Summary::of(&bolide.rounds, |round| round.operations_per_second).expect("rounds");
    assert_eq!(
        summary,
        Summary {
            median: 10_000.0,
            least: 5_000.0,
            most: 12_000.0
        }
    );
    assert_eq!(Summary::of(&[], |round| round.operations_per_second), None);
}

#[test]
fn a_ratio_is_the_median_of_the_ratios_of_rounds() {
    let report = example();
    let workload = &report.workloads[0];
    let ratio = |side: usize| workload.ratio(&workload.sides[side], |round| round.operations_per_second);
    // 2.0, 3.0 and 1.5; the ratio of the medians would be 1.8.
    assert_eq!(ratio(1), Some(2.0));
    assert_eq!(ratio(0), Some(1.0));
    assert_eq!(ratio(2), None);
}

#[test]
fn a_report_is_the_same_after_it_was_kept() {
    let report = example();
    let kept = serde_json::to_string(&report).expect("JSON");
    assert_eq!(serde_json::from_str::<Report>(&kept).expect("a report"), report);
}
