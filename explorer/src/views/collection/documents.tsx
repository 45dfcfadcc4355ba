// Documents in a list, found by a query, and one of them as text with its types.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type Place, type TtlWhy, ttlWhy } from "../../api/account";
import type { Client } from "../../api/client";
import { inWords } from "../../api/why";
import { Editor } from "../../editor/editor";
import {
  type Collection,
  type Cursor,
  endsOf,
  type Find,
  findCommand,
  idText,
  indexes,
  insert,
  keyValue,
  next,
  remove,
  replace,
  reread,
} from "../../mongo/commands";
import { parse, parseDocuments } from "../../mongo/parse";
import { type Document, print, printShort, toExtended, Typed } from "../../mongo/value";
import { now } from "../../state/clock";
import { useAttempt } from "../../ui/attempt";
import { Countdown } from "../../ui/countdown";
import { download } from "../../ui/download";
import { Empty, Problem } from "../../ui/notice";
import { VirtualList } from "../../ui/virtual-list";

/** Documents of an upload that are sent together. */
const TOGETHER = 100;
const NOTHING: Find = { filter: "", projection: "", sort: "", limit: "" };

interface Properties {
  client: Client;
  place: Place;
  collection: Collection;
  /** `null`: it is not sharded. */
  shardKey: string | null;
}

/** A document of the list. */
interface Row {
  document: Document;
  /** Milliseconds since 1970; `null`: it does not end. */
  end: number | null;
}

/** What the editor holds. */
interface Draft {
  /** `null`: a new document. */
  row: Row | null;
  text: string;
  /** Another one for each time that something is opened. */
  version: number;
}

export function Documents({ client, place, collection, shardKey }: Properties) {
  const [rows, setRows] = useState<Row[] | null>(null);
  const [find, setFind] = useState(NOTHING);
  const [showsMore, setShowsMore] = useState(false);
  const [rest, setRest] = useState<Cursor | null>(null);
  const [draft, setDraft] = useState<Draft | null>(null);
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  const [progress, setProgress] = useState<string | null>(null);
  const [problem, attempt] = useAttempt();
  const [versions, run, isLoading] = [useRef(0), useRef(0), useRef(false)];
  const open = (row: Row | null, text: string): void => setDraft({ row, text, version: ++versions.current });
  // Parts of documents are not for editing.
  const isWhole = find.projection.trim() === "" && !collection.isView;

  const load = async (cursor: Cursor): Promise<void> => {
    const mine = ++run.current;
    isLoading.current = true;
    try {
      const found = await next(client, cursor);
      const ends = collection.isView ? [] : await endsIfAny(client, place, found.documents, shardKey);
      if (mine !== run.current) return;
      const more = found.documents.map((document, at) => ({ document, end: ends[at] ?? null }));
      setRows((before) => (cursor.id === null ? more : [...(before ?? []), ...more]));
      setRest(found.rest);
    } catch (error) {
      if (mine !== run.current) return;
      setRest(null);
      throw error;
    } finally {
      if (mine === run.current) isLoading.current = false;
    }
  };
  const again = (): Promise<void> => attempt(() => load(findCommand(place, find)));
  useEffect(() => void again(), []);
  const more = useCallback(() => {
    if (!isLoading.current && rest !== null) void attempt(() => load(rest));
  }, [rest]);

  // What has ended leaves the list when it does.
  const live = rows?.filter(({ end }) => end === null || end > now.value) ?? null;
  const hasNone = live !== null && live.length === 0;
  useEffect(() => {
    // All that were read have ended: the list, which asks for more, is not there.
    if (hasNone) more();
  }, [hasNone, more]);

  const mark = (row: Row): void => {
    const name = identity(row);
    setMarked((before) => new Set(before.has(name) ? [...before].filter((one) => one !== name) : [...before, name]));
  };
  const chosen = marked.size === 0 ? [] : (live?.filter((row) => marked.has(identity(row))) ?? []);
  const drop = (gone: string): void => setRows((before) => (before ?? []).filter((row) => identity(row) !== gone));
  const removeMany = (): Promise<void> =>
    attempt(async () => {
      if (!confirm(`Delete ${chosen.length} documents?`)) return;
      try {
        for (const [at, row] of chosen.entries()) {
          setProgress(`${at} of ${chosen.length} deleted`);
          await remove(client, place, row.document);
          drop(identity(row));
        }
        setMarked(new Set());
        setDraft(null);
      } finally {
        setProgress(null);
      }
    });
  const take = (input: HTMLInputElement): Promise<void> =>
    attempt(async () => {
      const file = input.files?.[0];
      if (file === undefined) return;
      try {
        const found = parseDocuments(await file.text());
        for (let from = 0; from < found.length; from += TOGETHER) {
          setProgress(`${from} of ${found.length} inserted`);
          await insert(client, place, found.slice(from, from + TOGETHER).map(withId));
        }
      } finally {
        // The same file may be chosen again.
        input.value = "";
        setProgress(null);
        await again();
      }
    });
  const typed = (name: keyof Find, label: string, placeholder: string) => (
    <label class="grow">
      <span class="muted">{label}</span>
      <input
        class="grow code"
        aria-label={label}
        placeholder={placeholder}
        spellcheck={false}
        autocomplete="off"
        value={find[name]}
        onInput={(event) => setFind({ ...find, [name]: event.currentTarget.value })}
      />
    </label>
  );
  return (
    <div class="items">
      <form
        aria-label="Find"
        onSubmit={(event) => {
          event.preventDefault();
          void again();
        }}
      >
        <div class="tools">
          {typed("filter", "Filter", '{ status: "open", at: { $lt: ISODate("2030-01-01") } }')}
          <button type="submit">Find</button>
          <button type="button" aria-expanded={showsMore} onClick={() => setShowsMore(!showsMore)}>
            More
          </button>
          {!collection.isView && (
            <>
              <button type="button" onClick={() => open(null, newDocument(shardKey))}>
                New document
              </button>
              <label class="button">
                Upload
                <input type="file" accept=".json,.jsonl,.ndjson,application/json" onChange={(event) => void take(event.currentTarget)} />
              </label>
            </>
          )}
          {live !== null && live.length > 0 && (
            <button type="button" onClick={() => download(`${place.container}.json`, toExtended(live.map((row) => row.document)))}>
              Download
            </button>
          )}
          {chosen.length > 0 && !collection.isView && (
            <button type="button" class="danger" onClick={() => void removeMany()}>
              Delete {chosen.length} {chosen.length === 1 ? "document" : "documents"}
            </button>
          )}
          {progress !== null && <span role="status">{progress}</span>}
        </div>
        {showsMore && (
          <div class="tools">
            {typed("projection", "Projection", "{ status: 1 }")}
            {typed("sort", "Sort", "{ at: -1 }")}
            {typed("limit", "Limit", "20")}
          </div>
        )}
      </form>
      <Problem text={problem} />
      <div class="split">
        <div class="pane">
          {live !== null && live.length > 0 && (
            <VirtualList
              rows={live}
              label="Documents"
              keyOf={identity}
              selected={draft?.row ? identity(draft.row) : null}
              onSelect={(row) => open(row, print(row.document))}
              marked={marked}
              onMark={mark}
              onEnd={more}
              render={({ document, end }) => (
                <>
                  <span class="clip half">{printShort(document.get("_id") ?? null, 60)}</span>
                  <span class="muted grow clip">{printShort(withoutId(document), 160)}</span>
                  {!collection.isView && <Countdown end={end === null ? null : end / 1_000} />}
                </>
              )}
            />
          )}
          {hasNone && rest === null && problem === null && (
            <Empty title="No documents">
              <p>{find.filter.trim() === "" ? "Programs or “New document” put documents here." : "None fits the filter."}</p>
            </Empty>
          )}
        </div>
        {draft !== null && (
          <One
            key={draft.row === null ? "" : identity(draft.row)}
            client={client}
            place={place}
            shardKey={shardKey}
            isEditable={isWhole}
            draft={draft}
            onSaved={(row, isAsSent) => {
              setRows((before) => [row, ...(before ?? []).filter((other) => identity(other) !== identity(row))]);
              setDraft((current) => {
                // Something else was opened meanwhile.
                if (current?.version !== draft.version) return current;
                return isAsSent ? { row, text: print(row.document), version: ++versions.current } : { ...current, row };
              });
            }}
            onDeleted={(row) => {
              drop(identity(row));
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

interface OneProperties {
  client: Client;
  place: Place;
  shardKey: string | null;
  isEditable: boolean;
  draft: Draft;
  /** `isAsSent`: nothing was typed since. */
  onSaved: (row: Row, isAsSent: boolean) => void;
  onDeleted: (row: Row) => void;
  onDuplicate: (text: string) => void;
  onClose: () => void;
}

/** One document, in the syntax of the shell, that can be changed. */
function One({ client, place, shardKey, isEditable, draft, onSaved, onDeleted, onDuplicate, onClose }: OneProperties) {
  const [text, setText] = useState(draft.text);
  const [why, setWhy] = useState<TtlWhy | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [problem, attemptOne] = useAttempt();
  const { row } = draft;
  const typed = useRef(text);
  typed.current = text;
  useEffect(() => {
    setText(draft.text);
    setWhy(null);
  }, [draft.version]);
  const attempt = (what: () => Promise<void>): Promise<void> =>
    attemptOne(async () => {
      if (isBusy) return;
      setBusy(true);
      try {
        await what();
      } finally {
        setBusy(false);
      }
    });
  /** As it is now in the server: an update may make something else of it than what was sent. */
  const shown = async (document: Document): Promise<Row | null> => {
    const found = await reread(client, place, document);
    if (found === null) return null;
    const [end] = await endsIfAny(client, place, [found], shardKey);
    return { document: found, end: end ?? null };
  };
  const save = (): Promise<void> =>
    attempt(async () => {
      const parsed = parse(text);
      if (!(parsed instanceof Map)) throw new Error("This must be a document: { name: value, … }.");
      const wanted = row === null ? withId(parsed) : parsed;
      if (row === null) await insert(client, place, [wanted]);
      else await replace(client, place, row.document, wanted);
      const saved = await shown(row?.document ?? wanted);
      if (saved === null) throw new Error("It is saved, and has ended already.");
      onSaved(saved, typed.current === text);
    });
  const erase = (): Promise<void> =>
    attempt(async () => {
      if (row === null || !confirm(`Delete the document ${idText(row.document)}?`)) return;
      await remove(client, place, row.document);
      onDeleted(row);
    });
  const reload = (): Promise<void> =>
    attempt(async () => {
      if (row === null) return;
      const found = await shown(row.document);
      if (found === null) throw new Error("The document is gone.");
      onSaved(found, true);
    });
  const ask = (): Promise<void> =>
    attempt(async () => {
      if (row !== null) setWhy(await ttlWhy(client, place, idText(row.document), keyValue(row.document, shardKey)));
    });
  return (
    <div class="pane one" role="region" aria-label={row === null ? "New document" : "Document"}>
      <div class="tools">
        <strong class="grow clip">{row === null ? "New document" : printShort(row.document.get("_id") ?? null, 60)}</strong>
        {row !== null && <Countdown end={row.end === null ? null : row.end / 1_000} />}
        <button class="quiet" aria-label="Close" onClick={onClose}>
          ×
        </button>
      </div>
      {isEditable && (
        <div class="tools">
          <button class="primary" disabled={isBusy} onClick={() => void save()}>
            Save
          </button>
          {row !== null && (
            <>
              <button onClick={() => void reload()}>Reload</button>
              <button onClick={() => onDuplicate(print(withoutId(row.document)))}>Duplicate</button>
              <button onClick={() => void ask()}>Why?</button>
              <button class="danger" onClick={() => void erase()}>
                Delete
              </button>
            </>
          )}
        </div>
      )}
      <Problem text={problem} />
      {why !== null && <p class="note">{inWords(why)}</p>}
      <Editor language="javascript" label="Document" isReadOnly={!isEditable} text={text} onChange={setText} onRun={() => void save()} />
    </div>
  );
}

const identity = ({ document }: Row): string => idText(document);

const withoutId = (document: Document): Document => new Map([...document].filter(([name]) => name !== "_id"));

/** With an `_id`, first, as drivers do. */
function withId(document: Document): Document {
  if (document.has("_id")) return document;
  const id = parse("ObjectId()");
  return new Map([["_id", id], ...document]);
}

function newDocument(shardKey: string | null): string {
  return `{\n  _id: ${print(parse("ObjectId()"))},\n  ${shardKey === null || shardKey.includes(".") ? "" : `${JSON.stringify(shardKey)}: ""`}\n}`;
}

/** When documents end, if anything ends documents of the collection, or they have a ttl. */
async function endsIfAny(client: Client, place: Place, documents: Document[], shardKey: string | null): Promise<(number | null)[]> {
  const hasOwn = documents.some((document) => document.get("ttl") instanceof Typed);
  const endsSome = hasOwn || (await indexes(client, place)).some((index) => index.expireAfterSeconds !== null);
  if (!endsSome) return [];
  // Shard keys of types that the admin API does not take, and parts of documents, have no countdown.
  return endsOf(client, place, documents, shardKey).catch(() => []);
}
