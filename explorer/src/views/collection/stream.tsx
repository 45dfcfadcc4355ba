// The change stream of a collection, as it goes on.

import { useRef, useState } from "preact/hooks";
import type { Place } from "../../api/account";
import type { Client } from "../../api/client";
import { close, type Cursor, next } from "../../mongo/commands";
import { doc, type Document, documentAt, int, print, printShort, textAt } from "../../mongo/value";
import { Empty, Problem } from "../../ui/notice";
import { usePolling } from "../../ui/poll";
import { VirtualList } from "../../ui/virtual-list";

const ASK_EVERY_MS = 1_000;
/** Events that are kept, the newest ones. */
const KEPT = 1_000;

interface Numbered {
  number: number;
  event: Document;
}

export function ChangeStream({ client, place }: { client: Client; place: Place }) {
  const [events, setEvents] = useState<Numbered[]>([]);
  const [chosen, setChosen] = useState<Numbered | null>(null);
  const [isPaused, setPaused] = useState(false);
  const paused = useRef(isPaused);
  paused.current = isPaused;
  const problem = usePolling(
    ASK_EVERY_MS,
    () => {
      let count = 0;
      let cursor: Cursor | null = null;
      const beginning = (): Cursor => ({
        of: place,
        id: null,
        command: doc(
          ["aggregate", place.container],
          ["pipeline", [doc(["$changeStream", doc(["fullDocument", "updateLookup"])])]],
          ["cursor", doc(["batchSize", int(0)])],
        ),
      });
      return {
        ask: async () => {
          if (paused.current) return null;
          try {
            const batch = await next(client, cursor ?? beginning());
            cursor = batch.rest;
            return batch.documents;
          } catch (error) {
            // It begins anew: the cursor may be gone.
            cursor = null;
            throw error;
          }
        },
        take: (found) => {
          if (found.length === 0) return;
          const numbered = found.map((event) => ({ event, number: count++ }));
          setEvents((before) => [...numbered.reverse(), ...before].slice(0, KEPT));
        },
        end: () => {
          if (cursor !== null) void close(client, cursor).catch(() => undefined);
        },
      };
    },
    [],
  );
  return (
    <div class="items">
      <div class="tools">
        <span class="muted grow">Changes from now on, as drivers get them by “watch”.</span>
        <button aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          Pause
        </button>
      </div>
      <Problem text={problem} />
      <div class="split">
        <div class="pane">
          {events.length > 0 ? (
            <VirtualList
              rows={events}
              label="Changes"
              keyOf={({ number }) => String(number)}
              selected={chosen === null ? null : String(chosen.number)}
              onSelect={setChosen}
              render={({ event }) => (
                <>
                  <span class="method">{textAt(event, "operationType")}</span>
                  <span class="clip">{printShort(documentAt(event, "documentKey")?.get("_id") ?? null, 60)}</span>
                  <span class="muted grow clip">{printShort(documentAt(event, "fullDocument") ?? null, 160)}</span>
                </>
              )}
            />
          ) : (
            <Empty title="No change yet">
              <p>What programs write from now on shows here.</p>
            </Empty>
          )}
        </div>
        {chosen !== null && (
          <pre class="pane value" tabIndex={0} role="region" aria-label="Change">
            {print(chosen.event)}
          </pre>
        )}
      </div>
    </div>
  );
}
