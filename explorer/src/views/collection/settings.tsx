// The options of a collection, its indexes and its throughput.

import { useEffect, useState } from "preact/hooks";
import type { Container, Place } from "../../api/account";
import type { Client } from "../../api/client";
import { type Collection, createIndex, dropCollection, dropIndex, type Index, indexes } from "../../mongo/commands";
import { parseDocument } from "../../mongo/parse";
import { print, printShort } from "../../mongo/value";
import { refresh } from "../../state/tree";
import { useAttempt } from "../../ui/attempt";
import { Problem } from "../../ui/notice";
import { ThroughputForm } from "../container/throughput";

interface Properties {
  client: Client;
  place: Place;
  container: Container;
  collection: Collection;
}

export function CollectionSettings({ client, place, container, collection }: Properties) {
  const [problem, attempt] = useAttempt();
  const remove = (): Promise<void> =>
    attempt(async () => {
      if (!confirm(`Delete the collection "${place.container}" with all its documents?`)) return;
      await dropCollection(client, place);
      location.hash = "#/";
      await refresh(client);
    });
  return (
    <div class="settings">
      {!collection.isView && (
        <>
          <ThroughputForm key={String(container["_rid"])} client={client} container={container} />
          <Indexes client={client} place={place} />
        </>
      )}
      <h2>Options</h2>
      <pre class="value" tabIndex={0} role="region" aria-label="Options">
        {print(collection.options)}
      </pre>
      <Problem text={problem} />
      <div class="tools">
        <span class="space" />
        <button class="danger" onClick={() => void remove()}>
          Delete {collection.isView ? "view" : "collection"}
        </button>
      </div>
    </div>
  );
}

function Indexes({ client, place }: { client: Client; place: Place }) {
  const [known, setKnown] = useState<Index[]>([]);
  const [key, setKey] = useState("");
  const [options, setOptions] = useState("");
  const [problem, attempt] = useAttempt();
  const load = async (): Promise<void> => setKnown(await indexes(client, place));
  useEffect(() => void attempt(load), []);
  const create = (): Promise<void> =>
    attempt(async () => {
      await createIndex(client, place, parseDocument(key), parseDocument(options));
      setKey("");
      setOptions("");
      await load();
    });
  const drop = (name: string): Promise<void> =>
    attempt(async () => {
      if (!confirm(`Drop the index "${name}"?`)) return;
      await dropIndex(client, place, name);
      await load();
    });
  return (
    <>
      <h2>Indexes</h2>
      <div class="table short" tabIndex={0} role="region" aria-label="Indexes">
        <table>
          <thead>
            <tr>
              <th>Name</th>
              <th>Key</th>
              <th>Options</th>
              <th />
            </tr>
          </thead>
          <tbody>
            {known.map((index) => (
              <tr key={index.name}>
                <td>{index.name}</td>
                <td>{printShort(index.key)}</td>
                <td>{printShort(new Map([...index.whole].filter(([name]) => !["v", "key", "name"].includes(name))))}</td>
                <td>
                  {index.name !== "_id_" && (
                    <button class="quiet" aria-label={`Drop ${index.name}`} onClick={() => void drop(index.name)}>
                      ×
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <form
        class="tools"
        aria-label="New index"
        onSubmit={(event) => {
          event.preventDefault();
          void create();
        }}
      >
        <label class="grow">
          Key
          <input class="grow code" required placeholder="{ status: 1, at: -1 }" spellcheck={false} value={key} onInput={(event) => setKey(event.currentTarget.value)} />
        </label>
        <label class="grow">
          Options
          <input
            class="grow code"
            aria-label="Options of the index"
            placeholder="{ unique: true }"
            spellcheck={false}
            value={options}
            onInput={(event) => setOptions(event.currentTarget.value)}
          />
        </label>
        <button type="submit">Create index</button>
      </form>
      <Problem text={problem} />
    </>
  );
}
