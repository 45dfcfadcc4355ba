// The change feed, as it goes on.

import { useRef, useState } from "preact/hooks";
import type { Place } from "../../api/account";
import { type Change, Feed, type Mode } from "../../api/changes";
import type { Client } from "../../api/client";
import { Empty, Problem } from "../../ui/notice";
import { usePolling } from "../../ui/poll";
import { VirtualList } from "../../ui/virtual-list";

const ASK_EVERY_MS = 1_000;
/** Changes that are kept, the newest ones. */
const KEPT = 1_000;

const KINDS: Record<Change["kind"], string> = {
  write: "written",
  create: "created",
  replace: "replaced",
  delete: "deleted",
  expired: "ended (TTL)",
};

interface Numbered extends Change {
  number: number;
}

export function Changes({ client, place }: { client: Client; place: Place }) {
  const [mode, setMode] = useState<Mode>("latest");
  const [start, setStart] = useState<"beginning" | "now">("now");
  const [changes, setChanges] = useState<Numbered[]>([]);
  const [chosen, setChosen] = useState<Numbered | null>(null);
  const [isPaused, setPaused] = useState(false);
  const paused = useRef(isPaused);
  paused.current = isPaused;
  const from = mode === "all" ? "now" : start;

  const problem = usePolling(
    ASK_EVERY_MS,
    () => {
      let count = 0;
      const feed = new Feed(client, place, mode, from);
      setChanges([]);
      setChosen(null);
      return {
        ask: async () => (paused.current ? null : feed.next()),
        take: (found) => {
          if (found.length === 0) return;
          const numbered = found.map((change) => ({ ...change, number: count++ }));
          setChanges((before) => [...numbered.reverse(), ...before].slice(0, KEPT));
        },
      };
    },
    [mode, from],
  );

  return (
    <div class="items">
      <div class="tools">
        <button aria-pressed={mode === "latest"} onClick={() => setMode("latest")}>
          Latest versions
        </button>
        <button aria-pressed={mode === "all"} onClick={() => setMode("all")}>
          All versions and deletes
        </button>
        {mode === "latest" && (
          <label>
            <input
              type="checkbox"
              checked={start === "beginning"}
              onChange={(event) => setStart(event.currentTarget.checked ? "beginning" : "now")}
            />
            From the beginning
          </label>
        )}
        <span class="space" />
        <button aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          Pause
        </button>
      </div>
      <Problem text={problem} />
      <div class="split">
        <div class="pane">
          {changes.length > 0 && (
            <VirtualList
              rows={changes}
              label="Changes"
              keyOf={(change) => String(change.number)}
              selected={chosen === null ? null : String(chosen.number)}
              onSelect={setChosen}
              render={(change) => (
                <>
                  <span class={`kind ${change.kind}`}>{KINDS[change.kind]}</span>
                  <span class="grow clip">{change.id}</span>
                  <span class="muted">{new Date(change.at * 1_000).toISOString().slice(11, 19)}</span>
                  <span class="muted number">{change.lsn}</span>
                </>
              )}
            />
          )}
          {changes.length === 0 && (
            <Empty title="Nothing has changed yet">
              <p>What is written from now on shows here within a second.</p>
            </Empty>
          )}
        </div>
        {chosen !== null && (
          <pre class="pane value" tabIndex={0} role="region" aria-label="Change">
            {chosen.item === null ? `${chosen.id} ${KINDS[chosen.kind]}` : JSON.stringify(chosen.item, null, 2)}
          </pre>
        )}
      </div>
    </div>
  );
}
