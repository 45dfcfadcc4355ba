/**
 * The tour of Bolide with @azure/cosmos: `node tour.mjs --endpoint URL --key KEY`.
 *
 *   resources   account, databases, containers, throughput
 *   items       writes, reads, conditions, patches, ids, sessions, change feed
 *   queries     the same queries on one range and on several, in pages of several sizes
 *   kinds       queries of every kind, on one range and on several, in pages of several sizes
 *   ttl         items expire at their exact second, with the clock moved by hand
 */
import { parseArgs } from "node:util";

import { Tour } from "./checks.mjs";
import { declareItems } from "./tour/items.mjs";
import { declareKinds } from "./tour/kinds.mjs";
import { declareQueries } from "./tour/queries.mjs";
import { declareResources } from "./tour/resources.mjs";
import { declareScripts } from "./tour/scripts.mjs";
import { declareTtl } from "./tour/ttl.mjs";
import { World } from "./tour/world.mjs";

const { values } = parseArgs({ options: { endpoint: { type: "string" }, key: { type: "string" } } });
if (!values.endpoint || !values.key) throw new Error("both --endpoint and --key are needed");

const tour = new Tour();
for (const declare of [declareResources, declareItems, declareQueries, declareKinds, declareScripts, declareTtl]) declare(tour);

const world = await World.open(values.endpoint, values.key);
try {
  process.exitCode = (await tour.run(world)) ? 1 : 0;
} finally {
  await world.close();
}
