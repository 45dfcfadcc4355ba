// Commands of MongoDB, sent over the admin API.

import { type Place, pathOf } from "../api/account";
import { type Answer, type Client, segment } from "../api/client";
import type { Throughput } from "../api/throughput";
import { parse, parseDocument, parseReply } from "./parse";
import { doc, type Document, documentAt, documentsAt, fromExtended, int, numberAt, textAt, toExtended, Typed, type Value } from "./value";

/** Milliseconds after which the server ends a read of this page. */
const LONGEST_READ_MS = 60_000;
/** Documents of a batch. */
export const BATCH = 50;

/** Runs a command; throws if it, or a statement of it, is refused. */
export async function run(client: Client, database: string, command: Document, signal?: AbortSignal): Promise<Answer<Document>> {
  const options = { body: toExtended(command), ...(signal === undefined ? {} : { signal }) };
  const { body, ...rest } = await client.adminText("POST", `dbs/${segment(database)}/mongo`, options);
  const reply = fromExtended(parseReply(body)) as Document;
  const [refused] = documentsAt(reply, "writeErrors");
  if (refused !== undefined) throw new Error(textAt(refused, "errmsg"));
  return { ...rest, body: reply };
}

/** What `listCollections` tells of a collection or a view. */
export interface Collection {
  name: string;
  isView: boolean;
  options: Document;
}

/** All of a database, or the one of a name. Empty if the server has no front end for MongoDB. */
export async function collections(client: Client, database: string, name?: string): Promise<Collection[]> {
  const filter: [string, Value][] = name === undefined ? [] : [["filter", doc(["name", name])]];
  const found: Document[] = [];
  let cursor: Cursor | null = { of: { database, container: "$cmd.listCollections" }, id: null, command: doc(["listCollections", int(1)], ...filter) };
  while (cursor !== null) {
    const batch: Batch = await next(client, cursor);
    found.push(...batch.documents);
    cursor = batch.rest;
  }
  return found.map((one) => ({
    name: textAt(one, "name"),
    isView: textAt(one, "type") === "view",
    options: documentAt(one, "options") ?? new Map(),
  }));
}

/** Where a read goes on. */
export interface Cursor {
  of: Place;
  /** `null`: at its beginning. */
  id: Value | null;
  command: Document;
  /** Documents of a batch after the first one, if it is another number than `BATCH`. */
  batch?: number;
}

export interface Batch {
  documents: Document[];
  charge: number;
  took: number;
  /** `null`: there are no more. */
  rest: Cursor | null;
  /** Of a change stream: where it goes on with another cursor. */
  token: Document | null;
}

/** The next documents of a read. */
export async function next(client: Client, cursor: Cursor, signal?: AbortSignal): Promise<Batch> {
  const { of, id } = cursor;
  const command = id === null ? cursor.command : doc(["getMore", id], ["collection", of.container], ["batchSize", int(cursor.batch ?? BATCH)]);
  const { body, charge, took } = await run(client, of.database, command, signal);
  const found = documentAt(body, "cursor");
  const more = found?.get("id") ?? null;
  const isOver = !(more instanceof Typed) || more.text === "0";
  return {
    documents: documentsAt(found, id === null ? "firstBatch" : "nextBatch"),
    charge,
    took,
    rest: isOver ? null : { ...cursor, id: more },
    token: documentAt(found, "postBatchResumeToken") ?? null,
  };
}

/** What people type to find documents: texts in the syntax of the shell. */
export interface Find {
  filter: string;
  projection: string;
  sort: string;
  limit: string;
}

/** Throws if one of the texts is no document. */
export function findCommand(of: Place, { filter, projection, sort, limit }: Find): Cursor {
  const command = doc(["find", of.container], ["filter", named("Filter", filter)]);
  if (projection.trim() !== "") command.set("projection", named("Projection", projection));
  if (sort.trim() !== "") command.set("sort", named("Sort", sort));
  if (limit.trim() !== "") {
    if (!/^\d{1,9}$/.test(limit.trim())) throw new Error("The limit must be a whole number.");
    command.set("limit", int(Number(limit)));
  }
  command.set("batchSize", int(BATCH)).set("maxTimeMS", int(LONGEST_READ_MS));
  return { of, id: null, command };
}

function named(name: string, text: string): Document {
  try {
    return parseDocument(text);
  } catch (error) {
    throw new Error(`${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Throws if the text is no array of stages. */
export function aggregateCommand(of: Place, text: string): Cursor {
  const pipeline = parse(text);
  if (!Array.isArray(pipeline)) throw new Error("A pipeline is an array of stages: [ { $match: { … } }, … ].");
  const command = doc(
    ["aggregate", of.container],
    ["pipeline", pipeline],
    ["cursor", doc(["batchSize", int(BATCH)])],
    ["maxTimeMS", int(LONGEST_READ_MS)],
  );
  return { of, id: null, command };
}

/** How the server would carry out a read. */
export async function explain(client: Client, { of, command }: Cursor, signal: AbortSignal): Promise<Document> {
  const { body } = await run(client, of.database, doc(["explain", command], ["verbosity", "queryPlanner"]), signal);
  for (const name of ["ok", "$clusterTime", "operationTime", "command", "serverInfo"]) body.delete(name);
  return body;
}

/** Nobody reads on. The server closes what is left open after some minutes. */
export function close(client: Client, cursor: Cursor | null): void {
  if (cursor === null || cursor.id === null) return;
  const command = doc(["killCursors", cursor.of.container], ["cursors", [cursor.id]]);
  run(client, cursor.of.database, command).catch(() => undefined);
}

export async function insert(client: Client, of: Sharded, documents: Document[]): Promise<void> {
  await run(client, of.database, doc(["insert", of.container], ["documents", documents]));
}

/** Stores documents, and replaces those that are there. They have ids. */
export async function upsert(client: Client, of: Sharded, documents: Document[]): Promise<void> {
  const statements = documents.map((document) => doc(["q", identityOf(of, document)], ["u", document], ["upsert", true]));
  await run(client, of.database, doc(["update", of.container], ["updates", statements]));
}

/**
 * Replaces a document, unless somebody else has changed it, or it has ended, since it was read. Numbers of equal value are the same for this: a change of
 * nothing but the type of a number is not noticed.
 */
export async function replace(client: Client, of: Sharded, before: Document, after: Document): Promise<void> {
  const isSame = doc(["$expr", doc(["$eq", ["$$ROOT", doc(["$literal", before])]])]);
  const query = new Map([...identityOf(of, before), ...isSame]);
  const update = doc(["q", query], ["u", after], ["multi", false], ["collation", doc(["locale", "simple"])]);
  const { body } = await run(client, of.database, doc(["update", of.container], ["updates", [update]]));
  if (numberAt(body, "n") === 0) throw new Error("Somebody else has changed the document since it was read, or it is gone. Reload it.");
}

/** Throws if it is not there. */
export async function remove(client: Client, of: Sharded, document: Document): Promise<void> {
  const statement = doc(["q", identityOf(of, document)], ["limit", int(1)]);
  const { body } = await run(client, of.database, doc(["delete", of.container], ["deletes", [statement]]));
  if (numberAt(body, "n") === 0) throw new Error(`The document ${idText(document)} was gone already.`);
}

/** The document as it is now; `null` if it is gone. */
export async function reread(client: Client, of: Sharded, document: Document): Promise<Document | null> {
  const command = doc(["find", of.container], ["filter", identityOf(of, document)], ["limit", int(1)]);
  const { documents } = await next(client, { of, id: null, command });
  return documents[0] ?? null;
}

export async function count(client: Client, of: Place, query: Document): Promise<number> {
  const { body } = await run(client, of.database, doc(["count", of.container], ["query", query], ["maxTimeMS", int(LONGEST_READ_MS)]));
  return numberAt(body, "n") ?? 0;
}

/** A collection with the path of its shard key; `null`: it is not sharded. */
export interface Sharded extends Place {
  shardKey: string | null;
}

/** What finds one document, also by an `_id` that an operator could be taken for. In a sharded collection an `_id` may be there for each shard key. */
export function identityOf(of: Sharded, document: Document): Document {
  const equal = (value: Value): Document => doc(["$eq", value]);
  const identity = doc(["_id", equal(document.get("_id") ?? null)]);
  return of.shardKey === null || of.shardKey === "_id" ? identity : identity.set(of.shardKey, equal(at(document, of.shardKey) ?? null));
}

/** A value at a path of names with dots between. */
function at(document: Document, path: string): Value | undefined {
  let value: Value | undefined = document;
  for (const name of path.split(".")) value = value instanceof Map ? value.get(name) : undefined;
  return value;
}

/** An index, as `listIndexes` tells it. */
export interface Index {
  name: string;
  key: Document;
  /** Seconds; `null`: it ends no documents. */
  expireAfterSeconds: number | null;
  /** All of it. */
  whole: Document;
}

export async function indexes(client: Client, of: Place): Promise<Index[]> {
  const command = doc(["listIndexes", of.container], ["cursor", doc(["batchSize", int(100)])]);
  const { documents } = await next(client, { of, id: null, command });
  return documents.map((whole) => ({
    name: textAt(whole, "name"),
    key: documentAt(whole, "key") ?? new Map(),
    expireAfterSeconds: numberAt(whole, "expireAfterSeconds"),
    whole,
  }));
}

/** An index with the name that drivers give it. */
function indexOf(key: Document, options: Document): Document {
  const name = [...key].map(([field, order]) => `${field}_${order instanceof Typed ? order.text : String(order)}`).join("_");
  return new Map<string, Value>([["key", key], ["name", name], ...options]);
}

export async function createIndex(client: Client, of: Place, key: Document, options: Document): Promise<void> {
  await run(client, of.database, doc(["createIndexes", of.container], ["indexes", [indexOf(key, options)]]));
}

export async function dropIndex(client: Client, of: Place, name: string): Promise<void> {
  await run(client, of.database, doc(["dropIndexes", of.container], ["index", name]));
}

/** Another time after which the index ends documents. */
export async function setExpiry(client: Client, of: Place, name: string, seconds: number): Promise<void> {
  const index = doc(["name", name], ["expireAfterSeconds", int(seconds)]);
  await run(client, of.database, doc(["collMod", of.container], ["index", index]));
}

/** What a new collection has. */
export interface NewCollection {
  /** Its path; "": it is not sharded. */
  shardKey: string;
  throughput: Throughput | null;
  /** The field of a TTL index, and its seconds; "": there is none. */
  ttlField: string;
  ttlSeconds: number;
}

export async function createCollection(client: Client, of: Place, wanted: NewCollection): Promise<void> {
  const { shardKey, throughput, ttlField, ttlSeconds } = wanted;
  const command = doc(["customAction", "CreateCollection"], ["collection", of.container]);
  if (shardKey !== "") command.set("shardKey", shardKey);
  if (throughput?.kind === "manual") command.set("offerThroughput", int(throughput.units));
  if (throughput?.kind === "autoscale") command.set("autoScaleSettings", doc(["maxThroughput", int(throughput.units)]));
  if (ttlField !== "") {
    const ofId = indexOf(doc(["_id", int(1)]), new Map());
    command.set("indexes", [ofId, indexOf(doc([ttlField, int(1)]), doc(["expireAfterSeconds", int(ttlSeconds)]))]);
  }
  await run(client, of.database, command);
}

export async function dropCollection(client: Client, of: Place): Promise<void> {
  await run(client, of.database, doc(["drop", of.container]));
}

/** When a document ends, in milliseconds; `null`: never; `undefined`: that is not known. */
export type End = number | null | undefined;

/** The ends of documents, in their order. */
export async function endsOf(client: Client, of: Sharded, documents: readonly Document[]): Promise<End[]> {
  const asked = documents.map((document) => ({ id: idText(document), pk: keyValue(of, document) }));
  if (asked.some(({ pk }) => pk === null)) return [];
  const ends: End[] = [];
  for (let from = 0; from < asked.length; from += 100) {
    const { body } = await client.admin<{ items: { state: string; endsMs: number | null }[] }>("POST", `${pathOf(of)}/ttl/ends`, {
      body: { items: asked.slice(from, from + 100) },
    });
    ends.push(...body.items.map(({ state, endsMs }) => (state === "absent" ? undefined : endsMs)));
  }
  return ends;
}

/** The `_id` as the admin API takes it. */
export const idText = (document: Document): string => toExtended(document.get("_id") ?? null);

/** The value of the shard key as the admin API takes it; `null`: it does not take its type. */
export function keyValue(of: Sharded, document: Document): unknown[] | null {
  if (of.shardKey === null) return [];
  const value = at(document, of.shardKey);
  if (value instanceof Typed) {
    const number = ["int", "long", "double"].includes(value.type) ? Number(value.text) : Number.NaN;
    return Number.isSafeInteger(number) || (value.type === "double" && Number.isFinite(number)) ? [number] : null;
  }
  return value === null || typeof value === "string" || typeof value === "boolean" ? [value] : null;
}
