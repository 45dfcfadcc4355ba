//! The tables.

use super::by_hand::Row;
use super::{Operation, Options, Results, Sample, System};
use crate::creates::fsync_micros;
use crate::figures::{median, median_ratio, percent};
use crate::table::Table;
use crate::{Result, machine};

/// The section of a report.
pub fn render(options: &Options, rows: &[Row], results: &Results) -> Result<String> {
    let rows: Vec<String> = rows
        .iter()
        .map(|row| format!("{} ({} and {} bytes)", row.name(), row.key_bytes, row.value_bytes))
        .collect();
    Ok(format!(
        "## Cluster\n\n{machine} **The clients run on the same processors as the servers and PostgreSQL**, so each layer takes from the others.\n\n\
         {} rounds of {} s each, {} connections of clients, {} items of 1 KB at the beginning, physical partitions: {}. An fsync of 32 items appended to a file takes {:.0} µs \
         here (median). The rows of a create, with their keys and values: {}.\n\n\
         {}\nCPU µs per request, of each layer:\n\n{}",
        options.rounds,
        options.seconds,
        options.connections,
        options.items,
        options.ranges,
        fsync_micros()?,
        rows.join(", "),
        rates(results),
        cpu(results),
        machine = machine::sentence()?,
    ))
}

fn rates(results: &Results) -> Table {
    let mut table = Table::new([
        "operation",
        "system",
        "per second",
        "of pgbench",
        "target",
        "p50 ms",
        "p99 ms",
    ]);
    for (operation, system, samples) in results {
        let (share, target) = match system {
            System::ByHand => ("100 %".to_owned(), String::new()),
            System::Bolide(_) => judged(share(samples, by_hand(results, *operation)), operation.target()),
        };
        let latency = |at: usize| match samples.iter().filter_map(|sample| sample.latencies).collect::<Vec<_>>() {
            none if none.is_empty() => "–".to_owned(),
            some => format!("{:.1}", median(some.iter().map(|latencies| latencies[at]))),
        };
        table.row([
            operation.name().to_owned(),
            system.name(),
            format!("{:.0}", median(samples.iter().map(|sample| sample.per_second))),
            share,
            target,
            latency(0),
            latency(1),
        ]);
    }
    table
}

/// The share of what pgbench did in the same round.
pub fn share(samples: &[Sample], by_hand: &[Sample]) -> f64 {
    let pairs = samples.iter().zip(by_hand);
    median_ratio(pairs.map(|(sample, by_hand)| (sample.per_second, by_hand.per_second)))
}

/// A share, and its target with whether it is reached.
pub fn judged(share: f64, target: f64) -> (String, String) {
    let how = if share >= target { "reached" } else { "missed" };
    (percent(share), format!("≥ {}: {how}", percent(target)))
}

fn by_hand(results: &Results, operation: Operation) -> &[Sample] {
    let found = results
        .iter()
        .find(|(of, system, _)| (*of, *system) == (operation, System::ByHand));
    found.map_or(&[], |(_, _, samples)| samples)
}

fn cpu(results: &Results) -> Table {
    let mut table = Table::new(["operation", "system", "client", "Bolide", "PostgreSQL", "all"]);
    for (operation, system, samples) in results {
        let cell = |of: &dyn Fn(&Sample) -> f64| format!("{:.0}", median(samples.iter().map(of)));
        table.row([
            operation.name().to_owned(),
            system.name(),
            cell(&|sample| sample.client),
            cell(&|sample| sample.servers),
            cell(&|sample| sample.postgres),
            cell(&|sample| sample.client + sample.servers + sample.postgres),
        ]);
    }
    table
}
