// Why an item is there or gone, in words.

import type { TtlWhy } from "./account";

const RULES: Record<string, (why: TtlWhy) => string> = {
  own: (why) => `its own ttl of ${JSON.stringify(why.ttl)} seconds counts from its last write`,
  default: (why) => `the container's default of ${why.defaultTtl} seconds counts from its last write`,
  never: () => "it never ends: its ttl, or the container's default, is −1",
  off: () => "the container has no default, so no item ends",
  floor: () => "it had ended under an earlier default, and does not come back",
  date: () => "an index of the collection ends it at the date that it has",
};

export function inWords(why: TtlWhy): string {
  if (why.state === "absent") return "There is no such item: it was never there, was deleted, or has ended and was purged.";
  const rule = RULES[why.rule]?.(why) ?? `by the rule "${why.rule}"`;
  const end = why.expiresAtSeconds === null ? "" : ` It ends at ${new Date(why.expiresAtSeconds * 1_000).toISOString()}.`;
  return why.state === "live" ? `It is there: ${rule}.${end}` : `It is gone, and not purged yet: ${rule}.`;
}
