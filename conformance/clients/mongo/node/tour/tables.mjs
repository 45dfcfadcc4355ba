/** Queries, updates, pipelines and expressions from the tables that the tours of all languages share. */
import { equal, holds, refused } from "../checks.mjs";
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

/** The commands of the server, each on a database of its own. */
export function declareCommands(tour) {
  const table = data("commands");
  for (const row of table.cases) {
    const kind = row.code ? "command refused" : "command";
    tour.check(`${kind}: ${Object.keys(row.command)[0]}`, (world) => run(world, table, row));
  }
}

async function run(world, table, row) {
  const database = world.client.db(`${world.database.databaseName}-commands`);
  await database.dropDatabase();
  await database.collection("things").insertMany(table.documents);
  let last = {};
  for (const command of row.before ?? []) last = await database.command(filledIn(command, database.databaseName, last));
  const target = row.database === "admin" ? world.client.db("admin") : database;
  const command = filledIn(row.command, database.databaseName, last);
  if (row.code) return refused(value(row.code), () => target.command(command));
  let reply;
  try {
    reply = await target.command(command);
  } finally {
    for (const after of row.after ?? []) await database.command(after);
  }
  for (const [path, expected] of Object.entries(row.reply ?? {})) equal(at(reply, path), filledIn(expected, database.databaseName, {}), path);
  for (const path of row.has ?? []) holds(at(reply, path) !== undefined, `there is no ${path}`);
}

/** Puts the database's name and the cursor of the last command in their places. */
function filledIn(part, database, last) {
  if (part === "{cursor}") return last.cursor.id;
  if (typeof part === "string") return part.replaceAll("{db}", database);
  if (Array.isArray(part)) return part.map((inner) => filledIn(inner, database, last));
  if (part === null || Object.getPrototypeOf(part) !== Object.prototype) return part;
  return Object.fromEntries(Object.entries(part).map(([name, inner]) => [name, filledIn(inner, database, last)]));
}

/** Returns what is at a dotted path. */
function at(part, path) {
  return path.split(".").reduce((inner, name) => inner?.[name], part);
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
