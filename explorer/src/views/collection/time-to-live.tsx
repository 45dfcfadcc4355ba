// When documents of a collection end: its TTL indexes, what another time would end, and what comes.

import { useEffect, useState } from "preact/hooks";
import { type Place, type TtlReport, ttlPreview, ttlReport } from "../../api/account";
import type { Client } from "../../api/client";
import { span } from "../../api/ttl";
import { count, createIndex, type Index, indexes, next, setExpiry, type Sharded } from "../../mongo/commands";
import { date, doc, type Document, documentAt, int, printShort } from "../../mongo/value";
import { now } from "../../state/clock";
import { useAttempt } from "../../ui/attempt";
import { Problem } from "../../ui/notice";
import { usePolling } from "../../ui/poll";
import { Ask, Forecast, PurgeFigures } from "../container/time-to-live";

interface Properties {
  client: Client;
  place: Sharded;
}

const ASK_EVERY_MS = 2_000;
/** Documents of a sample. */
const SAMPLE = 5;

export function CollectionTimeToLive({ client, place }: Properties) {
  const [report, setReport] = useState<TtlReport | null>(null);
  const [known, setKnown] = useState<Index[] | null>(null);
  const [failure, attempt] = useAttempt();
  const load = (): Promise<void> =>
    attempt(async () => setKnown((await indexes(client, place)).filter((index) => index.expireAfterSeconds !== null)));
  useEffect(() => void load(), []);
  const problem = usePolling(ASK_EVERY_MS, () => ({ ask: () => ttlReport(client, place), take: setReport }), [known]);
  const second = Math.floor(now.value / 1_000);
  return (
    <div class="ttl">
      <Problem text={problem ?? failure} />
      {report !== null && (
        <>
          <dl class="figures">
            <PurgeFigures report={report} />
          </dl>
          <Forecast report={report} second={second} />
        </>
      )}
      <div class="cards">
        {known?.map((index) => <Change key={index.name} client={client} place={place} index={index} onChanged={load} />)}
        <Create client={client} place={place} onChanged={load} />
        <Ask client={client} place={place} hasKeys={place.shardKey !== null} />
      </div>
    </div>
  );
}

interface ChangeProperties {
  client: Client;
  place: Place;
  onChanged: () => Promise<void>;
}

interface Preview {
  of: string;
  ends: number;
  sample: string[];
}

/** Another time for an index: first what it would end, then whether to set it. */
function Change({ client, place, index, onChanged }: ChangeProperties & { index: Index }) {
  const [wanted, setWanted] = useState(String(index.expireAfterSeconds));
  const [preview, setPreview] = useState<Preview | null>(null);
  const [problem, attempt] = useAttempt();
  const [field] = [...index.key.keys()];
  const look = (): Promise<void> =>
    attempt(async () => setPreview({ of: wanted, ...(await endedBy(client, place, field ?? "", Number(wanted), documentAt(index.whole, "partialFilterExpression"))) }));
  const apply = (): Promise<void> =>
    attempt(async () => {
      await setExpiry(client, place, index.name, Number(wanted));
      setPreview(null);
      await onChanged();
    });
  const isSeen = preview !== null && preview.of === wanted;
  return (
    <form
      class="card"
      aria-label={`Index ${index.name}`}
      onSubmit={(event) => {
        event.preventDefault();
        void (isSeen ? apply() : look());
      }}
    >
      <label>
        {`Seconds after ${field === "_ts" ? "the last change" : field}`}
        <input type="number" min={field === "_ts" ? "-1" : "0"} required value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
        <small>
          Index {index.name}, now {index.expireAfterSeconds === -1 ? "without an end" : span(index.expireAfterSeconds ?? 0)}
        </small>
      </label>
      <Problem text={problem} />
      {isSeen && <Ends of={preview} />}
      <div class="tools">
        <button type="button" onClick={() => void look()}>
          Preview
        </button>
        <button type="submit" class={isSeen && preview.ends > 0 ? "danger" : "primary"} disabled={!isSeen}>
          Apply
        </button>
      </div>
    </form>
  );
}

function Ends({ of: { ends, sample } }: { of: Preview }) {
  return (
    <p class="note" role="status">
      <strong>{ends.toLocaleString()}</strong> {ends === 1 ? "document ends" : "documents end"} at once.
      {sample.length > 0 && ` Among them: ${sample.join(", ")}.`}
    </p>
  );
}

/** Live documents that an index on a field would end at once if it had this time. */
async function endedBy(client: Client, place: Place, field: string, seconds: number, only?: Document): Promise<Omit<Preview, "of">> {
  if (field === "_ts") return { ends: (await ttlPreview(client, place, seconds)).expireNow, sample: [] };
  // The earliest date of an array counts: a condition on one of its elements is the same.
  const until = date(now.peek() - seconds * 1_000);
  const ended: Document = doc([field, doc(["$lte", until])]);
  // A partial index ends only the documents that it has.
  const filter = only === undefined ? ended : doc(["$and", [ended, only]]);
  const ends = await count(client, place, filter);
  if (ends === 0) return { ends, sample: [] };
  const command = doc(["find", place.container], ["filter", filter], ["projection", doc(["_id", int(1)])], ["limit", int(SAMPLE)]);
  const { documents } = await next(client, { of: place, id: null, command });
  return { ends, sample: documents.map((document) => printShort(document.get("_id") ?? null, 60)) };
}

function Create({ client, place, onChanged }: ChangeProperties) {
  const [field, setField] = useState("");
  const [seconds, setSeconds] = useState("");
  const [preview, setPreview] = useState<Preview | null>(null);
  const [problem, attempt] = useAttempt();
  const wanted = `${field} ${seconds}`;
  const look = (): Promise<void> => attempt(async () => setPreview({ of: wanted, ...(await endedBy(client, place, field, Number(seconds))) }));
  const apply = (): Promise<void> =>
    attempt(async () => {
      await createIndex(client, place, doc([field, int(1)]), doc(["expireAfterSeconds", int(Number(seconds))]));
      setPreview(null);
      setField("");
      await onChanged();
    });
  const isSeen = preview !== null && preview.of === wanted;
  return (
    <form
      class="card"
      aria-label="New TTL index"
      onSubmit={(event) => {
        event.preventDefault();
        void (isSeen ? apply() : look());
      }}
    >
      <label>
        New TTL index on
        <input required placeholder="expireAt, or _ts" autocomplete="off" spellcheck={false} value={field} onInput={(event) => setField(event.currentTarget.value)} />
      </label>
      <label>
        Seconds after its date
        <input type="number" min="-1" required value={seconds} onInput={(event) => setSeconds(event.currentTarget.value)} />
      </label>
      <Problem text={problem} />
      {isSeen && <Ends of={preview} />}
      <div class="tools">
        <button type="submit" class={isSeen && preview.ends > 0 ? "danger" : "primary"}>
          {isSeen ? "Create" : "Preview"}
        </button>
      </div>
    </form>
  );
}
