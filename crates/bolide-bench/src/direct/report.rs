//! The tables.

use super::{Options, Row, Sample, Side};
use crate::figures::{median, median_ratio};
use crate::table::Table;

/// The least part of REST's reads per CPU second that is wanted; p99 is to be lower.
const GOAL: f64 = 1.3;

/// The section of a report.
pub fn render(options: &Options, cipher: &str, reads: &[Row], creates: &[Row]) -> String {
    format!(
        "## Direct mode\n\n{} rounds of {} s each, all over TLS ({cipher}), by the same client. CPU seconds are those of the server.\n\n\
         ### Point reads, in memory\n\n{}\n{}\n### Durable creates\n\n{}",
        options.rounds,
        options.seconds,
        table(reads),
        verdicts(reads),
        table(creates),
    )
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "protocol",
        "connections",
        "under way",
        "requests/s",
        "requests/CPU s",
        "of REST",
        "p50 µs",
        "p99 µs",
        "of REST",
        "client CPU µs/request",
    ]);
    for row in rows {
        let cell = |of: &dyn Fn(&Sample) -> f64| format!("{:.0}", median(row.samples.iter().map(of)));
        let [per_cpu_second, p99] = beside_rest(rows, row);
        table.row([
            row.side.name().to_owned(),
            row.connections.to_string(),
            row.under_way().to_string(),
            cell(&|sample| sample.per_second),
            cell(&|sample| sample.per_cpu_second),
            format!("{per_cpu_second:.2}"),
            cell(&|sample| sample.p50_micros),
            cell(&|sample| sample.p99_micros),
            format!("{p99:.2}"),
            format!("{:.1}", median(row.samples.iter().map(|sample| sample.client_micros))),
        ]);
    }
    table
}

/// Requests per CPU second, and p99, as multiples of those of REST with as many requests under way.
pub fn beside_rest(rows: &[Row], row: &Row) -> [f64; 2] {
    let rest = rows
        .iter()
        .find(|other| (other.connections, other.side) == (row.under_way(), Side::Rest));
    let ratio = |of: fn(&Sample) -> f64| {
        let rest = rest.map_or(&[][..], |rest| &rest.samples);
        median_ratio(row.samples.iter().zip(rest).map(|(own, rest)| (of(own), of(rest))))
    };
    [ratio(|sample| sample.per_cpu_second), ratio(|sample| sample.p99_micros)]
}

/// Whether the goal is reached, for each number of channels.
pub fn verdicts(rows: &[Row]) -> String {
    let of = |side: Side| {
        let direct = rows.iter().filter(move |row| row.side == side);
        let verdicts = direct.map(|row| {
            let [per_cpu_second, p99] = beside_rest(rows, row);
            let how = match (per_cpu_second >= GOAL, p99 < 1.0) {
                (true, true) => "reached",
                (true, false) => "p99 missed",
                (false, true) => "CPU missed",
                (false, false) => "missed",
            };
            format!("{} {how}", row.connections)
        });
        verdicts.collect::<Vec<_>>().join(", ")
    };
    format!(
        "Goal: at least {GOAL} times the requests per CPU second of REST with as many requests under way, and a lower p99. Channels with one request: {}; with \
         sixteen: {}.\n",
        of(Side::Direct),
        of(Side::Multiplexed)
    )
}
