// Documents in a list, found by a query, and one of them as text with its types.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type TtlWhy, ttlWhy } from "../../api/account";
import type { Client } from "../../api/client";
import { inWords } from "../../api/why";
import { Editor } from "../../editor/editor";
import {
  close,
  type Collection,
  type Cursor,
  type End,
  endsOf,
  type Find,
  findCommand,
  identityOf,
  idText,
  indexes,
  insert,
  keyValue,
  next,
  remove,
  replace,
  reread,
  type Sharded,
  upsert,
} from "../../mongo/commands";
import { parse, parseDocuments } from "../../mongo/parse";
import { depthOf, type Document, isFaithful, print, printShort, toExtended, Typed } from "../../mongo/value";
import { now } from "../../state/clock";
import { useAttempt } from "../../ui/attempt";
import { Countdown } from "../../ui/countdown";
import { download } from "../../ui/download";
import { Empty, Problem } from "../../ui/notice";
import { VirtualList } from "../../ui/virtual-list";

/** Documents of an upload that are sent together, and about how many characters. */
const [TOGETHER, TOGETHER_LENGTH] = [100, 500_000];
/** Levels that a document has at most to be edited here: the server reads no deeper text. */
const DEEPEST = 90;
const NOTHING: Find = { filter: "", projection: "", sort: "", limit: "" };

interface Properties {
  client: Client;
  place: Sharded;
  collection: Collection;
}

/** A document of the list. */
interface Row {
  document: Document;
  end: End;
}

/** What a find has found so far. */
interface Found {
  rows: Row[];
  /** Whether the rows are documents, and not what a projection or a view has made of them: only then is something done with them. */
  isWhole: boolean;
}

/** What the editor holds. */
interface Draft {
  /** Another one for each document that is opened; it stays when a new one is saved. */
  id: number;
  /** `null`: a new document. */
  row: Row | null;
  text: string;
  /** Another one for each time that the text is set. */
  version: number;
}

export function Documents({ client, place, collection }: Properties) {
  const [found, setFound] = useState<Found | null>(null);
  const [find, setFind] = useState(NOTHING);
  const [showsMore, setShowsMore] = useState(false);
  const [rest, setRest] = useState<Cursor | null>(null);
  const [draft, setDraft] = useState<Draft | null>(null);
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  const [progress, setProgress] = useState<string | null>(null);
  const [problem, attempt] = useAttempt();
  const [versions, run, isLoading] = [useRef(0), useRef(0), useRef(false)];
  const open = (row: Row | null, text: string): void => {
    const version = ++versions.current;
    setDraft({ id: version, row, text, version });
  };
  const cursor = useRef<Cursor | null>(null);
  const isWhole = found?.isWhole === true;
  const identity = (row: Row): string => identityIn(place, row, isWhole);

  const load = async (from: Cursor): Promise<void> => {
    const mine = ++run.current;
    isLoading.current = true;
    try {
      const batch = await next(client, from);
      if (mine !== run.current) return close(client, batch.rest);
      cursor.current = batch.rest;
      const isWhole = !collection.isView && !from.command.has("projection");
      const ends = isWhole ? await endsIfAny(client, place, batch.documents) : [];
      if (mine !== run.current) return;
      const more = batch.documents.map((document, at): Row => ({ document, end: ends[at] }));
      setFound((before) => ({ isWhole, rows: from.id === null ? more : [...(before?.rows ?? []), ...more] }));
      setRest(batch.rest);
    } catch (error) {
      if (mine !== run.current) return;
      setRest(null);
      throw error;
    } finally {
      if (mine === run.current) isLoading.current = false;
    }
  };
  const forget = (): void => {
    close(client, cursor.current);
    cursor.current = null;
  };
  const again = (): Promise<void> =>
    attempt(async () => {
      const command = findCommand(place, find);
      forget();
      setMarked(new Set());
      await load(command);
    });
  useEffect(() => {
    void again();
    return () => {
      run.current += 1;
      forget();
    };
  }, []);
  const more = useCallback(() => {
    if (!isLoading.current && rest !== null) void attempt(() => load(rest));
  }, [rest]);
  const setRows = (change: (before: Row[]) => Row[]): void => setFound((before) => before && { ...before, rows: change(before.rows) });

  // What has ended leaves the list when it does.
  const live = found?.rows.filter(({ end }) => (end ?? Number.POSITIVE_INFINITY) > now.value) ?? null;
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
  const drop = (gone: string): void => setRows((before) => before.filter((row) => identity(row) !== gone));
  const removeMany = (): Promise<void> =>
    attempt(async () => {
      if (!confirm(`Delete ${chosen.length} documents?`)) return;
      try {
        for (const [at, row] of chosen.entries()) {
          setProgress(`${at} of ${chosen.length} deleted`);
          try {
            await remove(client, place, row.document);
          } finally {
            // Also one that was gone already.
            drop(identity(row));
          }
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
        const documents = parseDocuments(await file.text()).map(withId);
        let done = 0;
        for (const part of partsOf(documents)) {
          setProgress(`${done} of ${documents.length} stored`);
          await upsert(client, place, part);
          done += part.length;
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
              <button type="button" onClick={() => open(null, newDocument(place.shardKey))}>
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
          {chosen.length > 0 && isWhole && (
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
              {...(isWhole && { onMark: mark })}
              onEnd={more}
              render={({ document, end }) => (
                <>
                  <span class="clip half">{printShort(document.get("_id") ?? null, 60)}</span>
                  <span class="muted grow clip">{printShort(withoutId(document), 160)}</span>
                  <Countdown end={inSeconds(end)} />
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
            key={draft.id}
            client={client}
            place={place}
            isEditable={draft.row === null || (isWhole && isFaithful(draft.row.document) && depthOf(draft.row.document) <= DEEPEST)}
            draft={draft}
            onSaved={(row, isAsSent) => {
              setRows((before) => [row, ...before.filter((other) => identity(other) !== identity(row))]);
              setDraft((current) => {
                // Something else was opened meanwhile.
                if (current?.version !== draft.version) return current;
                return isAsSent ? { ...current, row, text: print(row.document), version: ++versions.current } : { ...current, row };
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
  place: Sharded;
  isEditable: boolean;
  draft: Draft;
  /** `isAsSent`: nothing was typed since. */
  onSaved: (row: Row, isAsSent: boolean) => void;
  onDeleted: (row: Row) => void;
  onDuplicate: (text: string) => void;
  onClose: () => void;
}

/** One document, in the syntax of the shell, that can be changed. */
function One({ client, place, isEditable, draft, onSaved, onDeleted, onDuplicate, onClose }: OneProperties) {
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
    const [end] = await endsIfAny(client, place, [found]);
    return { document: found, end };
  };
  const save = (): Promise<void> =>
    attempt(async () => {
      const parsed = parse(text);
      if (!(parsed instanceof Map)) throw new Error("This must be a document: { name: value, … }.");
      const wanted = row === null ? withId(parsed) : parsed;
      if (row === null) await insert(client, place, [wanted]);
      else await replace(client, place, row.document, wanted);
      const saved = await shown(wanted.has("_id") ? wanted : (row?.document ?? wanted));
      if (saved === null) throw new Error("It is saved, and has ended already.");
      onSaved(saved, typed.current === text);
    });
  const erase = (): Promise<void> =>
    attempt(async () => {
      if (row === null || !confirm(`Delete the document ${idText(row.document)}?`)) return;
      try {
        await remove(client, place, row.document);
      } finally {
        onDeleted(row);
      }
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
      if (row === null) return;
      const key = keyValue(place, row.document);
      if (key === null) throw new Error("The server does not tell this for a shard key of this type.");
      setWhy(await ttlWhy(client, place, idText(row.document), key));
    });
  return (
    <div class="pane one" role="region" aria-label={row === null ? "New document" : "Document"}>
      <div class="tools">
        <strong class="grow clip">{row === null ? "New document" : printShort(row.document.get("_id") ?? null, 60)}</strong>
        {row !== null && <Countdown end={inSeconds(row.end)} />}
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

/** Names a row. In a sharded collection an `_id` may be there for each shard key; parts of documents are the same only if all of them is. */
function identityIn(place: Sharded, { document }: Row, isWhole: boolean): string {
  return toExtended(isWhole ? identityOf(place, document) : document);
}

const inSeconds = (end: End): number | null | undefined => (typeof end === "number" ? end / 1_000 : end);

/** Documents for one request each. */
function partsOf(documents: readonly Document[]): Document[][] {
  const parts: Document[][] = [];
  let length = Number.POSITIVE_INFINITY;
  for (const document of documents) {
    const own = toExtended(document).length;
    const last = parts.at(-1);
    if (last === undefined || last.length >= TOGETHER || length + own > TOGETHER_LENGTH) {
      parts.push([document]);
      length = own;
    } else {
      last.push(document);
      length += own;
    }
  }
  return parts;
}

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
async function endsIfAny(client: Client, place: Sharded, documents: Document[]): Promise<End[]> {
  const hasOwn = documents.some((document) => document.get("ttl") instanceof Typed);
  const endsSome = hasOwn || (await indexes(client, place)).some((index) => index.expireAfterSeconds !== null);
  if (!endsSome) return documents.map(() => null);
  // Without them, documents have no countdown.
  return endsOf(client, place, documents).catch(() => []);
}
