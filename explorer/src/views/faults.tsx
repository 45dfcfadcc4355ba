// Rules by which the server answers with errors, or late, for tests of programs.

import { useEffect, useState } from "preact/hooks";
import { ServerError } from "../api/client";
import { faultRules, setFaultRules } from "../api/requests";
import { Editor } from "../editor/editor";
import { client } from "../state/session";
import { useAttempt } from "../ui/attempt";
import { Empty, Problem } from "../ui/notice";

const EXAMPLE = [{ match: { operation: "CreateItem" }, status: 429, subStatus: 3200, retryAfterMs: 100, times: 3 }];

export function Faults() {
  const known = client.value;
  const [text, setText] = useState<string | null>(null);
  const [isOff, setOff] = useState(false);
  const [said, setSaid] = useState<string | null>(null);
  const [problem, attempt] = useAttempt();
  const load = (): Promise<void> =>
    attempt(async () => {
      if (known === null) return;
      try {
        setText(JSON.stringify(await faultRules(known), null, 2));
      } catch (error) {
        if (!(error instanceof ServerError && error.status === 403)) throw error;
        setOff(true);
      }
    });
  useEffect(() => void load(), [known]);
  const change = (typed: string): void => {
    setText(typed);
    setSaid(null);
  };
  const save = (rules: string): Promise<void> =>
    attempt(async () => {
      setSaid(null);
      if (known === null) return;
      await setFaultRules(known, rules);
      const left = JSON.stringify(await faultRules(known), null, 2);
      // Unless something was typed since then.
      setText((typed) => (typed === text ? left : typed));
      setSaid("Set.");
    });
  return (
    <section class="page settings">
      <h1>Faults</h1>
      {isOff ? (
        <Empty title="Faults are not injected">
          <p>A server that was started with --enable-faults answers as rules say: with 429 or 503, or late. So programs can be tested.</p>
        </Empty>
      ) : (
        <>
          <p class="muted">
            Requests that fit a rule are answered so: members of “match” are method, resource, operation and container; then status, subStatus, retryAfterMs, delayMs,
            and how many times. The first rule that fits counts.
          </p>
          {text !== null && <Editor language="json" label="Rules as JSON" text={text} onChange={change} onRun={() => void save(text)} />}
          <Problem text={problem} />
          <div class="tools">
            <button class="primary" disabled={text === null} onClick={() => void save(text ?? "[]")}>
              Set
            </button>
            <button onClick={() => change(JSON.stringify(EXAMPLE, null, 2))}>Example</button>
            <button onClick={() => void load()}>What is left</button>
            <button onClick={() => void save("[]")}>Clear</button>
            {said !== null && <span role="status">{said}</span>}
          </div>
        </>
      )}
    </section>
  );
}
