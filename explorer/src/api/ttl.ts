// When an item ends: the rule of the server, for items that it has just sent, so that no request is needed for each of them.

import type { Container, Item } from "./account";

const LARGEST = 2_147_483_647;

/** The second at whose beginning a live item ends; `null` if it does not. The item's own ttl goes before the default, and counts only if there is one. */
export function endOf(item: Item, container: Pick<Container, "defaultTtl">): number | null {
  const fallback = container.defaultTtl;
  if (fallback === undefined || fallback === null) return null;
  const own = item.ttl;
  const counts = typeof own === "number" && Number.isInteger(own) && (own === -1 || (own >= 1 && own <= LARGEST));
  const seconds = counts ? own : fallback;
  return seconds === -1 ? null : item._ts + seconds;
}

/** The same as a condition of a query: what would have ended by a second if `defaultTtl` was the default. */
export function endedCondition(defaultTtl: number, second: number): string {
  const own = `(IS_INTEGER(c.ttl) AND (c.ttl = -1 OR (c.ttl >= 1 AND c.ttl <= ${LARGEST})))`;
  const byOwn = `(${own} AND c.ttl != -1 AND c._ts + c.ttl <= ${second})`;
  return defaultTtl === -1 ? byOwn : `${byOwn} OR (NOT ${own} AND c._ts + ${defaultTtl} <= ${second})`;
}

const UNITS: [name: string, seconds: number][] = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
];

/** A span in words: seconds in the last minute, otherwise its two largest units. */
export function span(seconds: number): string {
  if (seconds < 60) return `${Math.max(0, seconds)} s`;
  const at = UNITS.findIndex(([, size]) => seconds >= size);
  const [name, size] = UNITS[at] ?? ["min", 60];
  const [next, nextSize] = UNITS[at + 1] ?? ["s", 1];
  const rest = Math.floor((seconds % size) / nextSize);
  const first = `${Math.floor(seconds / size)} ${name}`;
  return rest === 0 ? first : `${first} ${rest} ${next}`;
}
