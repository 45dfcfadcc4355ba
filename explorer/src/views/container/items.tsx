// Items in a list, and one of them as JSON.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import {
  type Container,
  createItem,
  deleteItem,
  type Item,
  partitionKeyOf,
  type Place,
  query,
  readItem,
  replaceItem,
  type TtlWhy,
  ttlWhy,
} from "../../api/account";
import type { Client } from "../../api/client";
import { parse } from "../../api/json";
import { endOf } from "../../api/ttl";
import { inWords } from "../../api/why";
import { itemsOf, upload } from "../../api/upload";
import { Editor } from "../../editor/editor";
import { now } from "../../state/clock";
import { wordsOf } from "../../state/session";
import { Countdown } from "../../ui/countdown";
import { download } from "../../ui/download";
import { Empty, Problem } from "../../ui/notice";
import { VirtualList } from "../../ui/virtual-list";

interface Properties {
  client: Client;
  place: Place;
  container: Container;
}

/** What the editor holds. */
interface Draft {
  /** Another one for each item that is opened; it stays when a new one is saved. */
  id: number;
  /** `null`: a new item. */
  item: Item | null;
  /** What the editor begins with. */
  text: string;
  /** Another one for each time that the text is set. */
  version: number;
}

/** What goes on with the list. */
interface Rest {
  /** The query of the pages before. */
  query: string;
  continuation: string;
}

export function Items({ client, place, container }: Properties) {
  const [items, setItems] = useState<Item[] | null>(null);
  const [filter, setFilter] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [draft, setDraft] = useState<Draft | null>(null);
  const versions = useRef(0);
  const open = (item: Item | null, text: string): void => {
    const version = ++versions.current;
    setDraft({ id: version, item, text, version });
  };
  const [rest, setRest] = useState<Rest | null>(null);
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  /** What takes long, in words. */
  const [progress, setProgress] = useState<string | null>(null);
  const isLoading = useRef(false);
  const run = useRef(0);
  const identity = (item: Item): string => JSON.stringify([item.id, partitionKeyOf(item, container.partitionKey)]);

  /** Reads from the beginning, or goes on, until there is something more to show: pages of ranges without a match are empty. */
  const load = async (asked: string, after: Rest | null): Promise<void> => {
    const mine = ++run.current;
    isLoading.current = true;
    let [continuation, isFirst] = [after?.continuation ?? null, after === null];
    try {
      for (;;) {
        const { body } = await query(client, place, asked, continuation);
        if (mine !== run.current) return;
        const replaces = isFirst;
        isFirst = false;
        continuation = body.continuation;
        setItems((before) => (replaces ? (body.rows as Item[]) : appended(before ?? [], body.rows as Item[], identity)));
        if (body.rows.length > 0 || continuation === null) break;
      }
      setRest(continuation === null ? null : { query: asked, continuation });
      setProblem(null);
    } catch (error) {
      if (mine !== run.current) return;
      setRest(null);
      setProblem(wordsOf(error));
    } finally {
      if (mine === run.current) isLoading.current = false;
    }
  };
  const asked = filter.trim() === "" ? "SELECT * FROM c" : `SELECT * FROM c ${filter}`;
  useEffect(() => void load(asked, null), []);
  const more = useCallback(() => {
    if (!isLoading.current && rest !== null) void load(rest.query, rest);
  }, [rest]);

  // What has ended leaves the list when it does.
  const second = Math.floor(now.value / 1_000);
  const live = items?.filter((item) => (endOf(item, container) ?? Number.POSITIVE_INFINITY) > second) ?? null;

  const hasNone = live !== null && live.length === 0;
  useEffect(() => {
    // All that were read have ended: the list, which asks for more, is not there.
    if (hasNone) more();
  }, [hasNone, more]);

  const choose = (item: Item): void => open(item, textOf(item));
  const again = (): Promise<void> => load(asked, null);
  const mark = (item: Item): void => {
    const name = identity(item);
    setMarked((before) => new Set(before.has(name) ? [...before].filter((one) => one !== name) : [...before, name]));
  };
  const long = async (what: () => Promise<void>): Promise<void> => {
    try {
      await what();
      setProblem(null);
    } catch (error) {
      setProblem(wordsOf(error));
    } finally {
      setProgress(null);
    }
  };
  const chosen = marked.size === 0 ? [] : (live?.filter((item) => marked.has(identity(item))) ?? []);
  const removeMany = (): Promise<void> =>
    long(async () => {
      if (!confirm(`Delete ${chosen.length} items?`)) return;
      for (const [at, item] of chosen.entries()) {
        setProgress(`${at} of ${chosen.length} deleted`);
        await deleteItem(client, place, partitionKeyOf(item, container.partitionKey), item.id);
        setItems((before) => (before ?? []).filter((other) => identity(other) !== identity(item)));
      }
      setMarked(new Set());
      setDraft(null);
    });
  const take = (input: HTMLInputElement): Promise<void> =>
    long(async () => {
      const file = input.files?.[0];
      if (file === undefined) return;
      try {
        const found = itemsOf(await file.text());
        await upload(client, place, container, found, (done) => setProgress(`${done} of ${found.length} stored`));
      } finally {
        // The same file may be chosen again.
        input.value = "";
        await again();
      }
    });
  return (
    <div class="items">
      <form
        class="tools"
        onSubmit={(event) => {
          event.preventDefault();
          void again();
        }}
      >
        <label class="grow">
          <span class="muted">SELECT * FROM c</span>
          <input
            class="grow code"
            aria-label="Filter"
            placeholder="WHERE c.name = 'x'"
            spellcheck={false}
            value={filter}
            onInput={(event) => setFilter(event.currentTarget.value)}
          />
        </label>
        <button type="submit">Apply</button>
        <button type="button" onClick={() => open(null, newItem(container))}>
          New item
        </button>
        <label class="button">
          Upload
          <input type="file" accept=".json,.jsonl,.ndjson,application/json" onChange={(event) => void take(event.currentTarget)} />
        </label>
        {live !== null && live.length > 0 && (
          <button type="button" onClick={() => download(`${place.container}.json`, JSON.stringify(live, null, 2))}>
            Download
          </button>
        )}
        {chosen.length > 0 && (
          <button type="button" class="danger" onClick={() => void removeMany()}>
            Delete {chosen.length} {chosen.length === 1 ? "item" : "items"}
          </button>
        )}
        {progress !== null && <span role="status">{progress}</span>}
      </form>
      <Problem text={problem} />
      <div class="split">
        <div class="pane">
          {live !== null && live.length > 0 && (
            <VirtualList
              rows={live}
              label="Items"
              keyOf={identity}
              selected={draft?.item ? identity(draft.item) : null}
              onSelect={choose}
              marked={marked}
              onMark={mark}
              onEnd={more}
              render={(item) => (
                <>
                  <span class="grow clip">{item.id}</span>
                  <span class="muted clip">{JSON.stringify(partitionKeyOf(item, container.partitionKey))}</span>
                  <Countdown end={endOf(item, container)} />
                </>
              )}
            />
          )}
          {hasNone && rest === null && problem === null && (
            <Empty title="No items">
              <p>{filter.trim() === "" ? "Programs or “New item” put items here." : "None fits the filter."}</p>
            </Empty>
          )}
        </div>
        {draft !== null && (
          <One
            key={draft.id}
            client={client}
            place={place}
            container={container}
            draft={draft}
            onSaved={(item, isAsSent) => {
              setItems((before) => [item, ...(before ?? []).filter((other) => identity(other) !== identity(item))]);
              setDraft((current) => {
                // Something else was opened meanwhile.
                if (current?.version !== draft.version) return current;
                return isAsSent ? { ...current, item, text: textOf(item), version: ++versions.current } : { ...current, item };
              });
            }}
            onDeleted={(item) => {
              setItems((before) => (before ?? []).filter((other) => identity(other) !== identity(item)));
              setDraft((current) => (current?.version === draft.version ? null : current));
            }}
            onDuplicate={(text) => open(null, text)}
            onClose={() => setDraft(null)}
          />
        )}
      </div>
    </div>
  );
}

interface OneProperties extends Properties {
  draft: Draft;
  /** `isAsSent`: nothing was typed since. */
  onSaved: (item: Item, isAsSent: boolean) => void;
  onDeleted: (item: Item) => void;
  onDuplicate: (text: string) => void;
  onClose: () => void;
}

/** One item, as JSON that can be changed. */
function One({ client, place, container, draft, onSaved, onDeleted, onDuplicate, onClose }: OneProperties) {
  const [text, setText] = useState(draft.text);
  const [problem, setProblem] = useState<string | null>(null);
  const [why, setWhy] = useState<TtlWhy | null>(null);
  const [isBusy, setBusy] = useState(false);
  const { item } = draft;
  const typed = useRef(text);
  typed.current = text;
  useEffect(() => {
    setText(draft.text);
    setWhy(null);
  }, [draft.version]);
  const attempt = async (what: () => Promise<void>): Promise<void> => {
    if (isBusy) return;
    setBusy(true);
    try {
      await what();
      setProblem(null);
    } catch (error) {
      setProblem(wordsOf(error));
    } finally {
      setBusy(false);
    }
  };
  const save = (): Promise<void> =>
    attempt(async () => {
      const wanted = parse(text);
      const key = partitionKeyOf(wanted, container.partitionKey);
      const answer =
        item === null
          ? await createItem(client, place, key, text)
          : await replaceItem(client, place, partitionKeyOf(item, container.partitionKey), item.id, text, item._etag);
      onSaved(answer.body, typed.current === text);
    });
  const remove = (): Promise<void> =>
    attempt(async () => {
      if (item === null || !confirm(`Delete the item "${item.id}"?`)) return;
      await deleteItem(client, place, partitionKeyOf(item, container.partitionKey), item.id);
      onDeleted(item);
    });
  const reload = (): Promise<void> =>
    attempt(async () => {
      if (item !== null) onSaved((await readItem(client, place, partitionKeyOf(item, container.partitionKey), item.id)).body, true);
    });
  const ask = (): Promise<void> =>
    attempt(async () => {
      if (item !== null) setWhy(await ttlWhy(client, place, item.id, partitionKeyOf(item, container.partitionKey)));
    });
  return (
    <div class="pane one" role="region" aria-label={item === null ? "New item" : "Item"}>
      <div class="tools">
        <strong class="grow clip">{item === null ? "New item" : item.id}</strong>
        {item !== null && <Countdown end={endOf(item, container)} />}
        <button class="quiet" aria-label="Close" onClick={onClose}>
          ×
        </button>
      </div>
      <div class="tools">
        <button class="primary" disabled={isBusy} onClick={() => void save()}>
          Save
        </button>
        {item !== null && (
          <>
            <button onClick={() => void reload()}>Reload</button>
            <button onClick={() => onDuplicate(textOf({ ...item, id: `${item.id}-copy` }))}>Duplicate</button>
            <button onClick={() => void ask()}>Why?</button>
            <button class="danger" onClick={() => void remove()}>
              Delete
            </button>
          </>
        )}
      </div>
      <Problem text={problem} />
      {why !== null && <p class="note">{inWords(why)}</p>}
      <Editor language="json" label="Item as JSON" text={text} onChange={setText} onRun={() => void save()} />
    </div>
  );
}

/** Rows that were not there yet: an item that was saved here, or has moved meanwhile, comes again. */
function appended(before: Item[], rows: Item[], identity: (item: Item) => string): Item[] {
  const known = new Set(before.map(identity));
  return [...before, ...rows.filter((row) => !known.has(identity(row)))];
}

/** What the server adds is not for editing, except that it says which version it is. */
function textOf(item: Item): string {
  const { _rid, _self, _attachments, _etag, _ts, ...rest } = item;
  return JSON.stringify(rest, null, 2);
}

function newItem(container: Container): string {
  const item: Record<string, unknown> = { id: crypto.getRandomValues(new Uint32Array(1))[0]?.toString(16) ?? "new" };
  for (const path of container.partitionKey.paths) {
    const name = path.split("/")[1] ?? "";
    if (path.split("/").length === 2 && !(name in item)) item[name] = "";
  }
  return JSON.stringify(item, null, 2);
}
