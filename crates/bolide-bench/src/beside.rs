//! Requests at a modest fixed rate beside something that the server does, compared with the same requests before and after it.
//!
//! Half of the requests read and half create. Latencies count from the intended start of a request. On a virtual machine whose host gives its processors
//! to others now and then, a second table leaves out those seconds ([`crate::steal`]).

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::cosmos::Requests;
use crate::figures::{Latencies, median, median_ratio, micros};
use crate::load::{OpenLoop, Planned, Sample};
use crate::server::Server;
use crate::steal::{StealWatch, Stolen};
use crate::table::Table;
use crate::{Result, item};

/// Connections that requests at a fixed rate may use at the same time.
const FOREGROUND: usize = 64;
/// Items that are read in turn.
const READ_ITEMS: u64 = 1_000;
const WARM_UP: Duration = Duration::from_secs(1);
/// Pause before the requests after it are counted: what it left is being merged.
const REST: Duration = Duration::from_secs(10);
/// An item that never expires, whatever the container's default is.
pub const NEVER: Option<i32> = Some(-1);

// Ids begin at different numbers, so that none is used twice. Those below are for what the requests run beside.
pub const READ_IDS: u64 = 1 << 33;
const CREATED_IDS: u64 = 1 << 34;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Create,
}

/// The requests, while they run.
pub struct Foreground {
    load: OpenLoop<Kind>,
    steal: StealWatch,
    counted_from: Instant,
    seconds: Duration,
}

/// The requests of a round, and when what they are measured beside began and ended.
pub struct Round {
    samples: Vec<Sample<Kind>>,
    stolen: Stolen,
    before: Range<Instant>,
    during: Range<Instant>,
    after: Range<Instant>,
}

impl Foreground {
    /// Starts so many requests in a second, and waits for so many seconds, which are counted. [`create_read_items`] was called.
    pub async fn start(server: &Server, requests: &Arc<Requests>, (rate, seconds): (u32, f64)) -> Foreground {
        let plan_requests = requests.clone();
        let steal = StealWatch::start();
        let load = OpenLoop::start(server.address, rate, FOREGROUND, move |number| {
            plan(&plan_requests, number)
        });
        tokio::time::sleep(WARM_UP).await;
        let (counted_from, seconds) = (Instant::now(), Duration::from_secs_f64(seconds));
        tokio::time::sleep(seconds).await;
        Foreground {
            load,
            steal,
            counted_from,
            seconds,
        }
    }

    /// Counts as many seconds after it ended, too, and stops.
    ///
    /// # Errors
    /// The first failed request.
    pub async fn finish(self, during: Range<Instant>) -> Result<Round> {
        tokio::time::sleep(REST).await;
        let after = Instant::now();
        tokio::time::sleep(self.seconds).await;
        Ok(Round {
            samples: self.load.finish().await?,
            stolen: self.steal.finish(),
            before: self.counted_from..during.start,
            after: after..after + self.seconds,
            during,
        })
    }
}

impl Round {
    /// How long it took.
    pub fn seconds(&self) -> f64 {
        (self.during.end - self.during.start).as_secs_f64()
    }

    /// The samples as lines of comma-separated values, with milliseconds since it began and microseconds to the response.
    pub fn to_csv(&self) -> String {
        let mut text = String::from("kind,ms,us\n");
        let began = self.during.start;
        for Sample {
            kind,
            intended,
            latency,
            ..
        } in &self.samples
        {
            let since = intended.saturating_duration_since(began).as_secs_f64();
            let until = began.saturating_duration_since(*intended).as_secs_f64();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{kind:?},{:.0},{:.0}", (since - until) * 1e3, micros(*latency));
        }
        text
    }

    fn latencies(&self, kind: Kind, times: &[&Range<Instant>], only_quiet: bool) -> Latencies {
        let inside = self.samples.iter().filter(|sample| {
            sample.kind == kind
                && times.iter().any(|time| time.contains(&sample.intended))
                && (!only_quiet || self.stolen.is_quiet(sample.intended))
        });
        inside.map(|sample| sample.latency).collect()
    }

    fn quiet_seconds(&self, times: &[&Range<Instant>]) -> f64 {
        let quiet = times.iter().map(|time| self.stolen.quiet_between(time.start, time.end));
        quiet.sum::<Duration>().as_secs_f64()
    }

    fn without(&self) -> [&Range<Instant>; 2] {
        [&self.before, &self.after]
    }
}

/// The latencies beside it and without it, for each operation; and the same in the seconds in which the machine had its processors for itself.
pub fn latencies(rounds: &[Round]) -> String {
    let seconds = |times: fn(&Round) -> f64| median(rounds.iter().map(times));
    format!(
        "{}\n\nOnly the seconds in which the machine had its processors for itself (median of the rounds: {:.0} s beside it, {:.0} s without):\n\n{}",
        table(rounds, false),
        seconds(|round| round.quiet_seconds(&[&round.during])),
        seconds(|round| round.quiet_seconds(&round.without())),
        table(rounds, true)
    )
}

fn table(rounds: &[Round], only_quiet: bool) -> Table {
    let mut table = Table::new([
        "operation",
        "p50 without µs",
        "p50 beside µs",
        "p99 without µs",
        "p99 beside µs",
        "p99 ratio",
    ]);
    for (name, kind) in [("point read", Kind::Read), ("create", Kind::Create)] {
        let pairs: Vec<[Latencies; 2]> = rounds
            .iter()
            .map(|round| {
                let beside = round.latencies(kind, &[&round.during], only_quiet);
                [round.latencies(kind, &round.without(), only_quiet), beside]
            })
            .collect();
        let figure = |of: &Latencies, percent| micros(of.percentile(percent));
        let cell =
            |percent, side: usize| format!("{:.0}", median(pairs.iter().map(|pair| figure(&pair[side], percent))));
        let ratios = pairs
            .iter()
            .map(|[without, beside]| (figure(beside, 99.0), figure(without, 99.0)));
        table.row([
            name.to_owned(),
            cell(50.0, 0),
            cell(50.0, 1),
            cell(99.0, 0),
            cell(99.0, 1),
            match median_ratio(ratios) {
                ratio if ratio.is_finite() => format!("{ratio:.2}"),
                // No second was quiet.
                _ => "–".to_owned(),
            },
        ]);
    }
    table
}

/// Creates the items that are read.
pub async fn create_read_items(control: &mut Connection, requests: &Requests) -> Result<()> {
    for number in 0..READ_ITEMS {
        let create = requests.create(&item::id(READ_IDS + number), NEVER);
        control.expect(201, &create).await?;
    }
    Ok(())
}

/// The `number`-th request: reads and creates in turn.
fn plan(requests: &Requests, number: u64) -> Planned<Kind> {
    if number.is_multiple_of(2) {
        let id = item::id(READ_IDS + number / 2 * 31 % READ_ITEMS);
        return Planned {
            kind: Kind::Read,
            request: requests.read(&id),
            expected: 200,
        };
    }
    let id = item::id(CREATED_IDS + number);
    Planned {
        kind: Kind::Create,
        request: requests.create(&id, NEVER),
        expected: 201,
    }
}
