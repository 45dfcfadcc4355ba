// The throughput of a container.

/** The throughput of a container, in request units per second. `null`: that of its database, or the server's default. */
export interface Throughput {
  kind: "manual" | "autoscale";
  units: number;
}

/** The headers that ask for it when a container is created. */
export function throughputHeaders(throughput: Throughput | null): Record<string, string> {
  if (throughput === null) return {};
  return throughput.kind === "manual"
    ? { "x-ms-offer-throughput": String(throughput.units) }
    : { "x-ms-cosmos-offer-autopilot-settings": JSON.stringify({ maxThroughput: throughput.units }) };
}
