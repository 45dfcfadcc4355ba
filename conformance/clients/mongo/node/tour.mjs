/**
 * The tour of Bolide with the MongoDB driver for Node.js: `node tour.mjs --uri URI --endpoint URL --key KEY --certificate FILE`.
 *
 *   connections   topologies, encryption, compression, authentication
 *   documents     writes of one and of many, findAndModify, cursors
 *   tables        queries, updates, pipelines, expressions and commands that the tours of all languages share
 *   expiry        indexes, and both kinds of time to live, with the clock moved by hand
 *   transactions  retryable writes, transactions, change streams
 *   models        schemas of Mongoose
 */
import { parseArgs } from "node:util";

import { Tour } from "../javascript/tour.mjs";
import { declareConnections } from "./tour/connections.mjs";
import { declareDocuments } from "./tour/documents.mjs";
import { declareExpiry } from "./tour/expiry.mjs";
import { declareModels } from "./tour/models.mjs";
import { declareCommands, declareTables } from "./tour/tables.mjs";
import { declareTransactions } from "./tour/transactions.mjs";
import { World } from "./tour/world.mjs";

const names = ["uri", "endpoint", "key", "certificate"];
const { values } = parseArgs({ options: Object.fromEntries(names.map((name) => [name, { type: "string" }])) });
for (const name of names) if (!values[name]) throw new Error(`--${name} is needed`);

const tour = new Tour();
for (const declare of [declareConnections, declareDocuments, declareTables, declareCommands, declareExpiry, declareTransactions, declareModels]) declare(tour);

const world = new World(values);
try {
  process.exitCode = (await tour.run(world)) ? 1 : 0;
} finally {
  await world.close();
}
