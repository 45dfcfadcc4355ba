// Databases and containers.

import { useEffect, useState } from "preact/hooks";
import { deleteDatabase } from "../api/account";
import { linkTo, shown } from "../state/place";
import { client, wordsOf } from "../state/session";
import { type Branch, refresh, toggle, tree, treeError } from "../state/tree";
import { Problem } from "../ui/notice";
import { NewContainer } from "./new-container";

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
                      {container.kind !== "container" && <span class="tag">{container.kind}</span>}
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
