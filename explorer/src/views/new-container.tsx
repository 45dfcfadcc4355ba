// The form for a new container.

import { useState } from "preact/hooks";
import { createContainer, ensureDatabase } from "../api/account";
import { definitionOf, type Fields } from "../api/definition";
import type { Throughput } from "../api/throughput";
import { Editor } from "../editor/editor";
import { createCollection } from "../mongo/commands";
import { show } from "../state/place";
import { client, wordsOf } from "../state/session";
import { refresh } from "../state/tree";
import { useAttempt } from "../ui/attempt";
import { Problem } from "../ui/notice";

interface Properties {
  database: string;
  onDone: () => void;
}

export function NewContainer(properties: Properties) {
  const [isCollection, setCollection] = useState(false);
  return (
    <>
      <div class="tools kinds" role="group" aria-label="Kind">
        <button aria-pressed={!isCollection} onClick={() => setCollection(false)}>
          Container
        </button>
        <button aria-pressed={isCollection} onClick={() => setCollection(true)}>
          MongoDB collection
        </button>
      </div>
      {isCollection ? <CollectionForm {...properties} /> : <ContainerForm {...properties} />}
    </>
  );
}

function CollectionForm({ database, onDone }: Properties) {
  const [problem, attempt] = useAttempt();
  const submit = (form: HTMLFormElement): Promise<void> =>
    attempt(async () => {
      const known = client.peek();
      if (known === null) return;
      const place = { database: valueOf(form, "database"), container: valueOf(form, "id") };
      const [ttlField, ttlSeconds] = [valueOf(form, "ttlField"), valueOf(form, "ttl")];
      if ((ttlField === "") !== (ttlSeconds === "")) throw new Error("A TTL index needs a field and a number of seconds.");
      const throughput = throughputOf(form);
      await createCollection(known, place, { shardKey: valueOf(form, "key"), throughput, ttlField, ttlSeconds: Number(ttlSeconds) });
      await refresh(known);
      onDone();
      show(place);
    });
  return (
    <form
      class="card"
      aria-label="New collection"
      onSubmit={(event) => {
        event.preventDefault();
        void submit(event.currentTarget);
      }}
    >
      <Field name="database" label="Database" isRequired value={database} />
      <Field name="id" label="Collection" isRequired />
      <Field name="key" label="Shard key" placeholder="tenant" hint="Empty: not sharded" />
      <Field name="ttlField" label="TTL index on" placeholder="expireAt" hint="A field with a date, or _ts for the last change" />
      <Field name="ttl" label="Seconds after it" least={-1} />
      <ThroughputFields />
      <Problem text={problem} />
      <div class="tools">
        <button class="primary" type="submit">
          Create
        </button>
        <button type="button" onClick={onDone}>
          Cancel
        </button>
      </div>
    </form>
  );
}

function ContainerForm({ database, onDone }: Properties) {
  const [problem, setProblem] = useState<string | null>(null);
  /** The definition, once it is edited as JSON. */
  const [text, setText] = useState<string | null>(null);
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const known = client.peek();
    if (known === null) return;
    try {
      const definition = text === null ? definitionOf(fieldsOf(form)) : (JSON.parse(text) as Record<string, unknown>);
      const place = { database: valueOf(form, "database"), container: String(definition["id"]) };
      await ensureDatabase(known, place.database);
      await createContainer(known, place.database, definition, throughputOf(form));
      await refresh(known);
      onDone();
      show(place);
    } catch (error) {
      setProblem(wordsOf(error));
    }
  };
  return (
    <form
      class="card"
      aria-label="New container"
      onSubmit={(event) => {
        event.preventDefault();
        void submit(event.currentTarget);
      }}
    >
      <Field name="database" label="Database" isRequired value={database} />
      <fieldset class="plain" hidden={text !== null} disabled={text !== null}>
        <Form />
      </fieldset>
      {text !== null && (
        <>
          <Editor language="json" label="Definition as JSON" text={text} onChange={setText} />
          <button type="button" onClick={() => confirm("Drop the definition as JSON? The form has what was in it before.") && setText(null)}>
            Back to the form
          </button>
        </>
      )}
      <ThroughputFields />
      <Problem text={problem} />
      <div class="tools">
        <button class="primary" type="submit">
          Create
        </button>
        {text === null && (
          <button
            type="button"
            onClick={(event) => {
              const form = event.currentTarget.form;
              if (form !== null) setText(JSON.stringify(definitionOf(fieldsOf(form)), null, 2));
            }}
          >
            As JSON
          </button>
        )}
        <button type="button" onClick={onDone}>
          Cancel
        </button>
      </div>
    </form>
  );
}

interface FieldProperties {
  name: keyof Fields | "database" | "throughput" | "ttlField";
  label: string;
  hint?: string;
  placeholder?: string;
  isRequired?: boolean;
  value?: string;
  /** The least value of a number. */
  least?: number;
}

function Field({ name, label, hint, placeholder, isRequired, value, least }: FieldProperties) {
  return (
    <label>
      {label}
      <input
        name={name}
        required={isRequired === true}
        autocomplete="off"
        spellcheck={false}
        {...(placeholder !== undefined && { placeholder })}
        {...(value !== undefined && { defaultValue: value })}
        {...(least !== undefined && { type: "number", min: least })}
      />
      {hint !== undefined && <small>{hint}</small>}
    </label>
  );
}

function Choice({ name, label, choices }: { name: string; label: string; choices: readonly string[] }) {
  return (
    <label>
      {label}
      <select name={name}>
        {choices.map((choice) => (
          <option key={choice}>{choice}</option>
        ))}
      </select>
    </label>
  );
}

function Form() {
  return (
    <>
      <Field name="id" label="Container" isRequired />
      <Field name="key" label="Partition key" isRequired placeholder="/id" hint="Up to three paths with commas between them" />
      <Field
        name="ttl"
        label="Default time to live"
        least={-1}
        hint="Seconds; −1: only items with a ttl of their own end; empty: off"
      />
      <details>
        <summary>Unique keys and indexes</summary>
        <label>
          Unique keys
          <textarea name="uniqueKeys" rows={2} spellcheck={false} placeholder="/email" />
          <small>One in each line; several paths of one key with commas between them</small>
        </label>
        <Field name="notIndexed" label="Paths that are not indexed" placeholder="/payload" />
        <Field name="vectorPath" label="Vector path" placeholder="/embedding" />
        <Field name="vectorDimensions" label="Dimensions" least={1} value="1536" />
        <Choice name="vectorDistance" label="Vectors are compared by" choices={["cosine", "dotproduct", "euclidean"]} />
        <Choice name="vectorIndex" label="Vector index" choices={["quantizedFlat", "flat", "diskANN"]} />
        <Field name="fullText" label="Full-text paths" placeholder="/title, /body" />
        <Field name="fullTextLanguage" label="Language of the texts" value="en-US" />
      </details>
    </>
  );
}

function ThroughputFields() {
  return (
    <details>
      <summary>Throughput</summary>
      <Field name="throughput" label="Request units per second" least={1} hint="Empty: no throughput of its own, or the usual one" />
      <label class="check">
        <input name="isAutoscale" type="checkbox" />
        At most so many (autoscale)
      </label>
    </details>
  );
}

const valueOf = (form: HTMLFormElement, name: string): string => String(new FormData(form).get(name) ?? "").trim();

function fieldsOf(form: HTMLFormElement): Fields {
  const text = (name: keyof Fields): string => valueOf(form, name);
  return {
    id: text("id"),
    key: text("key"),
    ttl: text("ttl"),
    uniqueKeys: text("uniqueKeys"),
    notIndexed: text("notIndexed"),
    vectorPath: text("vectorPath"),
    vectorDimensions: text("vectorDimensions"),
    vectorDistance: text("vectorDistance"),
    vectorIndex: text("vectorIndex"),
    fullText: text("fullText"),
    fullTextLanguage: text("fullTextLanguage"),
  };
}

function throughputOf(form: HTMLFormElement): Throughput | null {
  const units = valueOf(form, "throughput");
  const isAutoscale = valueOf(form, "isAutoscale") !== "";
  if (units === "" && isAutoscale) throw new Error("Autoscale needs a number of request units per second.");
  return units === "" ? null : { kind: isAutoscale ? "autoscale" : "manual", units: Number(units) };
}
