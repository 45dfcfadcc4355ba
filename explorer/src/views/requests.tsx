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
      let [run, last] = ["", 0];
      return {
        ask: async () => {
          if (known === null || paused.current) return null;
          const found = await requestsAfter(known, last);
          // A server that was started again counts from the beginning.
          return found.run === run || last === 0 ? found : requestsAfter(known, 0);
        },
        take: (found) => {
          const isAnother = run !== "" && found.run !== run;
          [run, last] = [found.run, found.last];
          if (isAnother) setRequests(found.requests.reverse());
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
        <div class="pane wide">
          {shown.length > 0 && (
            <VirtualList
              rows={shown}
              label="Requests"
              keyOf={({ number }) => String(number)}
              selected={chosen === null ? null : String(chosen.number)}
              onSelect={setChosen}
              render={(request) => (
                <>
                  <span class={`status class-${classOf(request)}`}>{statusOf(request)}</span>
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

function statusOf({ protocol, status, subStatus }: Answered): string {
  if (protocol === "mongodb") return status === 0 ? "ok" : String(status);
  return subStatus === 0 ? String(status) : `${status}/${subStatus}`;
}

/** Whether it was well: 2; refused: 4; or has failed: 5. */
function classOf({ protocol, status }: Answered): number {
  if (protocol === "mongodb") return status === 0 ? 2 : 4;
  return Math.floor(status / 100);
}

const timeOf = ({ atMs }: Answered): string => new Date(atMs).toISOString().slice(11, 23);

const textOf = (request: Answered): string => `${statusOf(request)} ${request.method} ${request.path} ${request.operation ?? ""}`;
