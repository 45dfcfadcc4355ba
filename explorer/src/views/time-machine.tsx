// Moves the server's virtual clock.

import { moveClock, readClock, ttlReport } from "../api/account";
import { askClock, now } from "../state/clock";
import { shown } from "../state/place";
import { client } from "../state/session";

const STEPS: [name: string, seconds: number][] = [
  ["+1 s", 1],
  ["+1 min", 60],
  ["+1 h", 3_600],
  ["+1 d", 86_400],
];

export function TimeMachine() {
  const move = async (to: Parameters<typeof moveClock>[1]): Promise<void> => {
    const known = client.peek();
    if (known !== null) await askClock(() => moveClock(known, to));
  };
  const jump = async (): Promise<void> => {
    const [known, what] = [client.peek(), shown.peek()];
    if (known === null || what.page !== "container") return;
    await askClock(async () => {
      const next = (await ttlReport(known, what.place)).nextExpirySeconds;
      return next !== null && next * 1_000 > now.peek() ? moveClock(known, { setMs: next * 1_000 }) : readClock(known);
    });
  };
  return (
    <div class="tools" role="group" aria-label="Time machine">
      {STEPS.map(([name, seconds]) => (
        <button key={name} onClick={() => void move({ advanceMs: seconds * 1_000 })}>
          {name}
        </button>
      ))}
      {shown.value.page === "container" && <button onClick={() => void jump()}>Next expiry</button>}
    </div>
  );
}
