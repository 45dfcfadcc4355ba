/** Queries, updates, pipelines and expressions from the tables that the tours of all languages share. */
import { equal, refused } from "../checks.mjs";
import { data } from "./world.mjs";

export function declareTables(tour) {
  const [queries, updates, pipelines, expressions] = ["queries", "updates", "pipelines", "expressions"].map(data);
  for (const row of queries.cases) tour.check(`find: ${row.name}`, (world) => find(world, queries.documents, row));
  for (const row of updates.cases) tour.check(`update: ${row.name}`, (world) => update(world, row));
  for (const row of updates.refusals) tour.check(`update refused: ${row.name}`, (world) => updateRefused(world, row));
  for (const row of pipelines.cases) tour.check(`aggregate: ${row.name}`, (world) => aggregate(world, pipelines, row));
  for (const row of pipelines.refusals) {
    tour.check(`aggregate refused: ${row.name}`, (world) =>
      refused(value(row.code), () => world.database.collection("orders").aggregate(row.pipeline).toArray()));
  }
  const seen = new Map();
  for (const [name, expression, expected] of expressions.cases) {
    const times = (seen.get(name) ?? 0) + 1;
    seen.set(name, times);
    const label = times > 1 ? `expression: ${name}, case ${times}` : `expression: ${name}`;
    tour.check(label, (world) => evaluate(world, expressions.document, expression, expected));
  }
}

/** The number in an object of an exact type. */
function value(number) {
  return Number(number);
}

/** Collections that are only read are written once. */
const written = new Map();

async function filled(world, name, documents) {
  if (!written.has(name)) written.set(name, await world.collection(name, documents));
  return written.get(name);
}

async function find(world, documents, row) {
  const collection = await filled(world, "queries", documents);
  const options = { sort: row.sort ?? { _id: 1 }, projection: row.projection, collation: row.collation };
  if (row.skip) options.skip = value(row.skip);
  if (row.limit) options.limit = value(row.limit);
  const found = await collection.find(row.filter, options).toArray();
  if (row.ids) equal(found.map((one) => one._id), row.ids, "ids");
  else equal(found, row.documents, "documents");
}

async function update(world, row) {
  const collection = await world.collection("updates", row.document ? [row.document] : []);
  const options = { upsert: row.upsert ?? false, arrayFilters: row.arrayFilters };
  await collection.updateOne(row.filter ?? { _id: 1 }, row.update, options);
  equal(await collection.find().toArray(), [row.after]);
}

async function updateRefused(world, row) {
  const collection = await world.collection("updates", [row.document]);
  await refused(value(row.code), () => collection.updateOne({ _id: 1 }, row.update, { arrayFilters: row.arrayFilters }));
  equal(await collection.find().toArray(), [row.document]);
}

async function aggregate(world, table, row) {
  await filled(world, "others", table.others);
  let source = await filled(world, "orders", table.documents);
  if (row.written) await world.collection("written", row.before ?? []);
  if (row.database) source = row.database === "admin" ? world.client.db("admin") : world.database;
  equal(await source.aggregate(row.pipeline).toArray(), row.documents);
  if (row.written) equal(await world.database.collection("written").find({}, { sort: { _id: 1 } }).toArray(), row.written);
}

async function evaluate(world, document, expression, expected) {
  const collection = await filled(world, "expressions", [document]);
  const found = await collection.aggregate([{ $project: { _id: 0, v: expression } }]).toArray();
  equal(found, [{ v: expected }]);
}
