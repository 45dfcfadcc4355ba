// What the server does, as lines that go on while the page is open.

import { useState } from "preact/hooks";
import { metrics, type Sample, sum } from "../api/metrics";
import { client } from "../state/session";
import { Chart } from "../ui/chart";
import { Problem } from "../ui/notice";
import { usePolling } from "../ui/poll";

const ASK_EVERY_MS = 1_000;
/** Seconds that are shown. */
const KEPT = 120;

/** What is shown of two samples and the seconds between them. */
const LINES: [title: string, unit: string, of: (now: Sample[], before: Sample[], seconds: number) => number][] = [
  ["Requests", "per second", rate("bolide_requests_total")],
  ["Errors of clients", "per second", rate("bolide_requests_total", (labels) => labels["status"] === "4xx")],
  ["Throttled", "per second", rate("bolide_throttled_total")],
  ["Charge", "RU per second", rate("bolide_request_charge_total")],
  ["Time of a request", "ms on average", latency],
  ["Items", "in all containers", (now) => sum(now, "bolide_container_items")],
  ["Ended, not purged yet", "items", (now) => sum(now, "bolide_ttl_backlog_items")],
  ["Purged", "per second", rate("bolide_ttl_purged_total")],
  ["Memory of requests", "MB", (now) => sum(now, "bolide_memory_used_bytes") / 1e6],
  ["Connections", "open", (now) => sum(now, "bolide_connections")],
];

function rate(name: string, fits?: (labels: Sample["labels"]) => boolean): (now: Sample[], before: Sample[], seconds: number) => number {
  // A counter that is lower than before belongs to a server that has begun anew.
  return (now, before, seconds) => Math.max(0, sum(now, name, fits) - sum(before, name, fits)) / seconds;
}

function latency(now: Sample[], before: Sample[]): number {
  const [total, count] = ["bolide_request_duration_seconds_sum", "bolide_request_duration_seconds_count"].map(
    (name) => sum(now, name) - sum(before, name),
  ) as [number, number];
  return count <= 0 ? 0 : (1_000 * total) / count;
}

export function Metrics() {
  const known = client.value;
  const [lines, setLines] = useState<number[][]>(LINES.map(() => []));
  const [operations, setOperations] = useState<[name: string, requests: number][]>([]);
  const problem = usePolling(
    ASK_EVERY_MS,
    () => {
      let before: { samples: Sample[]; at: number } | null = null;
      return {
        ask: async () => (known === null ? null : metrics(known)),
        take: (samples) => {
          const [last, at] = [before, performance.now()];
          before = { samples, at };
          setOperations(byOperation(samples));
          if (last === null) return;
          const seconds = (at - last.at) / 1_000;
          setLines((shown) => shown.map((values, line) => [...values, LINES[line]?.[2](samples, last.samples, seconds) ?? 0].slice(-KEPT)));
        },
      };
    },
    [known],
  );
  return (
    <section class="page">
      <h1>Metrics</h1>
      <Problem text={problem} />
      <div class="charts">
        {LINES.map(([title, unit], line) => (
          <Chart key={title} title={title} unit={unit} values={lines[line] ?? []} capacity={KEPT} />
        ))}
      </div>
      <table>
        <caption class="muted">Requests since the server began</caption>
        <thead>
          <tr>
            <th>Operation</th>
            <th class="number">Requests</th>
          </tr>
        </thead>
        <tbody>
          {operations.map(([name, requests]) => (
            <tr key={name}>
              <td>{name}</td>
              <td class="number">{requests.toLocaleString()}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function byOperation(samples: readonly Sample[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const { name, labels, value } of samples) {
    const operation = labels["operation"];
    if (name === "bolide_requests_total" && operation !== undefined) counts.set(operation, (counts.get(operation) ?? 0) + value);
  }
  return [...counts].sort((one, other) => other[1] - one[1]);
}
