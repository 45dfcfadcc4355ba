// Commands of MongoDB, sent over the admin API.

import { type Place, pathOf } from "../api/account";
import { type Answer, type Client, segment } from "../api/client";
import type { Throughput } from "../api/throughput";
import { parse, parseDocument } from "./parse";
import { doc, type Document, documentAt, documentsAt, fromExtended, int, numberAt, textAt, toExtended, Typed, type Value } from "./value";

/** Milliseconds after which the server ends a read of this page. */
const LONGEST_READ_MS = 60_000;
/** Documents of a batch. */
export const BATCH = 50;

/** Runs a command; throws if it, or a statement of it, is refused. */
export async function run(client: Client, database: string, command: Document, signal?: AbortSignal): Promise<Answer<Document>> {
  const options = { body: toExtended(command), ...(signal === undefined ? {} : { signal }) };
  const { body, ...rest } = await client.adminText("POST", `dbs/${segment(database)}/mongo`, options);
  const reply = fromExtended(parse(body)) as Document;
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
}

export interface Batch {
  documents: Document[];
  charge: number;
  took: number;
  /** `null`: there are no more. */
  rest: Cursor | null;
}

/** The next documents of a read. */
export async function next(client: Client, cursor: Cursor, signal?: AbortSignal): Promise<Batch> {
  const { of, id } = cursor;
  const command = id === null ? cursor.command : doc(["getMore", id], ["collection", of.container], ["batchSize", int(BATCH)]);
  const { body, charge, took } = await run(client, of.database, command, signal);
  const found = documentAt(body, "cursor");
  const more = found?.get("id") ?? null;
  const isOver = !(more instanceof Typed) || more.text === "0";
  return {
    documents: documentsAt(found, id === null ? "firstBatch" : "nextBatch"),
    charge,
    took,
    rest: isOver ? null : { ...cursor, id: more },
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

/** Nobody reads on. */
export async function close(client: Client, { of, id }: Cursor): Promise<void> {
  if (id !== null) await run(client, of.database, doc(["killCursors", of.container], ["cursors", [id]]));
}

export async function insert(client: Client, of: Place, documents: Document[]): Promise<void> {
  await run(client, of.database, doc(["insert", of.container], ["documents", documents]));
}

/** Replaces a document, unless somebody else has changed it, or it has ended, since it was read. */
export async function replace(client: Client, of: Place, before: Document, after: Document): Promise<void> {
  const isSame = doc(["$expr", doc(["$eq", ["$$ROOT", doc(["$literal", before])]])]);
  const query = new Map([...identityOf(before), ...isSame]);
  const update = doc(["q", query], ["u", after], ["multi", false]);
  const { body } = await run(client, of.database, doc(["update", of.container], ["updates", [update]]));
  if (numberAt(body, "n") === 0) throw new Error("Somebody else has changed the document since it was read, or it is gone. Reload it.");
}

export async function remove(client: Client, of: Place, document: Document): Promise<void> {
  const statement = doc(["q", identityOf(document)], ["limit", int(1)]);
  await run(client, of.database, doc(["delete", of.container], ["deletes", [statement]]));
}

/** The document as it is now; `null` if it is gone. */
export async function reread(client: Client, of: Place, document: Document): Promise<Document | null> {
  const command = doc(["find", of.container], ["filter", identityOf(document)], ["limit", int(1)]);
  const { documents } = await next(client, { of, id: null, command });
  return documents[0] ?? null;
}

export async function count(client: Client, of: Place, query: Document): Promise<number> {
  const { body } = await run(client, of.database, doc(["count", of.container], ["query", query]));
  return numberAt(body, "n") ?? 0;
}

/** What finds one document: its `_id`, also one that an operator could be taken for. */
export function identityOf(document: Document): Document {
  return doc(["_id", doc(["$eq", document.get("_id") ?? null])]);
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

export async function createIndex(client: Client, of: Place, key: Document, options: Document): Promise<void> {
  const name = [...key].map(([field, order]) => `${field}_${order instanceof Typed ? order.text : String(order)}`).join("_");
  const index = new Map<string, Value>([["key", key], ["name", name], ...options]);
  await run(client, of.database, doc(["createIndexes", of.container], ["indexes", [index]]));
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
  await run(client, of.database, command);
  if (ttlField !== "") await createIndex(client, of, doc([ttlField, int(1)]), doc(["expireAfterSeconds", int(ttlSeconds)]));
}

export async function dropCollection(client: Client, of: Place): Promise<void> {
  await run(client, of.database, doc(["drop", of.container]));
}

/** When each document ends, in milliseconds; `null`: never, or that is not known. In their order. */
export async function endsOf(client: Client, of: Place, documents: readonly Document[], shardKey: string | null): Promise<(number | null)[]> {
  const ends: (number | null)[] = [];
  for (let from = 0; from < documents.length; from += 100) {
    const items = documents.slice(from, from + 100).map((document) => ({ id: idText(document), pk: keyValue(document, shardKey) }));
    ends.push(...(await client.admin<{ endsMs: (number | null)[] }>("POST", `${pathOf(of)}/ttl/ends`, { body: { items } })).body.endsMs);
  }
  return ends;
}

/** The `_id` as the admin API takes it. */
export const idText = (document: Document): string => toExtended(document.get("_id") ?? null);

/** The value of the shard key as the admin API takes it. */
export function keyValue(document: Document, shardKey: string | null): unknown[] {
  if (shardKey === null) return [];
  let value: Value | undefined = document;
  for (const name of shardKey.split(".")) value = value instanceof Map ? value.get(name) : undefined;
  if (value === undefined) return [{}];
  if (value instanceof Typed) return [["int", "long", "double"].includes(value.type) ? Number(value.text) : value.text];
  return [typeof value === "object" && value !== null ? {} : value];
}
