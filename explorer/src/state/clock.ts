// The server's clock: asked now and then, and gone on with in between unless it is a virtual one, which stands still.

import { signal } from "@preact/signals";
import { type ServerClock, readClock } from "../api/account";
import { client } from "./session";

const ASK_EVERY_MS = 5_000;
const ASK_VIRTUAL_EVERY_MS = 1_000;

/** Server time in milliseconds, at most a second old. */
export const now = signal(Date.now());
export const isVirtual = signal(false);

let asked: { clock: ServerClock; at: number } | null = null;

/** Takes over what the server has just said. */
export function learn(clock: ServerClock): void {
  asked = { clock, at: performance.now() };
  isVirtual.value = clock.mode === "virtual";
  tick();
}

function tick(): void {
  if (asked === null) return;
  const passed = asked.clock.mode === "virtual" ? 0 : performance.now() - asked.at;
  now.value = asked.clock.nowMs + passed;
}

/** Keeps the time until the returned function is called. */
export function keepTime(): () => void {
  const ask = async (): Promise<void> => {
    const known = client.peek();
    if (known === null || document.hidden) return;
    const since = asked === null ? Number.POSITIVE_INFINITY : performance.now() - asked.at;
    if (since < (isVirtual.peek() ? ASK_VIRTUAL_EVERY_MS : ASK_EVERY_MS)) return tick();
    try {
      learn(await readClock(known));
    } catch {
      // The next one may be answered; views show what fails in them.
    }
  };
  void ask();
  const timer = setInterval(() => void ask(), 250);
  return () => clearInterval(timer);
}
