// The change stream of a collection, as it goes on.

import { useRef, useState } from "preact/hooks";
import type { Place } from "../../api/account";
import { type Client, ServerError } from "../../api/client";
import { type Batch, close, type Cursor, next } from "../../mongo/commands";
import { doc, type Document, documentAt, int, print, printShort, textAt } from "../../mongo/value";
import { Empty, Problem } from "../../ui/notice";
import { usePolling } from "../../ui/poll";
import { VirtualList } from "../../ui/virtual-list";

const ASK_EVERY_MS = 1_000;
/** Events that are kept, the newest ones, and those of a batch. */
const [KEPT, BATCH] = [1_000, 500];

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
      let token: Document | null = null;
      let isOver = false;
      const beginning = (): Cursor => {
        const stream = doc(["fullDocument", "updateLookup"]);
        if (token !== null) stream.set("resumeAfter", token);
        const command = doc(
          ["aggregate", place.container],
          ["pipeline", [doc(["$changeStream", stream])]],
          ["cursor", doc(["batchSize", int(token === null ? 0 : BATCH)])],
        );
        return { of: place, id: null, command, batch: BATCH };
      };
      return {
        ask: async () => {
          if (paused.current) return null;
          const events: Document[] = [];
          for (;;) {
            try {
              const batch: Batch = await next(client, cursor ?? beginning());
              if (isOver) {
                close(client, batch.rest);
                return null;
              }
              [cursor, token] = [batch.rest, batch.token ?? token];
              events.push(...batch.documents);
              if (batch.documents.length < BATCH || events.length >= KEPT) return events;
            } catch (error) {
              // It goes on with another cursor after what was seen: the server closes those that nobody asks for some minutes.
              const wasOpen = cursor !== null;
              cursor = null;
              if (!wasOpen || !(error instanceof ServerError && error.status === 404)) throw error;
            }
          }
        },
        take: (found) => {
          if (found.length === 0) return;
          const numbered = found.map((event) => ({ event, number: count++ }));
          setEvents((before) => [...numbered.reverse(), ...before].slice(0, KEPT));
        },
        end: () => {
          isOver = true;
          close(client, cursor);
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
