//! A report for readers, in Markdown.

use std::fmt::Write as _;

use super::report::{Measured, Report, Round, Side, Summary};
use crate::table::Table;

/// The page. `plots`: the files of the plots, each with the text that replaces it.
pub fn page(report: &Report, plots: &[(String, String)]) -> String {
    let settings = &report.settings;
    let mut text = format!(
        "# Workloads\n\n\
         Written by `cargo xtask bench` on {}; [workloads.json](workloads.json) has the figures of every round. {}\n\n\
         {} items of 1 KB are loaded before each workload, on a new store. Then the systems take turns, A B C A B C, for {} rounds. In each, {} clients first \
         work as fast as responses come, for {} s (operations/s); then operations start at the fixed rate of the workload, for as long (latencies, from the intended \
         start of an operation, so that one that had to wait for another counts with its wait). Figures are medians of the rounds, with the least and the most; ratios are medians \
         of the ratios within a round. Profile of the build: {}.\n\n",
        report.date,
        report.machine,
        settings.items,
        settings.rounds,
        settings.clients,
        settings.seconds,
        report.profile,
    );
    text.push_str(SYSTEMS);
    text.push_str(
        "\nA wrong response has other documents than are stored; a system with more than 1 % of them is not measured. Operations that are not finished had no result some \
         seconds after the last start; their latency is how long they had waited.\n",
    );
    if !report.absent.is_empty() {
        text.push_str("\nNot measured:\n\n");
        for absent in &report.absent {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "- **{}**: {}", absent.name, one_line(&absent.reason));
        }
    }
    for (file, description) in plots {
        let _ = write!(text, "\n![{description}]({file})\n");
    }
    for workload in &report.workloads {
        let _ = write!(
            text,
            "\n## {}\n\n{}. Latencies at {} operations/s.\n\n{}",
            workload.name,
            workload.description,
            workload.rate,
            table(workload)
        );
    }
    for section in &report.sections {
        // The name of the workload is the heading; that of the measurement is below it.
        let markdown = section.markdown.trim_end().replacen("## ", "### ", 1);
        let _ = write!(
            text,
            "\n## {}\n\n`bolide-bench {}`\n\n{markdown}\n",
            section.name, section.arguments
        );
    }
    text
}

const SYSTEMS: &str = "\
    - **bolide**: the embedded engine, every write durable before its response; the REST protocol over HTTP, with signed requests.\n\
    - **postgres**: a `jsonb` column beside columns for key, time and deadline, prepared statements, durable commits. It has no TTL: reads leave out rows \
    with a passed deadline.\n\
    - **redis**: `appendonly yes`, `appendfsync always`, so every write is durable before its response. A sorted set for each partition in workloads with ranges.\n\
    - **cosmium**: the Cosmos DB REST protocol, in memory: no write is durable. It has no TTL.\n\
    - **vercel**: `@vercel/cosmosdb-server`, the Cosmos DB REST protocol, in memory: no write is durable. It has no TTL, and does not check signatures.\n";

fn table(workload: &Measured) -> Table {
    let mut table = Table::new([
        "system",
        "operations/s",
        "least – most",
        "of bolide",
        "p50 µs",
        "p99 µs",
        "least – most",
        "p99 of bolide",
        "p99.9 µs",
        "memory MiB",
    ]);
    for side in &workload.sides {
        table.row(row(workload, side));
    }
    table
}

fn row(workload: &Measured, side: &Side) -> [String; 10] {
    let throughput = |round: &Round| round.operations_per_second;
    let p99 = |round: &Round| round.latency.p99;
    let median = |figure: &dyn Fn(&Round) -> f64| match Summary::of(&side.rounds, figure) {
        Some(summary) => whole(summary.median),
        None => "–".to_owned(),
    };
    let spread = |figure: &dyn Fn(&Round) -> f64| match Summary::of(&side.rounds, figure) {
        Some(summary) => format!("{} – {}", whole(summary.least), whole(summary.most)),
        None => "–".to_owned(),
    };
    let ratio = |figure: &dyn Fn(&Round) -> f64| match workload.ratio(side, figure) {
        Some(ratio) => format!("{ratio:.2}"),
        None => "–".to_owned(),
    };
    [
        name_and_remarks(side),
        median(&throughput),
        spread(&throughput),
        ratio(&throughput),
        median(&|round| round.latency.p50),
        median(&p99),
        spread(&p99),
        ratio(&p99),
        median(&|round| round.latency.p999),
        side.memory_mib
            .map_or_else(|| "–".to_owned(), |mib| format!("{mib:.0}")),
    ]
}

/// The name of a system, and what is to be known about its figures.
fn name_and_remarks(side: &Side) -> String {
    let mut text = side.system.clone();
    // Writing to a String cannot fail.
    if let Some(failure) = &side.failure {
        let _ = write!(text, " (not measured: {})", one_line(failure));
    }
    let unfinished: usize = side.rounds.iter().map(|round| round.latency.unfinished).sum();
    if unfinished > 0 {
        let _ = write!(text, " (not finished: {unfinished})");
    }
    let wrong: u64 = side.rounds.iter().map(|round| round.wrong).sum();
    if wrong > 0 {
        let _ = write!(text, " (wrong responses: {wrong})");
    }
    text
}

/// A whole number with separators of thousands.
fn whole(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A message that fits into a cell of a table.
fn one_line(message: &str) -> String {
    const LONGEST: usize = 200;
    let words: Vec<&str> = message.split_whitespace().collect();
    words.join(" ").replace('|', "\\|").chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests;
