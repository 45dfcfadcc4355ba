// Queries, and their results as a table or as JSON.

import { useRef, useState } from "preact/hooks";
import { type Container, explain, keyOf, type Place, query } from "../../api/account";
import type { Client } from "../../api/client";
import { Editor } from "../../editor/editor";
import { wordsOf } from "../../state/session";
import { Problem } from "../../ui/notice";

interface Result {
  rows: unknown[];
  continuation: string | null;
  charge: number;
  took: number;
}

const stored = (place: Place): string => `bolide.query.${keyOf(place)}`;

export function Query({ client, place, container }: { client: Client; place: Place; container: Container }) {
  const [text, setText] = useState(localStorage.getItem(stored(place)) ?? "SELECT * FROM c");
  const [result, setResult] = useState<Result | null>(null);
  const [plan, setPlan] = useState<unknown>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [shape, setShape] = useState<"table" | "json">("table");
  const [isBusy, setBusy] = useState(false);
  const stop = useRef<AbortController | null>(null);
  const names = useRef(new Set(["id", "_ts", "ttl", ...container.partitionKey.paths.map((path) => path.split("/")[1] ?? "")]));

  const change = (typed: string): void => {
    setText(typed);
    localStorage.setItem(stored(place), typed);
  };
  const attempt = async (what: (signal: AbortSignal) => Promise<void>): Promise<void> => {
    stop.current?.abort();
    const mine = new AbortController();
    stop.current = mine;
    setBusy(true);
    try {
      await what(mine.signal);
      setProblem(null);
    } catch (error) {
      if (!mine.signal.aborted) setProblem(wordsOf(error));
    } finally {
      if (stop.current === mine) setBusy(false);
    }
  };
  const run = (after: Result | null): Promise<void> =>
    attempt(async (signal) => {
      const answer = await query(client, place, text, after?.continuation ?? null, signal);
      for (const row of answer.body.rows.slice(0, 100)) {
        if (typeof row === "object" && row !== null) Object.keys(row).forEach((name) => names.current.add(name));
      }
      setPlan(null);
      setResult({
        rows: [...(after?.rows ?? []), ...answer.body.rows],
        continuation: answer.body.continuation,
        charge: (after?.charge ?? 0) + answer.charge,
        took: (after?.took ?? 0) + answer.took,
      });
    });
  const showPlan = (): Promise<void> => attempt(async () => setPlan(await explain(client, place, text)));

  return (
    <div class="query">
      <Editor language="sql" label="Query" text={text} onChange={change} onRun={() => void run(null)} names={() => [...names.current]} />
      <div class="tools">
        <button class="primary" onClick={() => void run(null)} title="Ctrl+Enter">
          Run
        </button>
        {isBusy && <button onClick={() => stop.current?.abort()}>Stop</button>}
        <button onClick={() => void showPlan()}>Plan</button>
        <span class="space" />
        {result !== null && (
          <>
            <span class="muted" role="status">
              {result.rows.length} {result.rows.length === 1 ? "row" : "rows"}
              {result.continuation !== null && " so far"} · {result.charge.toFixed(2)} RU · {result.took.toFixed(0)} ms
            </span>
            <button aria-pressed={shape === "table"} onClick={() => setShape("table")}>
              Table
            </button>
            <button aria-pressed={shape === "json"} onClick={() => setShape("json")}>
              JSON
            </button>
          </>
        )}
      </div>
      <Problem text={problem} />
      {plan !== null && <Editor language="json" label="Plan" isReadOnly text={JSON.stringify(plan, null, 2)} />}
      {plan === null && result !== null && shape === "table" && <Table rows={result.rows} />}
      {plan === null && result !== null && shape === "json" && (
        <Editor language="json" label="Results" isReadOnly text={JSON.stringify(result.rows, null, 2)} />
      )}
      {result !== null && result.continuation !== null && <button onClick={() => void run(result)}>More</button>}
    </div>
  );
}

/** Rows by the members that they have. */
function Table({ rows }: { rows: readonly unknown[] }) {
  const columns = new Set<string>();
  for (const row of rows.slice(0, 100)) {
    if (isObject(row)) Object.keys(row).filter((name) => !/^_(rid|self|etag|attachments)$/.test(name)).forEach((name) => columns.add(name));
  }
  const names = [...columns];
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls can be reached with the keyboard
    <div class="table" tabIndex={0} role="region" aria-label="Results">
      <table>
        <thead>
          <tr>{names.length === 0 ? <th>value</th> : names.map((name) => <th key={name}>{name}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {isObject(row) && names.length > 0 ? (
                names.map((name) => <td key={name}>{cell(row[name])}</td>)
              ) : (
                <td colSpan={Math.max(1, names.length)}>{cell(row)}</td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function cell(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
