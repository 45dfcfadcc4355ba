// Moves the server's virtual clock.

import { moveClock, ttlReport } from "../api/account";
import { learn, now } from "../state/clock";
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
    if (known !== null) learn(await moveClock(known, to));
  };
  const jump = async (): Promise<void> => {
    const [known, what] = [client.peek(), shown.peek()];
    if (known === null || what.page !== "container") return;
    const next = (await ttlReport(known, what.place)).nextExpirySeconds;
    if (next !== null && next * 1_000 > now.peek()) await move({ setMs: next * 1_000 });
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
