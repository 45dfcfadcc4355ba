// The server's metrics, which are in the text format of Prometheus.

import type { Client } from "./client";

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

export function parse(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split("\n")) {
    const [, name, labels = "", value] = LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) continue;
    const pairs = [...labels.matchAll(LABEL)].map((match) => [match[1], unescape(match[2] ?? "")] as const);
    samples.push({ name, labels: Object.fromEntries(pairs), value: value === "+Inf" ? Number.POSITIVE_INFINITY : Number(value) });
  }
  return samples;
}

function unescape(text: string): string {
  return text.replace(/\\(.)/g, (_, one: string) => (one === "n" ? "\n" : one));
}

export async function metrics(client: Client): Promise<Sample[]> {
  return parse((await client.adminText("GET", "metrics", { headers: { accept: "*/*" } })).body);
}

/** The sum of a metric over all labels, or over those that fit. */
export function sum(samples: readonly Sample[], name: string, fits: (labels: Sample["labels"]) => boolean = () => true): number {
  return samples.reduce((all, sample) => (sample.name === name && fits(sample.labels) ? all + sample.value : all), 0);
}
