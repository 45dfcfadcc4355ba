//! Metrics for Prometheus: requests by operation and status, their durations and charges.
//!
//! Counters are plain atomics in tables by operation, so counting a request needs a few of them and no lock. The text is written here, because the
//! crate `prometheus-client` writes only OpenMetrics, with other names of counters and other texts for bucket bounds.

mod exposition;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bolide_core::{ContainerFigures, DefinitionUsage, MemoryBudget, Node, TtlState};

use crate::forwarding::Figures;
use crate::operation::Operation;
use crate::wire::Reply;
use exposition::Exposition;

/// Upper ends of the latency buckets, in microseconds.
const BUCKETS: [u64; 16] = [
    50, 100, 200, 400, 800, 1_500, 3_000, 6_000, 12_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000,
    30_000_000,
];

/// Counts requests by operation.
#[derive(Debug)]
pub(crate) struct Metrics {
    by_operation: Box<[Counters]>,
}

#[derive(Debug, Default)]
struct Counters {
    /// By the first digit of the status, from 2.
    by_class: [AtomicU64; 4],
    throttled: AtomicU64,
    charge_hundredths: AtomicU64,
    micros: AtomicU64,
    /// By bucket; requests slower than the last bound are in none.
    by_latency: [AtomicU64; BUCKETS.len()],
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            by_operation: Operation::all().map(|_| Counters::default()).collect(),
        }
    }
}

impl Metrics {
    /// Counts a request with its response.
    pub(crate) fn observe(&self, operation: Operation, reply: &Reply, duration: Duration) {
        let counters = &self.by_operation[operation as usize];
        let status = reply.status.as_u16();
        let class = usize::from(status / 100).saturating_sub(2).min(3);
        let add = |counter: &AtomicU64, n| counter.fetch_add(n, Ordering::Relaxed);
        add(&counters.by_class[class], 1);
        if status == 429 {
            add(&counters.throttled, 1);
        }
        add(&counters.charge_hundredths, (reply.charge.0 * 100.0).round() as u64);
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        add(&counters.micros, micros);
        if let Some(bucket) = counters.by_latency.get(BUCKETS.partition_point(|end| *end < micros)) {
            add(bucket, 1);
        }
    }

    /// All metrics as Prometheus text, including those of containers.
    pub(crate) fn render(&self, containers: &[ContainerFigures]) -> String {
        let mut page = Exposition::default();
        self.render_requests(&mut page);
        self.render_latencies(&mut page);
        render_containers(&mut page, containers);
        page.text
    }

    fn active(&self) -> impl Iterator<Item = (&'static str, &Counters)> {
        let named = Operation::all().zip(&self.by_operation);
        named
            .filter(|(_, counters)| counters.requests() > 0)
            .map(|(operation, counters)| (operation.name(), counters))
    }

    fn render_requests(&self, page: &mut Exposition) {
        page.family(
            "bolide_requests_total",
            "counter",
            "Requests answered, by operation and class of status.",
        );
        for (operation, counters) in self.active() {
            for (class, count) in ["2xx", "3xx", "4xx", "5xx"].iter().zip(&counters.by_class) {
                page.sample(
                    "bolide_requests_total",
                    &[("operation", operation), ("status", class)],
                    load(count) as f64,
                );
            }
        }
        page.family("bolide_throttled_total", "counter", "Requests answered 429.");
        for (operation, counters) in self.active() {
            page.sample(
                "bolide_throttled_total",
                &[("operation", operation)],
                load(&counters.throttled) as f64,
            );
        }
        page.family("bolide_request_charge_total", "counter", "Request units charged.");
        for (operation, counters) in self.active() {
            let charge = load(&counters.charge_hundredths) as f64 / 100.0;
            page.sample("bolide_request_charge_total", &[("operation", operation)], charge);
        }
    }

    fn render_latencies(&self, page: &mut Exposition) {
        const NAME: &str = "bolide_request_duration_seconds";
        page.family(NAME, "histogram", "Time from a request's head to its answer.");
        for (operation, counters) in self.active() {
            let mut cumulated = 0;
            for (end, bucket) in BUCKETS.iter().zip(&counters.by_latency) {
                cumulated += load(bucket);
                let end = (*end as f64 / 1e6).to_string();
                page.sample(
                    "bolide_request_duration_seconds_bucket",
                    &[("operation", operation), ("le", &end)],
                    cumulated as f64,
                );
            }
            let requests = counters.requests() as f64;
            page.sample(
                "bolide_request_duration_seconds_bucket",
                &[("operation", operation), ("le", "+Inf")],
                requests,
            );
            page.sample(
                "bolide_request_duration_seconds_sum",
                &[("operation", operation)],
                load(&counters.micros) as f64 / 1e6,
            );
            page.sample(
                "bolide_request_duration_seconds_count",
                &[("operation", operation)],
                requests,
            );
        }
    }
}

impl Counters {
    fn requests(&self) -> u64 {
        self.by_class.iter().map(load).sum()
    }
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// A family of metrics with a sample for each container that has a value.
struct ContainerFamily {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    figure: fn(&ContainerFigures) -> Option<f64>,
}

/// Expiry and size of each container (TTL-272).
const CONTAINER_FAMILIES: [ContainerFamily; 10] = [
    ContainerFamily {
        name: "bolide_container_items",
        kind: "gauge",
        help: "Live items.",
        figure: |figures| Some(figures.usage.items as f64),
    },
    ContainerFamily {
        name: "bolide_container_bytes",
        kind: "gauge",
        help: "Bytes of live items.",
        figure: |figures| Some(figures.usage.bytes as f64),
    },
    ContainerFamily {
        name: "bolide_ttl_backlog_items",
        kind: "gauge",
        help: "Expired items not purged yet.",
        figure: |figures| Some(figures.ghosts.items as f64),
    },
    ContainerFamily {
        name: "bolide_ttl_backlog_bytes",
        kind: "gauge",
        help: "Bytes of expired items not purged yet.",
        figure: |figures| Some(figures.ghosts.bytes as f64),
    },
    ContainerFamily {
        name: "bolide_ttl_purged_total",
        kind: "counter",
        help: "Expired items removed.",
        figure: |figures| Some(figures.purged_total as f64),
    },
    ContainerFamily {
        name: "bolide_ttl_ru_spent_total",
        kind: "counter",
        help: "Request units spent on the purge.",
        figure: |figures| Some(figures.ru_spent_total),
    },
    ContainerFamily {
        name: "bolide_ttl_ru_billed_total",
        kind: "counter",
        help: "Of these, request units billed.",
        figure: |figures| Some(figures.ru_billed_total),
    },
    ContainerFamily {
        name: "bolide_ttl_oldest_pending_seconds",
        kind: "gauge",
        help: "Seconds since the oldest expired item that is not purged yet has expired.",
        figure: |figures| Some(figures.lag_seconds as f64),
    },
    ContainerFamily {
        name: "bolide_ttl_credit",
        kind: "gauge",
        help: "Request units that the purge may spend now; absent where it has no limit.",
        figure: |figures| figures.credit,
    },
    ContainerFamily {
        name: "bolide_ttl_purge_rate",
        kind: "gauge",
        help: "Expired items removed in a second, in the mean of the last minute.",
        figure: |figures| Some(figures.purge_rate),
    },
];

fn render_containers(page: &mut Exposition, containers: &[ContainerFigures]) {
    for family in CONTAINER_FAMILIES {
        page.family(family.name, family.kind, family.help);
        for figures in containers {
            let labels = [("database", &*figures.database_id), ("container", &*figures.id)];
            if let Some(value) = (family.figure)(figures) {
                page.sample(family.name, &labels, value);
            }
        }
    }
    page.family(
        "bolide_ttl_state",
        "gauge",
        "What the purge is up to: 1 for one of its states.",
    );
    for figures in containers {
        for state in TtlState::ALL {
            let labels = [
                ("database", &*figures.database_id),
                ("container", &*figures.id),
                ("state", state.name()),
            ];
            page.sample("bolide_ttl_state", &labels, f64::from(u8::from(figures.state == state)));
        }
    }
}

/// The resource use of the process.
pub(crate) fn render_process(memory: &MemoryBudget, definitions: DefinitionUsage, connections: usize) -> String {
    let mut page = Exposition::default();
    for (name, help, value) in [
        ("bolide_connections", "Open connections.", connections),
        (
            "bolide_memory_used_bytes",
            "Memory that requests hold now: bodies, answers, the state of queries and scripts.",
            memory.used_bytes(),
        ),
        (
            "bolide_memory_limit_bytes",
            "Memory that requests may hold together.",
            memory.limit_bytes(),
        ),
        (
            "bolide_definitions_used_bytes",
            "Memory that the definitions of databases, containers and all that belongs to them take.",
            definitions.used_bytes,
        ),
        (
            "bolide_definitions_limit_bytes",
            "Memory that definitions may take together.",
            definitions.limit_bytes,
        ),
    ] {
        page.family(name, "gauge", help);
        page.sample(name, &[], value as f64);
    }
    page.text
}

/// What this server knows of all that use the store.
pub(crate) struct Servers {
    pub live: usize,
    pub partitions_owned: u64,
    pub conflicts: u64,
    /// Seconds.
    pub clock_error: f64,
    /// Seconds.
    pub heartbeat_age: f64,
}

impl Servers {
    pub fn of(nodes: &[Node]) -> Servers {
        let own = nodes.iter().find(|node| node.is_self);
        Servers {
            live: nodes.len(),
            partitions_owned: own.map_or(0, |own| own.partitions_owned),
            conflicts: own.map_or(0, |own| own.conflicts),
            clock_error: own.map_or(0.0, |own| (own.clock.1.0 - own.clock.0.0) as f64 / 2_000.0),
            heartbeat_age: own.map_or(f64::INFINITY, |own| own.heartbeat_age.as_secs_f64()),
        }
    }
}

/// The servers of the store, as this one sees them.
pub(crate) fn render_servers(servers: &Servers) -> String {
    let mut page = Exposition::default();
    for (name, kind, help, value) in [
        (
            "bolide_servers",
            "gauge",
            "Live servers of the store, this one included.",
            servers.live as f64,
        ),
        (
            "bolide_partitions_owned",
            "gauge",
            "Partitions that this server purges.",
            servers.partitions_owned as f64,
        ),
        (
            "bolide_commit_conflicts_total",
            "counter",
            "Commits that were made again, because another server had committed first.",
            servers.conflicts as f64,
        ),
        (
            "bolide_clock_error_seconds",
            "gauge",
            "How far server time may be from that of the store.",
            servers.clock_error,
        ),
        (
            "bolide_heartbeat_age_seconds",
            "gauge",
            "Time since the last heartbeat of this server; infinite if the others take it for dead.",
            servers.heartbeat_age,
        ),
    ] {
        page.family(name, kind, help);
        page.sample(name, &[], value);
    }
    page.text
}

/// How the writes ended that another server had better commit.
pub(crate) fn render_forwarding(figures: &Figures) -> String {
    let mut page = Exposition::default();
    let name = "bolide_forwarded_writes_total";
    page.family(
        name,
        "counter",
        "Writes that another server had better commit, because several write their partition.",
    );
    for (outcome, counter) in [
        ("answered", &figures.answered),
        ("not_sent", &figures.not_sent),
        ("unknown", &figures.unknown),
    ] {
        page.sample(name, &[("outcome", outcome)], load(counter) as f64);
    }
    page.text
}

#[cfg(test)]
mod tests;
