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
import { endOf } from "../../api/ttl";
import { Editor } from "../../editor/editor";
import { now } from "../../state/clock";
import { wordsOf } from "../../state/session";
import { Countdown } from "../../ui/countdown";
import { Empty, Problem } from "../../ui/notice";
import { VirtualList } from "../../ui/virtual-list";

interface Properties {
  client: Client;
  place: Place;
  container: Container;
}

/** What the editor holds. */
interface Draft {
  /** `null`: a new item. */
  item: Item | null;
  text: string;
}

export function Items({ client, place, container }: Properties) {
  const [items, setItems] = useState<Item[] | null>(null);
  const [filter, setFilter] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [draft, setDraft] = useState<Draft | null>(null);
  const continuation = useRef<string | null>(null);
  const isLoading = useRef(false);
  const run = useRef(0);
  const identity = (item: Item): string => JSON.stringify([item.id, partitionKeyOf(item, container.partitionKey)]);

  const page = async (text: string, after: string | null): Promise<void> => {
    const mine = ++run.current;
    isLoading.current = true;
    try {
      const asked = text.trim() === "" ? "SELECT * FROM c" : `SELECT * FROM c ${text}`;
      const { body } = await query(client, place, asked, after);
      if (mine !== run.current) return;
      continuation.current = body.continuation;
      setItems((before) => [...(after === null ? [] : (before ?? [])), ...(body.rows as Item[])]);
      setProblem(null);
    } catch (error) {
      if (mine === run.current) setProblem(wordsOf(error));
    } finally {
      if (mine === run.current) isLoading.current = false;
    }
  };
  useEffect(() => void page("", null), []);
  const more = useCallback(() => {
    if (!isLoading.current && continuation.current !== null) void page(filter, continuation.current);
  }, [filter]);

  // What has ended leaves the list when it does.
  const second = Math.floor(now.value / 1_000);
  const live = items?.filter((item) => (endOf(item, container) ?? Number.POSITIVE_INFINITY) > second) ?? null;

  const choose = (item: Item): void => setDraft({ item, text: textOf(item) });
  const again = async (): Promise<void> => page(filter, null);
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
        <button type="button" onClick={() => setDraft({ item: null, text: newItem(container) })}>
          New item
        </button>
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
          {live !== null && live.length === 0 && (
            <Empty title="No items">
              <p>{filter.trim() === "" ? "Programs or “New item” put items here." : "None fits the filter."}</p>
            </Empty>
          )}
        </div>
        {draft !== null && (
          <One
            key={draft.item === null ? "" : identity(draft.item)}
            client={client}
            place={place}
            container={container}
            draft={draft}
            onSaved={(item) => {
              setItems((before) => [item, ...(before ?? []).filter((other) => identity(other) !== identity(item))]);
              choose(item);
            }}
            onDeleted={(item) => {
              setItems((before) => (before ?? []).filter((other) => identity(other) !== identity(item)));
              setDraft(null);
            }}
            onDuplicate={(text) => setDraft({ item: null, text })}
            onClose={() => setDraft(null)}
          />
        )}
      </div>
    </div>
  );
}

interface OneProperties extends Properties {
  draft: Draft;
  onSaved: (item: Item) => void;
  onDeleted: (item: Item) => void;
  onDuplicate: (text: string) => void;
  onClose: () => void;
}

/** One item, as JSON that can be changed. */
function One({ client, place, container, draft, onSaved, onDeleted, onDuplicate, onClose }: OneProperties) {
  const [text, setText] = useState(draft.text);
  const [problem, setProblem] = useState<string | null>(null);
  const [why, setWhy] = useState<TtlWhy | null>(null);
  const { item } = draft;
  useEffect(() => setText(draft.text), [draft.text]);
  const attempt = async (what: () => Promise<void>): Promise<void> => {
    try {
      await what();
      setProblem(null);
    } catch (error) {
      setProblem(wordsOf(error));
    }
  };
  const save = (): Promise<void> =>
    attempt(async () => {
      const wanted: unknown = JSON.parse(text);
      const key = partitionKeyOf(wanted, container.partitionKey);
      const answer =
        item === null
          ? await createItem(client, place, key, text)
          : await replaceItem(client, place, partitionKeyOf(item, container.partitionKey), item.id, text, item._etag);
      onSaved(answer.body);
    });
  const remove = (): Promise<void> =>
    attempt(async () => {
      if (item === null || !confirm(`Delete the item "${item.id}"?`)) return;
      await deleteItem(client, place, partitionKeyOf(item, container.partitionKey), item.id);
      onDeleted(item);
    });
  const reload = (): Promise<void> =>
    attempt(async () => {
      if (item !== null) onSaved((await readItem(client, place, partitionKeyOf(item, container.partitionKey), item.id)).body);
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
        <button class="primary" onClick={() => void save()}>
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

const RULES: Record<string, (why: TtlWhy) => string> = {
  own: (why) => `its own ttl of ${JSON.stringify(why.ttl)} seconds counts from its last write`,
  default: (why) => `the container's default of ${why.defaultTtl} seconds counts from its last write`,
  never: () => "it never ends: its ttl, or the container's default, is −1",
  off: () => "the container has no default, so no item ends",
  floor: () => "it had ended under an earlier default, and does not come back",
  date: () => "an index of the collection ends it at the date that it has",
};

function inWords(why: TtlWhy): string {
  if (why.state === "absent") return "There is no such item: it was never there, was deleted, or has ended and was purged.";
  const rule = RULES[why.rule]?.(why) ?? `by the rule "${why.rule}"`;
  const end = why.expiresAtSeconds === null ? "" : ` It ends at ${new Date(why.expiresAtSeconds * 1_000).toISOString()}.`;
  return why.state === "live" ? `It is there: ${rule}.${end}` : `It is gone, and not purged yet: ${rule}.`;
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
