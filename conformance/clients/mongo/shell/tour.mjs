/**
 * The tour of Bolide with mongosh: `node tour.mjs --uri URI --endpoint URL --key KEY --certificate FILE`.
 *
 * One shell runs the whole time. Checks type lines into it and compare what it prints; some lines are those of the documentation of
 * time to live, letter by letter.
 */
import { spawn } from "node:child_process";
import { parseArgs } from "node:util";

import { Clock } from "../javascript/clock.mjs";
import { Tour } from "../javascript/tour.mjs";

const ANSWER_MS = 30_000;

/** What the shell prints before each line, such as `globaldb [primary] test> `. */
const PROMPT = /\S+ \[[^\]]+\] \S+> /g;

/** A running shell. */
class Shell {
  #process;
  #printed = "";
  #lines = 0;

  constructor(uri) {
    const program = new URL("node_modules/mongosh/bin/mongosh.js", import.meta.url).pathname;
    this.#process = spawn(process.execPath, [program, "--norc", "--quiet", uri], {
      env: { ...process.env, TERM: "dumb", NO_COLOR: "1", MONGOSH_FORCE_TERMINAL: "" },
    });
    this.#process.stdout.on("data", (text) => (this.#printed += text));
    this.#process.stderr.on("data", (text) => (this.#printed += text));
  }

  /** Types a line and returns what the shell prints, without prompts. */
  async type(line) {
    this.#lines += 1;
    const [start, end] = [`start of answer ${this.#lines}`, `end of answer ${this.#lines}`];
    // Of what is typed nothing is echoed, because the shell's input is no terminal.
    this.#process.stdin.write(`print("${start}")\n${line}\nprint("${end}")\n`);
    const deadline = Date.now() + ANSWER_MS;
    while (!this.#printed.includes(end)) {
      if (Date.now() > deadline || this.#process.exitCode !== null) throw new Error(`no answer to ${line}: ${this.#printed.slice(-500)}`);
      await new Promise((done) => setTimeout(done, 5));
    }
    const answer = this.#printed.slice(this.#printed.indexOf(start) + start.length, this.#printed.indexOf(end));
    this.#printed = this.#printed.slice(this.#printed.indexOf(end) + end.length);
    return answer.replace(PROMPT, "").trim();
  }

  /** Types an expression and returns its value, which must be JSON. */
  async value(expression) {
    const answer = await this.type(`print(EJSON.stringify(${expression}))`);
    try {
      return JSON.parse(answer.split("\n").at(-1));
    } catch {
      throw new Error(`${expression}: ${answer}`);
    }
  }

  /** Ends the shell. */
  async close() {
    const ended = new Promise((done) => this.#process.once("exit", done));
    this.#process.stdin.end("exit\n");
    return ended;
  }
}

function equal(actual, expected, what = "value") {
  const [left, right] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (left !== right) throw new Error(`${what}: expected ${right}, got ${left}`);
}

function contains(text, part) {
  if (!text.includes(part)) throw new Error(`expected ${JSON.stringify(part)} in ${JSON.stringify(text)}`);
}

const tour = new Tour();

tour.check("the shell connects to the primary of the replica set", async ({ shell }) => {
  const hello = await shell.value("db.hello()");
  equal([hello.setName, hello.isWritablePrimary], ["globaldb", true]);
  equal(await shell.value("db.version()"), "7.0.0");
});

tour.check("the documentation's examples of an index and of a time to live answer as printed", async ({ shell, clock }) => {
  await shell.type("use seed");
  await shell.type("db.dropDatabase()");
  const start = await clock.nextSecond();
  contains(await shell.type('db.coll.createIndex({"_ts":1}, {expireAfterSeconds: 10})'), "_ts_1");
  const valid = [
    'db.coll.insert({id:1, location: "Paris", ttl: 20.0})',
    'db.coll.insert({id:1, location: "Paris", ttl: NumberInt(20)})',
    'db.coll.insert({id:1, location: "Paris", ttl: NumberLong(20)})',
  ];
  const invalid = [
    'db.coll.insert({id:1, location: "Paris", ttl: 20.5}) //TTL value contains non-zero decimal part.',
    'db.coll.insert({id:1, location: "Paris", ttl: NumberLong(2147483649)}) //TTL value is greater than Int32.MaxValue (2,147,483,648).',
  ];
  for (const line of [...valid, ...invalid]) contains(await shell.type(line), "acknowledged: true");
  const count = () => shell.value('db.coll.countDocuments({location: "Paris"})');
  equal(await count(), 5);
  await clock.setMs(start + 9_999);
  equal(await count(), 5, "before 10 seconds");
  await clock.setMs(start + 10_000);
  equal(await count(), 3, "after 10 seconds");
  equal((await shell.value("db.coll.find().toArray()")).map((one) => one.ttl), [20, 20, 20]);
  await clock.setMs(start + 19_999);
  equal(await count(), 3, "before 20 seconds");
  await clock.setMs(start + 20_000);
  equal(await count(), 0, "after 20 seconds");
});

tour.check("the command behind the documentation's index replies as printed", async ({ shell }) => {
  await shell.type("use seed");
  await shell.type("db.printed.drop()");
  const reply = await shell.value('db.runCommand({createIndexes: "printed", indexes: [{key: {_ts: 1}, name: "_ts_1", expireAfterSeconds: 10}]})');
  const names = ["_t", "ok", "createdCollectionAutomatically", "numIndexesBefore", "numIndexesAfter"];
  equal(names.map((name) => reply[name]), ["CreateIndexesResponse", 1, true, 1, 2]);
});

tour.check("documents are written read changed and deleted", async ({ shell }) => {
  await shell.type("use shop");
  await shell.type("db.dropDatabase()");
  contains(await shell.type("db.items.insertMany([{_id: 1, n: 1}, {_id: 2, n: 2}])"), "acknowledged: true");
  contains(await shell.type("db.items.updateOne({_id: 1}, {$inc: {n: 5}})"), "modifiedCount: 1");
  equal(await shell.value("db.items.findOne({_id: 1})"), { _id: 1, n: 6 });
  contains(await shell.type("db.items.find({n: {$gt: 1}}).sort({n: -1})"), "{ _id: 1, n: 6 }");
  contains(await shell.type("db.items.deleteOne({_id: 2})"), "deletedCount: 1");
  contains(await shell.type("db.items.insertOne({_id: 1})"), "E11000 duplicate key error");
  equal(await shell.value("db.items.aggregate([{$group: {_id: null, n: {$sum: '$n'}}}]).toArray()"), [{ _id: null, n: 6 }]);
});

tour.check("databases and collections are shown", async ({ shell }) => {
  contains(await shell.type("show dbs"), "shop");
  await shell.type("use shop");
  contains(await shell.type("show collections"), "items");
  equal(await shell.value("db.getCollectionNames()"), ["items"]);
});

tour.check("indexes are shown and hidden", async ({ shell }) => {
  await shell.type("use shop");
  await shell.type("db.items.createIndex({n: 1}, {unique: true})");
  await shell.type("db.items.hideIndex('n_1')");
  equal(await shell.value("db.items.getIndexes()"), [
    { v: 2, key: { _id: 1 }, name: "_id_" },
    { v: 2, key: { n: 1 }, name: "n_1", unique: true, hidden: true },
  ]);
  await shell.type("db.items.dropIndex('n_1')");
  equal(await shell.value("db.items.getIndexes().length"), 1);
});

tour.check("the shell's helpers for statistics and plans work", async ({ shell }) => {
  await shell.type("use shop");
  equal(await shell.value("db.items.stats().count"), 1);
  equal(await shell.value("db.stats().collections"), 1);
  equal(await shell.value("db.items.countDocuments()"), 1);
  equal(await shell.value("db.items.estimatedDocumentCount()"), 1);
  equal(await shell.value("db.items.find({n: 1}).explain().queryPlanner.namespace"), "shop.items");
  equal(await shell.value("db.items.validate().valid"), true);
  equal(await shell.value("rs.status().set"), "globaldb");
  equal(await shell.value("db.serverStatus().process"), "mongod");
  equal(await shell.value("Array.isArray(db.currentOp().inprog)"), true);
  equal(await shell.value("db.adminCommand({listCommands: 1}).ok"), 1);
  equal(await shell.value("db.items.renameCollection('things').ok"), 1);
});

tour.check("a transaction of the shell is a whole", async ({ shell }) => {
  await shell.type("use shop");
  await shell.type("db.accounts.insertOne({_id: 1, n: 0})");
  await shell.type("session = db.getMongo().startSession()");
  await shell.type("session.startTransaction()");
  await shell.type("session.getDatabase('shop').accounts.updateOne({_id: 1}, {$inc: {n: 1}})");
  equal(await shell.value("db.accounts.findOne().n"), 0, "outside");
  await shell.type("session.commitTransaction()");
  equal(await shell.value("db.accounts.findOne().n"), 1);
});

tour.check("unknown commands are errors with their code", async ({ shell }) => {
  contains(await shell.type("db.runCommand({frobnicate: 1})"), "no such command");
  contains(await shell.type("db.items.find({$frob: 1})"), "unknown top level operator: $frob");
});

const names = ["uri", "endpoint", "key", "certificate"];
const { values } = parseArgs({ options: Object.fromEntries(names.map((name) => [name, { type: "string" }])) });
for (const name of names) if (!values[name]) throw new Error(`--${name} is needed`);

const shell = new Shell(values.uri);
process.exitCode = (await tour.run({ shell, clock: new Clock(values.endpoint, values.key) })) ? 1 : 0;
await shell.close();
