/** The shared state of the checks: a client, a database, the clock, connection strings of other kinds. */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";

import { BSON, MongoClient } from "mongodb";

import { Clock } from "../../javascript/clock.mjs";

/** Reads a file of the data that the tours of all languages share, with the exact types of numbers. */
export function data(name) {
  const path = new URL(`../../tour_${name}.json`, import.meta.url);
  return BSON.EJSON.parse(readFileSync(path, "utf8"), { relaxed: false });
}

export class World {
  #clients = [];

  constructor(options) {
    this.uri = new URL(options.uri);
    this.certificate = options.certificate;
    this.clock = new Clock(options.endpoint, options.key);
    this.client = this.#client(options.uri);
    this.database = this.client.db(`tour-${randomUUID().slice(0, 8)}`);
  }

  #client(uri, options = {}) {
    const client = new MongoClient(uri, { serverSelectionTimeoutMS: 8000, ...options });
    this.#clients.push(client);
    return client;
  }

  /** Returns a client with other options than the tour's, and perhaps other credentials. */
  connect(options, { user = this.uri.username, password = this.uri.password, credentials = true } = {}) {
    const login = credentials ? `${user}:${password}@` : "";
    return this.#client(`mongodb://${login}${this.uri.host}/?${new URLSearchParams(options)}`);
  }

  /** Returns a collection of the tour's database that holds exactly these documents. */
  async collection(name, documents = []) {
    const collection = this.database.collection(name);
    await collection.drop();
    if (documents.length) await collection.insertMany(documents);
    return collection;
  }

  async close() {
    for (const client of this.#clients) await client.close();
  }
}
