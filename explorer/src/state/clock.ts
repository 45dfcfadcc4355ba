// The server's clock: asked now and then, and gone on with in between unless it is a virtual one, which stands still.

import { signal } from "@preact/signals";
import { type ServerClock, readClock } from "../api/account";
import { client, wordsOf } from "./session";

const ASK_EVERY_MS = 5_000;
const ASK_VIRTUAL_EVERY_MS = 1_000;

/** Server time in milliseconds, at most a second old. */
export const now = signal(Date.now());
export const isVirtual = signal(false);

/** Why the server's time is not known, or was not moved. */
export const clockProblem = signal<string | null>(null);

let asked: { clock: ServerClock; at: number } | null = null;
/** When what is known was asked for, so that an older answer does not come after it. */
let newest = 0;

/** Asks for the time, or moves it, and takes over the answer. */
export async function askClock(ask: () => Promise<ServerClock>): Promise<void> {
  const began = performance.now();
  try {
    const clock = await ask();
    clockProblem.value = null;
    if (began < newest) return;
    newest = began;
    asked = { clock, at: performance.now() };
    isVirtual.value = clock.mode === "virtual";
    tick();
  } catch (error) {
    clockProblem.value = wordsOf(error);
  }
}

function tick(): void {
  if (asked === null) return;
  const passed = asked.clock.mode === "virtual" ? 0 : performance.now() - asked.at;
  now.value = asked.clock.nowMs + passed;
}

/** Keeps the time until the returned function is called. */
export function keepTime(): () => void {
  let last = Number.NEGATIVE_INFINITY;
  let isAsking = false;
  const keep = async (): Promise<void> => {
    const known = client.peek();
    if (known === null || document.hidden) return;
    tick();
    const every = isVirtual.peek() ? ASK_VIRTUAL_EVERY_MS : ASK_EVERY_MS;
    if (isAsking || performance.now() - last < every) return;
    last = performance.now();
    isAsking = true;
    await askClock(() => readClock(known));
    isAsking = false;
  };
  void keep();
  const timer = setInterval(() => void keep(), 250);
  return () => clearInterval(timer);
}
