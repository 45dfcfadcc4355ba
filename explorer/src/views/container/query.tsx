// Queries, and their results as a table or as JSON.

import { useRef, useState } from "preact/hooks";
import { type Container, explain, type IndexUse, keyOf, measuredQuery, type Place, type QueryMetrics } from "../../api/account";
import type { Client } from "../../api/client";
import { codeOf } from "../../api/code";
import { Editor } from "../../editor/editor";
import { history, remember } from "../../state/history";
import { server } from "../../state/session";
import { useStoppable } from "../../ui/attempt";
import { download } from "../../ui/download";
import { Problem } from "../../ui/notice";
import { QueryTabs } from "../../ui/query-tabs";
import { ValueTree } from "../../ui/value-tree";

const SHAPES = ["Table", "JSON", "Tree"] as const;
type Shape = (typeof SHAPES)[number];

interface Result {
  /** The text of the query. */
  of: string;
  rows: unknown[];
  continuation: string | null;
  charge: number;
  took: number;
  /** Of the last page. */
  metrics: QueryMetrics;
}

interface Properties {
  client: Client;
  place: Place;
  container: Container;
}

export function Query({ client, place, container }: Properties) {
  return (
    <QueryTabs
      place={place}
      kind="sql"
      render={(text, onChange) => <One client={client} place={place} container={container} text={text} onChange={onChange} />}
    />
  );
}

interface OneProperties extends Properties {
  text: string;
  onChange: (text: string) => void;
}

/** One query and its results. */
function One({ client, place, container, text, onChange: change }: OneProperties) {
  const [result, setResult] = useState<Result | null>(null);
  const [plan, setPlan] = useState<unknown>(null);
  const [showsMetrics, setShowsMetrics] = useState(false);
  const [shape, setShape] = useState<Shape>("Table");
  const [language, setLanguage] = useState<string | null>(null);
  const { problem, isBusy, attempt, stop } = useStoppable();
  const names = useRef(new Set(["id", "_ts", "ttl", ...container.partitionKey.paths.map((path) => path.split("/")[1] ?? "")]));

  const run = (after: Result | null): Promise<void> =>
    attempt(async (signal) => {
      const of = after?.of ?? text;
      const answer = await measuredQuery(client, place, of, after?.continuation ?? null, signal);
      for (const row of answer.body.rows.slice(0, 100)) {
        if (typeof row === "object" && row !== null) Object.keys(row).forEach((name) => names.current.add(name));
      }
      setPlan(null);
      setLanguage(null);
      remember(place, of);
      setResult({
        of,
        rows: [...(after?.rows ?? []), ...answer.body.rows],
        continuation: answer.body.continuation,
        charge: (after?.charge ?? 0) + answer.charge,
        took: (after?.took ?? 0) + answer.took,
        metrics: answer.body.metrics,
      });
    });
  const showPlan = (): Promise<void> =>
    attempt(async (signal) => {
      setLanguage(null);
      const found = await explain(client, place, text, signal);
      if (!signal.aborted) setPlan(found);
    });
  const codes = codeOf(place, text, server.value?.endpoint ?? "");
  const code = codes.find((code) => code.language === language) ?? null;
  const earlier = history.value.filter((entry) => entry.of === keyOf(place));

  return (
    <>
      <Editor language="sql" label="Query" text={text} onChange={change} onRun={() => void run(null)} names={() => [...names.current]} />
      <div class="tools">
        <button class="primary" onClick={() => void run(null)} title="Ctrl+Enter">
          Run
        </button>
        {isBusy && <button onClick={stop}>Stop</button>}
        <button onClick={() => void showPlan()}>Plan</button>
        <select aria-label="As code" value={language ?? ""} onChange={(event) => setLanguage(event.currentTarget.value || null)}>
          <option value="">Code…</option>
          {codes.map((code) => (
            <option key={code.language}>{code.language}</option>
          ))}
        </select>
        {earlier.length > 0 && (
          <select aria-label="Earlier queries" value="" onChange={(event) => change(event.currentTarget.value)}>
            <option value="">Earlier…</option>
            {earlier.map((entry) => (
              <option key={entry.text} value={entry.text}>
                {entry.text.replace(/\s+/g, " ").slice(0, 80)}
              </option>
            ))}
          </select>
        )}
        <span class="space" />
        {result !== null && (
          <>
            <span class="muted" role="status">
              {result.rows.length} {result.rows.length === 1 ? "row" : "rows"}
              {result.continuation !== null && " so far"} · {result.charge.toFixed(2)} RU · {result.took.toFixed(0)} ms
            </span>
            <button aria-pressed={showsMetrics} onClick={() => setShowsMetrics(!showsMetrics)}>
              Metrics
            </button>
            {SHAPES.map((name) => (
              <button key={name} aria-pressed={shape === name} onClick={() => setShape(name)}>
                {name}
              </button>
            ))}
            <button onClick={() => download(`${place.container}.json`, JSON.stringify(result.rows, null, 2))}>Download</button>
          </>
        )}
      </div>
      <Problem text={problem} />
      {showsMetrics && result !== null && <Metrics of={result.metrics} />}
      <Shown plan={plan} code={code?.text ?? null} rows={result?.rows ?? null} shape={shape} />
      {result !== null && result.continuation !== null && <button onClick={() => void run(result)}>More</button>}
    </>
  );
}

/** What the last page has cost in work, and which paths of the query have an index. */
function Metrics({ of }: { of: QueryMetrics }) {
  const figures: [name: string, value: string][] = [
    ["Items read", of.retrievedItems.toLocaleString()],
    ["Bytes read", of.retrievedBytes.toLocaleString()],
    ["Rows", of.outputRows.toLocaleString()],
    ["Compiled in", `${of.compileMs.toFixed(2)} ms`],
    ["Run in", `${of.runMs.toFixed(2)} ms`],
    ["Paths with an index", specsOf(of.indexes?.UtilizedIndexes)],
    ["Paths without one", specsOf(of.indexes?.PotentialIndexes)],
  ];
  return (
    <dl class="figures" aria-label="Metrics">
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function specsOf(indexes: IndexUse | undefined): string {
  const single = indexes?.SingleIndexes.map((index) => index.IndexSpec) ?? [];
  const composite = indexes?.CompositeIndexes.map((index) => index.IndexSpecs.join(", ")) ?? [];
  return [...single, ...composite].join("; ") || "none";
}

interface ShownProperties {
  plan: unknown;
  code: string | null;
  rows: unknown[] | null;
  shape: Shape;
}

function Shown({ plan, code, rows, shape }: ShownProperties) {
  if (code !== null) {
    return (
        <pre class="value pane" tabIndex={0} role="region" aria-label="Code">
        {code}
      </pre>
    );
  }
  if (plan !== null) return <Editor language="json" label="Plan" isReadOnly text={JSON.stringify(plan, null, 2)} />;
  if (rows === null) return null;
  switch (shape) {
    case "Table":
      return <Table rows={rows} />;
    case "JSON":
      return <Editor language="json" label="Results" isReadOnly text={JSON.stringify(rows, null, 2)} />;
    case "Tree":
      return <ValueTree value={rows} />;
  }
}

/** Rows by the members that they have. */
function Table({ rows }: { rows: readonly unknown[] }) {
  const columns = new Set<string>();
  for (const row of rows.slice(0, 100)) {
    if (isObject(row)) Object.keys(row).filter((name) => !/^_(rid|self|etag|attachments)$/.test(name)).forEach((name) => columns.add(name));
  }
  const names = [...columns];
  return (
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
