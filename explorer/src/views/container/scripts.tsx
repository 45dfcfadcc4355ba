// Stored procedures, triggers and functions: a list, an editor, and a form that runs a procedure.

import { useEffect, useState } from "preact/hooks";
import type { Place } from "../../api/account";
import type { Client } from "../../api/client";
import { deleteScript, type Kind, runProcedure, saveScript, type Script, scripts } from "../../api/scripts";
import { Editor } from "../../editor/editor";
import { useAttempt } from "../../ui/attempt";
import { Problem } from "../../ui/notice";

const KINDS: [kind: Kind, name: string, one: string][] = [
  ["sprocs", "Stored procedures", "stored procedure"],
  ["triggers", "Triggers", "trigger"],
  ["udfs", "Functions", "function"],
];

const TEMPLATES: Record<Kind, string> = {
  sprocs: `function (prefix) {
  const context = getContext();
  const container = context.getCollection();
  container.queryDocuments(container.getSelfLink(), "SELECT * FROM c", {}, (error, items) => {
    if (error) throw error;
    context.getResponse().setBody(prefix + items.length);
  });
}
`,
  triggers: `function () {
  const request = getContext().getRequest();
  const item = request.getBody();
  item.seen = true;
  request.setBody(item);
}
`,
  udfs: `function (price) {
  return price * 1.2;
}
`,
};

interface Properties {
  client: Client;
  place: Place;
}

export function Scripts({ client, place }: Properties) {
  const [kind, setKind] = useState<Kind>("sprocs");
  const [found, setFound] = useState<Script[] | null>(null);
  const [chosen, setChosen] = useState<{ script: Script; isNew: boolean } | null>(null);
  const [problem, attempt] = useAttempt();
  const list = (): Promise<void> => attempt(async () => setFound(await scripts(client, place, kind)));
  useEffect(() => {
    setFound(null);
    setChosen(null);
    void list();
  }, [kind]);
  const one = KINDS.find(([name]) => name === kind)?.[2] ?? "script";
  return (
    <div class="items">
      <div class="tools">
        {KINDS.map(([name, title]) => (
          <button key={name} aria-pressed={kind === name} onClick={() => setKind(name)}>
            {title}
          </button>
        ))}
        <span class="space" />
        <button onClick={() => setChosen({ script: { id: "", body: TEMPLATES[kind] }, isNew: true })}>New {one}</button>
      </div>
      <Problem text={problem} />
      <div class="split">
        <ul class="tree pane narrow">
          {found?.map((script) => (
            <li key={script.id}>
              <button class="quiet grow" onClick={() => setChosen({ script, isNew: false })}>
                {script.id}
              </button>
            </li>
          ))}
          {found?.length === 0 && <li class="muted">There is no {one} yet.</li>}
        </ul>
        {chosen !== null && (
          <One
            key={`${kind}/${chosen.script.id}/${chosen.isNew}`}
            client={client}
            place={place}
            kind={kind}
            {...chosen}
            onSaved={(script) => {
              setChosen({ script, isNew: false });
              void list();
            }}
            onDeleted={() => {
              setChosen(null);
              void list();
            }}
          />
        )}
      </div>
    </div>
  );
}

interface OneProperties extends Properties {
  kind: Kind;
  script: Script;
  isNew: boolean;
  onSaved: (script: Script) => void;
  onDeleted: () => void;
}

function One({ client, place, kind, script, isNew, onSaved, onDeleted }: OneProperties) {
  const [id, setId] = useState(script.id);
  const [text, setText] = useState(script.body);
  const [type, setType] = useState(script.triggerType ?? "Pre");
  const [operation, setOperation] = useState(script.triggerOperation ?? "All");
  const [key, setKey] = useState('[""]');
  const [parameters, setParameters] = useState("[]");
  const [answer, setAnswer] = useState<string | null>(null);
  const [problem, attempt] = useAttempt();
  const save = (): Promise<void> =>
    attempt(async () => {
      const wanted = { id: id.trim(), body: text, triggerType: type, triggerOperation: operation };
      onSaved(await saveScript(client, place, kind, wanted, isNew));
    });
  const remove = (): Promise<void> =>
    attempt(async () => {
      if (!confirm(`Delete "${script.id}"?`)) return;
      await deleteScript(client, place, kind, script.id);
      onDeleted();
    });
  const run = (): Promise<void> =>
    attempt(async () => {
      setAnswer(null);
      const { body, charge, headers } = await runProcedure(client, place, script.id, key, parameters);
      const log = decodeURIComponent(headers.get("x-ms-documentdb-script-log-results") ?? "");
      setAnswer(`${JSON.stringify(body, null, 2)}\n\n${charge.toFixed(2)} RU${log === "" ? "" : `\n\n${log}`}`);
    });
  return (
    <div class="pane" role="region" aria-label="Script">
      <div class="tools">
        <label>
          Name <input value={id} disabled={!isNew} onInput={(event) => setId(event.currentTarget.value)} />
        </label>
        {kind === "triggers" && (
          <>
            <label>
              When{" "}
              <select value={type} onChange={(event) => setType(event.currentTarget.value)}>
                <option>Pre</option>
                <option>Post</option>
              </select>
            </label>
            <label>
              On{" "}
              <select value={operation} onChange={(event) => setOperation(event.currentTarget.value)}>
                {["All", "Create", "Replace", "Update", "Delete"].map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </label>
          </>
        )}
        <button class="primary" onClick={() => void save()}>
          Save
        </button>
        {!isNew && (
          <button class="danger" onClick={() => void remove()}>
            Delete
          </button>
        )}
      </div>
      <Problem text={problem} />
      <Editor language="javascript" label="Script" text={text} onChange={setText} onRun={() => void save()} />
      {kind === "sprocs" && !isNew && (
        <form
          class="tools"
          aria-label="Run"
          onSubmit={(event) => {
            event.preventDefault();
            void run();
          }}
        >
          <label>
            Partition key <input class="code" value={key} onInput={(event) => setKey(event.currentTarget.value)} />
          </label>
          <label>
            Parameters <input class="code" value={parameters} onInput={(event) => setParameters(event.currentTarget.value)} />
          </label>
          <button type="submit">Run</button>
        </form>
      )}
      {answer !== null && (
        <pre class="value" role="status">
          {answer}
        </pre>
      )}
    </div>
  );
}
