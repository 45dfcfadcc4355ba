// Databases and containers.

import { useEffect, useState } from "preact/hooks";
import { createContainer, deleteDatabase, ensureDatabase } from "../api/account";
import { linkTo, show, shown } from "../state/place";
import { client, wordsOf } from "../state/session";
import { type Branch, refresh, toggle, tree, treeError } from "../state/tree";
import { Problem } from "../ui/notice";

export function Tree() {
  const known = client.value;
  const [creates, setCreates] = useState<string | null>(null);
  useEffect(() => {
    if (known !== null) void refresh(known);
  }, [known]);
  if (known === null) return null;
  const what = shown.value;
  const isShown = (database: string, container: string): boolean =>
    what.page === "container" && what.place.database === database && what.place.container === container;
  return (
    <>
      <div class="side-tools">
        <button onClick={() => setCreates("")}>New container</button>
        <button class="quiet" onClick={() => void refresh(known)} aria-label="List again">
          ↻
        </button>
      </div>
      <Problem text={treeError.value} />
      {creates !== null && <NewContainer database={creates} onDone={() => setCreates(null)} />}
      {tree.value?.length === 0 && <p class="muted pad">There is no database yet. A container makes its database, too.</p>}
      <ul class="tree">
        {tree.value?.map((branch) => (
          <li key={branch.id}>
            <div class="branch">
              <button class="quiet grow" aria-expanded={branch.isOpen} onClick={() => void toggle(known, branch.id)}>
                {branch.isOpen ? "▾" : "▸"} {branch.id}
              </button>
              <button class="quiet" aria-label={`New container in ${branch.id}`} onClick={() => setCreates(branch.id)}>
                +
              </button>
              <DeleteDatabase branch={branch} />
            </div>
            {branch.isOpen && (
              <ul>
                {branch.containers?.map((container) => (
                  <li key={container.id}>
                    <a
                      href={linkTo({ database: branch.id, container: container.id })}
                      aria-current={isShown(branch.id, container.id) ? "page" : undefined}
                    >
                      {container.id}
                    </a>
                  </li>
                ))}
                {branch.containers?.length === 0 && <li class="muted pad">no container</li>}
              </ul>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

function DeleteDatabase({ branch }: { branch: Branch }) {
  const remove = async (): Promise<void> => {
    const known = client.peek();
    if (known === null || !confirm(`Delete the database "${branch.id}" with all its containers and items?`)) return;
    try {
      await deleteDatabase(known, branch.id);
      location.hash = "#/";
      await refresh(known);
    } catch (error) {
      treeError.value = wordsOf(error);
    }
  };
  return (
    <button class="quiet" aria-label={`Delete ${branch.id}`} onClick={() => void remove()}>
      ×
    </button>
  );
}

function NewContainer({ database, onDone }: { database: string; onDone: () => void }) {
  const [problem, setProblem] = useState<string | null>(null);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const known = client.peek();
    if (known === null) return;
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string): string => String(fields.get(name) ?? "").trim();
    const paths = text("key").split(",").map((path) => path.trim());
    const definition = {
      id: text("container"),
      partitionKey: { paths, kind: paths.length > 1 ? "MultiHash" : "Hash", version: 2 },
      ...(text("ttl") === "" ? {} : { defaultTtl: Number(text("ttl")) }),
    };
    const place = { database: text("database"), container: definition.id };
    try {
      await ensureDatabase(known, place.database);
      await createContainer(known, place.database, definition);
      await refresh(known);
      onDone();
      show(place);
    } catch (error) {
      setProblem(wordsOf(error));
    }
  };
  return (
    <form class="card" onSubmit={(event) => void submit(event)} aria-label="New container">
      <label>
        Database
        <input name="database" required defaultValue={database} autocomplete="off" />
      </label>
      <label>
        Container
        <input name="container" required autocomplete="off" />
      </label>
      <label>
        Partition key
        <input name="key" required placeholder="/id" autocomplete="off" />
        <small>Up to three paths with commas between them</small>
      </label>
      <label>
        Default time to live
        <input name="ttl" type="number" min="-1" autocomplete="off" />
        <small>Seconds; −1: only items with a ttl of their own end; empty: off</small>
      </label>
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
