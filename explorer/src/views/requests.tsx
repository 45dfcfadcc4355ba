// The requests that the server has answered last, as they come.

import { useRef, useState } from "preact/hooks";
import { type Answered, requestsAfter } from "../api/requests";
import { client } from "../state/session";
import { Empty, Problem } from "../ui/notice";
import { usePolling } from "../ui/poll";
import { VirtualList } from "../ui/virtual-list";

const ASK_EVERY_MS = 1_000;
/** As many as the server keeps. */
const KEPT = 500;

export function Requests() {
  const known = client.value;
  const [requests, setRequests] = useState<Answered[]>([]);
  const [chosen, setChosen] = useState<Answered | null>(null);
  const [filter, setFilter] = useState("");
  const [isPaused, setPaused] = useState(false);
  const paused = useRef(isPaused);
  paused.current = isPaused;
  const problem = usePolling(
    ASK_EVERY_MS,
    () => {
      let last = 0;
      return {
        ask: async () => (known === null || paused.current ? null : requestsAfter(known, last)),
        take: (found) => {
          // A server that has begun anew counts from the beginning.
          const isAnother = found.last < last;
          last = isAnother ? 0 : found.last;
          if (isAnother) setRequests([]);
          else if (found.requests.length > 0) setRequests((before) => [...found.requests.reverse(), ...before].slice(0, KEPT));
        },
      };
    },
    [known],
  );
  const wanted = filter.trim().toLowerCase();
  const shown = wanted === "" ? requests : requests.filter((request) => textOf(request).toLowerCase().includes(wanted));
  return (
    <section class="page items">
      <h1>Requests</h1>
      <div class="tools">
        <label class="grow">
          <input
            class="grow"
            aria-label="Filter"
            placeholder="429, CreateItem, /colls/orders"
            spellcheck={false}
            value={filter}
            onInput={(event) => setFilter(event.currentTarget.value)}
          />
        </label>
        <button aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          Pause
        </button>
      </div>
      <Problem text={problem} />
      <div class="split">
        <div class="pane">
          {shown.length > 0 && (
            <VirtualList
              rows={shown}
              label="Requests"
              keyOf={({ number }) => String(number)}
              selected={chosen === null ? null : String(chosen.number)}
              onSelect={setChosen}
              render={(request) => (
                <>
                  <span class={`status class-${Math.floor(request.status / 100)}`}>{statusOf(request)}</span>
                  <span class="method">{request.method}</span>
                  <span class="grow clip">{request.path}</span>
                  <span class="muted clip">{request.operation}</span>
                  <span class="muted number">{request.charge.toFixed(2)} RU</span>
                  <span class="muted number">{request.ms.toFixed(2)} ms</span>
                  <span class="muted">{timeOf(request)}</span>
                </>
              )}
            />
          )}
          {shown.length === 0 && (
            <Empty title={requests.length === 0 ? "No request yet" : "None fits the filter"}>
              <p>The last {KEPT} requests of programs show here, with their answers.</p>
            </Empty>
          )}
        </div>
        {chosen !== null && (
          <pre class="pane value" tabIndex={0} role="region" aria-label="Request">
            {JSON.stringify(chosen, null, 2)}
          </pre>
        )}
      </div>
    </section>
  );
}

const statusOf = ({ status, subStatus }: Answered): string => (subStatus === 0 ? String(status) : `${status}/${subStatus}`);

const timeOf = ({ atMs }: Answered): string => new Date(atMs).toISOString().slice(11, 23);

const textOf = (request: Answered): string => `${statusOf(request)} ${request.method} ${request.path} ${request.operation ?? ""}`;
