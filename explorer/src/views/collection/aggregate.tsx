// Pipelines, and their results with the types of their values.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Place } from "../../api/account";
import type { Client } from "../../api/client";
import { Editor } from "../../editor/editor";
import { aggregateCommand, type Batch, type Cursor, close, explain, next } from "../../mongo/commands";
import { type Document, print, toExtended } from "../../mongo/value";
import { useStoppable } from "../../ui/attempt";
import { DocumentTable, DocumentTree } from "../../ui/documents";
import { download } from "../../ui/download";
import { Problem } from "../../ui/notice";
import { QueryTabs } from "../../ui/query-tabs";

const SHAPES = ["Text", "Table", "Tree"] as const;
type Shape = (typeof SHAPES)[number];

interface Properties {
  client: Client;
  place: Place;
}

interface Result {
  documents: Document[];
  charge: number;
  took: number;
  rest: Cursor | null;
}

export function Aggregate({ client, place }: Properties) {
  return (
    <QueryTabs
      place={place}
      kind="pipeline"
      render={(text, onChange) => <One client={client} place={place} text={text} onChange={onChange} />}
    />
  );
}

interface OneProperties extends Properties {
  text: string;
  onChange: (text: string) => void;
}

function One({ client, place, text, onChange: change }: OneProperties) {
  const [result, setResult] = useState<Result | null>(null);
  const [plan, setPlan] = useState<Document | null>(null);
  const [shape, setShape] = useState<Shape>("Text");
  const { problem, isBusy, attempt, stop } = useStoppable();
  const open = useRef<Cursor | null>(null);

  const forget = (): void => {
    close(client, open.current);
    open.current = null;
  };
  // Nobody waits for it any more.
  useEffect(() => forget, []);
  const run = (after: Result | null): Promise<void> =>
    attempt(async (signal) => {
      if (after === null) forget();
      let found: Batch;
      try {
        found = await next(client, after?.rest ?? aggregateCommand(place, text), signal);
      } catch (error) {
        // A cursor whose batch has failed, or was given up, does not go on.
        if (after !== null) setResult({ ...after, rest: null });
        open.current = null;
        throw error;
      }
      if (signal.aborted) return close(client, found.rest);
      open.current = found.rest;
      setPlan(null);
      setResult({
        documents: [...(after?.documents ?? []), ...found.documents],
        charge: (after?.charge ?? 0) + found.charge,
        took: (after?.took ?? 0) + found.took,
        rest: found.rest,
      });
    });
  const showPlan = (): Promise<void> =>
    attempt(async (signal) => {
      const found = await explain(client, aggregateCommand(place, text), signal);
      if (!signal.aborted) setPlan(found);
    });
  return (
    <>
      <Editor language="javascript" label="Pipeline" text={text} onChange={change} onRun={() => void run(null)} />
      <div class="tools">
        <button class="primary" onClick={() => void run(null)} title="Ctrl+Enter">
          Run
        </button>
        {isBusy && <button onClick={stop}>Stop</button>}
        <button onClick={() => void showPlan()}>Plan</button>
        <span class="space" />
        {result !== null && (
          <>
            <span class="muted" role="status">
              {result.documents.length} {result.documents.length === 1 ? "document" : "documents"}
              {result.rest !== null && " so far"} · {result.charge.toFixed(2)} RU · {result.took.toFixed(0)} ms
            </span>
            {SHAPES.map((name) => (
              <button key={name} aria-pressed={shape === name} onClick={() => setShape(name)}>
                {name}
              </button>
            ))}
            <button onClick={() => download(`${place.container}.json`, toExtended(result.documents))}>Download</button>
          </>
        )}
      </div>
      <Problem text={problem} />
      {plan !== null && <Editor language="javascript" label="Plan" isReadOnly text={print(plan)} />}
      {plan === null && result !== null && (
        <>
          {shape === "Text" && <Editor language="javascript" label="Results" isReadOnly text={result.documents.map((one) => print(one)).join("\n")} />}
          {shape === "Table" && <DocumentTable documents={result.documents} />}
          {shape === "Tree" && <DocumentTree documents={result.documents} />}
          {result.rest !== null && (
            <button disabled={isBusy} onClick={() => void run(result)}>
              More
            </button>
          )}
        </>
      )}
    </>
  );
}
