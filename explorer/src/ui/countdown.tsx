// How long an item has left, by the server's clock.

import { span } from "../api/ttl";
import { now } from "../state/clock";

/** `end`: in seconds; `null`: never; `undefined`: that is not known. */
export function Countdown({ end }: { end: number | null | undefined }) {
  if (end === undefined) return null;
  if (end === null) return <span class="countdown muted">stays</span>;
  const left = Math.ceil(end - now.value / 1_000);
  const urgency = left <= 0 ? "gone" : left < 60 ? "soon" : "";
  return (
    <span class={`countdown ${urgency}`} title={`ends at ${new Date(end * 1_000).toISOString()}`}>
      {left <= 0 ? "gone" : span(left)}
    </span>
  );
}
