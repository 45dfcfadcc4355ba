// Databases, containers and their items.

import { type Answer, type Client, ServerError, segment } from "./client";
import { isKept } from "./json";
import { type Throughput, throughputHeaders } from "./throughput";

export interface Database {
  id: string;
}

export interface PartitionKeyDefinition {
  paths: string[];
  kind?: string;
  version?: number;
}

export interface Container {
  id: string;
  partitionKey: PartitionKeyDefinition;
  defaultTtl?: number;
  _etag: string;
  [member: string]: unknown;
}

/** An item as the server sends it. */
export interface Item {
  id: string;
  _ts: number;
  _etag: string;
  ttl?: unknown;
  [member: string]: unknown;
}

/** Names a container. */
export interface Place {
  database: string;
  container: string;
}

export const keyOf = (place: Place): string => `${place.database}/${place.container}`;

/** The path of a container. */
export const pathOf = (place: Place): string => `dbs/${segment(place.database)}/colls/${segment(place.container)}`;

export async function databases(client: Client): Promise<Database[]> {
  return all<Database>(client, "dbs", "Databases");
}

export async function containers(client: Client, database: string): Promise<Container[]> {
  return all<Container>(client, `dbs/${segment(database)}/colls`, "DocumentCollections");
}

/** All pages of a list. */
export async function all<T>(client: Client, path: string, member: string): Promise<T[]> {
  const found: T[] = [];
  let continuation: string | null = null;
  do {
    const headers: Record<string, string> = continuation === null ? {} : { "x-ms-continuation": continuation };
    const page: Answer<Record<string, T[]>> = await client.cosmos("GET", path, { headers });
    found.push(...(page.body[member] ?? []));
    continuation = page.headers.get("x-ms-continuation");
  } while (continuation !== null && continuation !== "");
  return found;
}

/** Creates a database unless it is there. */
export async function ensureDatabase(client: Client, id: string): Promise<void> {
  try {
    await client.cosmos("POST", "dbs", { body: { id } });
  } catch (error) {
    if (!(error instanceof ServerError && error.status === 409)) throw error;
  }
}

export async function deleteDatabase(client: Client, id: string): Promise<void> {
  await client.cosmos("DELETE", `dbs/${segment(id)}`);
}

export async function createContainer(
  client: Client,
  database: string,
  definition: unknown,
  throughput: Throughput | null,
): Promise<void> {
  await client.cosmos("POST", `dbs/${segment(database)}/colls`, { body: definition, headers: throughputHeaders(throughput) });
}

/** Replaces the definition, unless somebody else has changed it since `etag`. */
export async function replaceContainer(client: Client, place: Place, definition: unknown, etag: string): Promise<Container> {
  const headers = { "if-match": etag };
  return (await client.cosmos<Container>("PUT", pathOf(place), { body: definition, headers })).body;
}

export async function readContainer(client: Client, place: Place): Promise<Container> {
  return (await client.cosmos<Container>("GET", pathOf(place))).body;
}

export async function deleteContainer(client: Client, place: Place): Promise<void> {
  await client.cosmos("DELETE", pathOf(place));
}

export interface Page {
  rows: unknown[];
  continuation: string | null;
}

export interface MeasuredPage extends Page {
  metrics: QueryMetrics;
}

/** Of a page. */
export interface QueryMetrics {
  retrievedItems: number;
  retrievedBytes: number;
  outputRows: number;
  compileMs: number;
  runMs: number;
  /** The paths that the query compares: those with an index, and those without. */
  indexes: { UtilizedIndexes: IndexUse; PotentialIndexes: IndexUse } | null;
}

export interface IndexUse {
  SingleIndexes: { IndexSpec: string }[];
  CompositeIndexes: { IndexSpecs: string[] }[];
}

/** A page of a query over all ranges of a container. */
export async function query(
  client: Client,
  place: Place,
  text: string,
  continuation: string | null,
): Promise<Answer<Page>> {
  const body = { query: text, ...(continuation === null ? {} : { continuation }) };
  return client.admin<Page>("POST", `${pathOf(place)}/query`, { body });
}

/** The same, with what the page has cost in work. */
export async function measuredQuery(
  client: Client,
  place: Place,
  text: string,
  continuation: string | null,
  signal: AbortSignal,
): Promise<Answer<MeasuredPage>> {
  const body = { query: text, metrics: true, ...(continuation === null ? {} : { continuation }) };
  return client.admin<MeasuredPage>("POST", `${pathOf(place)}/query`, { body, signal });
}

/** How the server would carry out a query. */
export async function explain(client: Client, place: Place, text: string, signal: AbortSignal): Promise<unknown> {
  const body = { query: text, explain: true };
  return (await client.admin<{ plan: unknown }>("POST", `${pathOf(place)}/query`, { body, signal })).body.plan;
}

/** The values of an item at the paths of its partition key, as the server takes them: what is not there, an object or an array is `{}`. */
export function partitionKeyOf(item: unknown, definition: PartitionKeyDefinition): unknown[] {
  return definition.paths.map((path) => {
    let value: unknown = item;
    for (const name of namesOf(path)) {
      if (typeof value !== "object" || value === null || Array.isArray(value) || !Object.hasOwn(value, name)) return {};
      value = (value as Record<string, unknown>)[name];
    }
    return typeof value === "object" && value !== null && !isKept(value) ? {} : value;
  });
}

/** The names in a path such as `/a/"b/c"`. */
export function namesOf(path: string): string[] {
  const names = path.matchAll(/\/(?:(["'])((?:\\.|(?!\1).)*)\1|([^/]+))/g);
  return [...names].map(([, , quoted, plain]) => quoted?.replace(/\\(.)/g, "$1") ?? plain ?? "");
}

/** A header may not have characters outside ASCII. */
const headerText = (value: unknown): string =>
  JSON.stringify(value).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

const withKey = (key: unknown[]): Record<string, string> => ({ "x-ms-documentdb-partitionkey": headerText(key) });

export async function createItem(client: Client, place: Place, key: unknown[], text: string): Promise<Answer<Item>> {
  return client.cosmos<Item>("POST", `${pathOf(place)}/docs`, { body: text, headers: withKey(key) });
}

/** Creates an item, or replaces the one with its id and partition key. */
export async function upsertItem(client: Client, place: Place, key: unknown[], text: string): Promise<Answer<Item>> {
  const headers = { ...withKey(key), "x-ms-documentdb-is-upsert": "true" };
  return client.cosmos<Item>("POST", `${pathOf(place)}/docs`, { body: text, headers });
}

export async function replaceItem(
  client: Client,
  place: Place,
  key: unknown[],
  id: string,
  text: string,
  etag: string,
): Promise<Answer<Item>> {
  return client.cosmos<Item>("PUT", `${pathOf(place)}/docs/${segment(id)}`, {
    body: text,
    headers: { ...withKey(key), "if-match": etag },
  });
}

export async function readItem(client: Client, place: Place, key: unknown[], id: string): Promise<Answer<Item>> {
  return client.cosmos<Item>("GET", `${pathOf(place)}/docs/${segment(id)}`, { headers: withKey(key) });
}

export async function deleteItem(client: Client, place: Place, key: unknown[], id: string): Promise<void> {
  await client.cosmos("DELETE", `${pathOf(place)}/docs/${segment(id)}`, { headers: withKey(key) });
}

/** Of `GET …/ttl`. */
export interface TtlReport {
  defaultTtl: number | null;
  state: string;
  backlogItems: number;
  oldestPendingSeconds: number;
  purgedTotal: number;
  purgeRate: number;
  ruSpentTotal: number;
  credit: number | null;
  nextExpirySeconds: number | null;
  forecast: { fromSeconds: number; toSeconds: number | null; items: number }[];
}

export async function ttlReport(client: Client, place: Place): Promise<TtlReport> {
  return (await client.admin<TtlReport>("GET", `${pathOf(place)}/ttl`)).body;
}

/** Of `GET …/ttl/preview`. */
export interface TtlPreview {
  expireNow: number;
  expireWithinHour: number;
  expireWithinDay: number;
  neverExpire: number;
}

/** What would end if this default was set now. `null`: off. */
export async function ttlPreview(client: Client, place: Place, defaultTtl: number | null): Promise<TtlPreview> {
  const wanted = defaultTtl === null ? "off" : String(defaultTtl);
  return (await client.admin<TtlPreview>("GET", `${pathOf(place)}/ttl/preview?defaultTtl=${wanted}`)).body;
}

/** Of `GET …/ttl/why`. */
export interface TtlWhy {
  state: "live" | "expired" | "absent";
  _ts: number | null;
  ttl: unknown;
  defaultTtl: number | null;
  expiresAtSeconds: number | null;
  rule: string;
}

export async function ttlWhy(client: Client, place: Place, id: string, key: unknown[]): Promise<TtlWhy> {
  const asked = `id=${segment(id)}&pk=${segment(JSON.stringify(key))}`;
  return (await client.admin<TtlWhy>("GET", `${pathOf(place)}/ttl/why?${asked}`)).body;
}

/** Of `GET /_bolide/clock`. */
export interface ServerClock {
  mode: "system" | "virtual";
  nowMs: number;
}

export async function readClock(client: Client): Promise<ServerClock> {
  return (await client.admin<ServerClock>("GET", "clock")).body;
}

export async function moveClock(client: Client, to: { setMs: number } | { advanceMs: number }): Promise<ServerClock> {
  return (await client.admin<ServerClock>("PUT", "clock", { body: to })).body;
}
