/** The shared state of the checks: a client, a database, the clock. */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";

import { CosmosClient } from "@azure/cosmos";

import { Clock } from "../clock.mjs";

/** What the tours of all languages store and expect. */
export const DATA = JSON.parse(readFileSync(new URL("../../tour_data.json", import.meta.url), "utf8"));

/** Queries of every kind, which the tours of several languages share. */
export const KINDS = JSON.parse(readFileSync(new URL("../../tour_queries.json", import.meta.url), "utf8"));

/** Enough for five partition key ranges; the default of 400 gives one. */
export const FIVE_RANGES = 30000;

export class World {
  constructor(endpoint, key, client, database, clock) {
    Object.assign(this, { endpoint, key, client, database, clock });
  }

  /** Connects and creates the tour's database. */
  static async open(endpoint, key) {
    const client = new CosmosClient({ endpoint, key });
    const { database } = await client.databases.create({ id: unique("tour") });
    return new World(endpoint, key, client, database, new Clock(endpoint, key));
  }

  async close() {
    await this.database.delete();
    this.client.dispose();
  }

  /** Creates a container of the tour's database; `paths` is one path or a list for a hierarchical key. */
  async container(label, settings = {}, paths = "/pk") {
    const partitionKey = Array.isArray(paths)
      ? { paths, kind: "MultiHash", version: 2 }
      : { paths: [paths], kind: "Hash", version: 2 };
    const { container } = await this.database.containers.create({ id: unique(label), partitionKey, ...settings });
    return container;
  }
}

/** Returns an id that no other check and no other run uses. */
export function unique(label) {
  return `${label}-${randomUUID().slice(0, 12)}`;
}

/** Creates the items in this order and returns them as the server stored them. */
export async function add(container, ...bodies) {
  const stored = [];
  for (const body of bodies) stored.push((await container.items.create(body)).resource);
  return stored;
}

/** Returns every row of a query on a container. */
export async function query(container, text, options = {}) {
  return (await container.items.query(text, options).fetchAll()).resources;
}
