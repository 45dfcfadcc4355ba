// When items of a container end: the default, what another one would end, and what comes.

import { useState } from "preact/hooks";
import {
  type Container,
  type Page,
  type Place,
  query,
  replaceContainer,
  type TtlPreview,
  type TtlReport,
  ttlPreview,
  ttlReport,
  ttlWhy,
} from "../../api/account";
import type { Client } from "../../api/client";
import { endedCondition, span } from "../../api/ttl";
import { inWords } from "../../api/why";
import { now } from "../../state/clock";
import { wordsOf } from "../../state/session";
import { useAttempt } from "../../ui/attempt";
import { Countdown } from "../../ui/countdown";
import { Problem } from "../../ui/notice";
import { usePolling } from "../../ui/poll";

interface Properties {
  client: Client;
  place: Place;
  container: Container;
  onChange: (container: Container) => void;
}

const ASK_EVERY_MS = 2_000;
/** Items of a sample, and how many pages are read for them: there may be ranges without any. */
const SAMPLE = 5;
const SAMPLE_PAGES = 5;

export function TimeToLive({ client, place, container, onChange }: Properties) {
  const [report, setReport] = useState<TtlReport | null>(null);
  const second = Math.floor(now.value / 1_000);
  const problem = usePolling(ASK_EVERY_MS, () => ({ ask: () => ttlReport(client, place), take: setReport }), [container]);
  return (
    <div class="ttl">
      <Problem text={problem} />
      {report !== null && (
        <>
          <dl class="figures">
            <Figure name="Default">{report.defaultTtl === null ? "off" : report.defaultTtl === -1 ? "−1: on, without an end" : span(report.defaultTtl)}</Figure>
            <PurgeFigures report={report} />
          </dl>
          <Forecast report={report} second={second} />
        </>
      )}
      <div class="cards">
        <Change client={client} place={place} container={container} onChange={onChange} />
        <Ask client={client} place={place} hasKeys />
      </div>
    </div>
  );
}

/** What comes next, and what the purge has done. */
export function PurgeFigures({ report }: { report: TtlReport }) {
  return (
    <>
      <Figure name="Next end">{report.nextExpirySeconds === null ? "none" : <Countdown end={report.nextExpirySeconds} />}</Figure>
      <Figure name="Ended, not purged yet">{report.backlogItems.toLocaleString()}</Figure>
      <Figure name="Oldest of them">{span(report.oldestPendingSeconds)}</Figure>
      <Figure name="Purged so far">{report.purgedTotal.toLocaleString()}</Figure>
      <Figure name="Purged per second">{report.purgeRate.toFixed(1)}</Figure>
      <Figure name="Request units spent">{report.ruSpentTotal.toFixed(1)}</Figure>
    </>
  );
}

function Figure({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** How many items end when, as bars. */
export function Forecast({ report, second }: { report: TtlReport; second: number }) {
  const most = Math.max(1, ...report.forecast.map((slice) => slice.items));
  return (
    <table class="forecast">
      <caption>Items that end</caption>
      <tbody>
        {report.forecast.map((slice) => (
          <tr key={slice.fromSeconds}>
            <th scope="row">{slice.toSeconds === null ? "later" : `within ${span(Math.max(1, slice.toSeconds - second))}`}</th>
            <td class="number">{slice.items.toLocaleString()}</td>
            <td class="bar-cell" aria-hidden="true">
              <span class="bar-fill" style={{ width: `${(100 * slice.items) / most}%` }} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Why an item is there or gone: also one that is in no list any more. */
export function Ask({ client, place, hasKeys }: { client: Client; place: Place; hasKeys: boolean }) {
  const [answer, setAnswer] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    try {
      const key = hasKeys ? (JSON.parse(String(fields.get("key"))) as unknown) : [];
      if (!Array.isArray(key)) throw new Error("The partition key is an array: a value for each path.");
      setAnswer(inWords(await ttlWhy(client, place, String(fields.get("id")), key)));
      setProblem(null);
    } catch (error) {
      setAnswer(null);
      setProblem(wordsOf(error));
    }
  };
  return (
    <form class="card" aria-label="Why is an item there or gone?" onSubmit={(event) => void submit(event)}>
      <label>
        Why is this item there or gone?
        <input name="id" required placeholder="id" autocomplete="off" />
      </label>
      {hasKeys && (
        <label>
          Its partition key
          <input name="key" class="code" required placeholder='["value"]' autocomplete="off" />
        </label>
      )}
      <Problem text={problem} />
      {answer !== null && (
        <p class="note" role="status">
          {answer}
        </p>
      )}
      <div class="tools">
        <button type="submit">Ask</button>
      </div>
    </form>
  );
}

/** Some of the items that another default would end at once, by their ids. */
async function sampleOf(client: Client, place: Place, defaultTtl: number): Promise<string[]> {
  const condition = endedCondition(defaultTtl, Math.floor(now.peek() / 1_000));
  const text = `SELECT TOP ${SAMPLE} VALUE c.id FROM c WHERE ${condition}`;
  const sample: string[] = [];
  let continuation: string | null = null;
  for (let page = 0; page < SAMPLE_PAGES && sample.length < SAMPLE; page += 1) {
    const { body }: { body: Page } = await query(client, place, text, continuation);
    sample.push(...body.rows.map(String));
    continuation = body.continuation;
    if (continuation === null) break;
  }
  return sample;
}

/** Another default: first what it would end, then whether to set it. */
function Change({ client, place, container, onChange }: Properties) {
  const [wanted, setWanted] = useState(container.defaultTtl === undefined ? "" : String(container.defaultTtl));
  const [preview, setPreview] = useState<{ of: string; found: TtlPreview; sample: string[] } | null>(null);
  const [problem, attempt] = useAttempt();
  const number = wanted.trim() === "" ? null : Number(wanted);
  const look = (): Promise<void> =>
    attempt(async () => {
      const found = await ttlPreview(client, place, number);
      const sample = number === null || found.expireNow === 0 ? [] : await sampleOf(client, place, number);
      setPreview({ of: wanted, found, sample });
    });
  const apply = (): Promise<void> =>
    attempt(async () => {
      const { defaultTtl: _, ...rest } = container;
      onChange(await replaceContainer(client, place, number === null ? rest : { ...rest, defaultTtl: number }, container._etag));
      setPreview(null);
    });
  const isSeen = preview !== null && preview.of === wanted;
  return (
    <form
      class="card"
      aria-label="Another default"
      onSubmit={(event) => {
        event.preventDefault();
        void (isSeen ? apply() : look());
      }}
    >
      <label>
        Default time to live in seconds
        <input type="number" min="-1" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
        <small>−1: only items with a ttl of their own end; empty: off</small>
      </label>
      <Problem text={problem} />
      {isSeen && (
        <p class="note" role="status">
          <strong>{preview.found.expireNow.toLocaleString()}</strong> {preview.found.expireNow === 1 ? "ends" : "end"} at once,{" "}
          {preview.found.expireWithinHour.toLocaleString()} within an hour, {preview.found.expireWithinDay.toLocaleString()} within a day,{" "}
          {preview.found.neverExpire.toLocaleString()} never.
          {preview.sample.length > 0 && ` Among those that end at once: ${preview.sample.join(", ")}.`}
        </p>
      )}
      <div class="tools">
        <button type="button" onClick={() => void look()}>
          Preview
        </button>
        <button type="submit" class={isSeen && preview.found.expireNow > 0 ? "danger" : "primary"} disabled={!isSeen}>
          Apply
        </button>
      </div>
    </form>
  );
}
