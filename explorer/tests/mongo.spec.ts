// Collections of MongoDB.

import { connect } from "node:net";
import { parse, parseDocuments, parseReply } from "../src/mongo/parse";
import { fromExtended, isFaithful, print, printShort, toExtended } from "../src/mongo/value";
import { expect, type Page, Server, test, type } from "./server";

/** Makes a collection, as the page does. */
async function makeCollection(page: Page, name: string, more: { key?: string; ttlField?: string; ttl?: string } = {}): Promise<void> {
  await page.getByRole("button", { name: "New container" }).first().click();
  await page.getByRole("button", { name: "MongoDB collection" }).click();
  const form = page.getByRole("form", { name: "New collection" });
  await form.getByLabel("Database").fill("shop");
  await form.getByLabel("Collection").fill(name);
  await form.getByLabel("Shard key").fill(more.key ?? "");
  await form.getByLabel("TTL index on").fill(more.ttlField ?? "");
  await form.getByLabel("Seconds after it").fill(more.ttl ?? "");
  await form.getByRole("button", { name: "Create" }).click();
  await expect(page.getByRole("heading", { name })).toBeVisible();
}

async function makeDocument(page: Page, text: string): Promise<void> {
  await page.getByRole("button", { name: "New document" }).click();
  await type(page, "Document", text);
  const saved = page.waitForResponse((response) => response.url().endsWith("/mongo") && (response.request().postData() ?? "").includes('"insert"'));
  await page.getByRole("button", { name: "Save" }).click();
  expect((await saved).status()).toBe(200);
  await expect(page.getByRole("region", { name: "Document" })).toBeVisible();
}

test("documents are inserted, found, changed and deleted, with their types", async ({ page, server }, info) => {
  await page.goto(server.url);
  await makeCollection(page, "carts");
  await expect(page.getByRole("heading", { name: "No documents" })).toBeVisible();
  await makeDocument(page, "{ _id: 'a', user: 'ada', total: 3, account: NumberLong('9007199254740993'), rate: 0.5, at: ISODate('2029-12-31T00:00:00Z') }");
  await makeDocument(page, "{ _id: ObjectId('0123456789abcdef01234567'), user: 'bob', total: 5.0, 1: 'one', price: NumberDecimal('1.10'), tags: ['x', null, true] }");
  const editor = page.getByRole("textbox", { name: "Document" });
  for (const text of ['ObjectId("0123456789abcdef01234567")', "total: 5.0", 'NumberDecimal("1.10")']) await expect(editor).toContainText(text);
  await page.screenshot({ path: info.outputPath("documents.png") });

  const stored = async (filter: unknown): Promise<unknown[]> => {
    const reply = (await server.admin("POST", "dbs/shop/mongo", { find: "carts", filter })) as { cursor: { firstBatch: unknown[] } };
    return reply.cursor.firstBatch;
  };
  expect(await stored({ _id: "a" })).toEqual([
    {
      _id: "a",
      user: "ada",
      total: { $numberInt: "3" },
      account: { $numberLong: "9007199254740993" },
      rate: { $numberDouble: "0.5" },
      at: { $date: { $numberLong: String(Date.parse("2029-12-31T00:00:00Z")) } },
    },
  ]);

  await page.getByLabel("Filter").fill("{ at: { $lt: ISODate('2030-01-01') } }");
  await page.getByRole("button", { name: "Find" }).click();
  await expect(page.getByRole("option")).toHaveCount(1);
  await page.getByRole("option").click();
  await type(page, "Document", "{ _id: 'a', total: 4 }");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("option")).toContainText("total: 4");
  expect(await stored({ _id: "a" })).toEqual([{ _id: "a", total: { $numberInt: "4" } }]);

  // Somebody else changes it.
  await server.admin("POST", "dbs/shop/mongo", { update: "carts", updates: [{ q: { _id: "a" }, u: { $set: { total: 9 } } }] });
  await type(page, "Document", "{ _id: 'a', total: 5 }");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("alert")).toContainText("Somebody else has changed");
  await page.getByRole("button", { name: "Reload" }).click();
  await expect(editor).toContainText("total: 9");

  page.once("dialog", (dialog) => void dialog.accept());
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await expect(page.getByText("None fits the filter.")).toBeVisible();
  await page.getByLabel("Filter").fill("{ total: ");
  await page.getByRole("button", { name: "Find" }).click();
  await expect(page.getByRole("alert")).toContainText("Filter: Line 1");
  await page.getByLabel("Filter").fill("{ total: { $nonsense: 1 } }");
  await page.getByRole("button", { name: "Find" }).click();
  await expect(page.getByRole("alert")).toContainText("$nonsense");
});

test("projection, sort and limit are part of a find, and batches follow as the list is scrolled", async ({ page, server }) => {
  await page.goto(server.url);
  await makeCollection(page, "carts");
  const documents = Array.from({ length: 300 }, (_, n) => ({ _id: n, total: n % 7 }));
  await server.admin("POST", "dbs/shop/mongo", { insert: "carts", documents });
  await page.getByRole("button", { name: "Find" }).click();
  const list = page.getByRole("listbox", { name: "Documents" });
  const count = async (): Promise<number> => Number(await page.getByRole("option").first().getAttribute("aria-setsize"));
  await expect(list).toBeVisible();
  await expect(async () => {
    await list.evaluate((element) => element.scrollTo(0, element.scrollHeight));
    expect(await count()).toBe(300);
  }).toPass();
  await page.getByRole("button", { name: "More" }).click();
  await page.getByLabel("Projection").fill("{ total: 1, _id: 1 }");
  await page.getByLabel("Sort").fill("{ total: -1, _id: 1 }");
  await page.getByLabel("Limit").fill("2");
  await page.getByRole("button", { name: "Find" }).click();
  await expect(page.getByRole("option")).toHaveCount(2);
  await expect(page.getByRole("option").nth(0)).toContainText("total: 6");
  await expect(page.getByRole("option").nth(1)).toContainText("13");
  // A part of a document is not for editing.
  await page.getByRole("option").first().click();
  await expect(page.getByRole("button", { name: "Save" })).toHaveCount(0);
});

test("pipelines run, with results as text, table and tree, a plan, and pages", async ({ page, server }, info) => {
  await page.goto(server.url);
  await makeCollection(page, "carts");
  const documents = Array.from({ length: 120 }, (_, n) => ({ _id: n, user: n % 2 === 0 ? "ada" : "bob", total: { $numberLong: String(n) } }));
  await server.admin("POST", "dbs/shop/mongo", { insert: "carts", documents });
  await page.getByRole("link", { name: "Aggregate" }).click();
  await type(page, "Pipeline", "[ { $group: { _id: '$user', total: { $sum: '$total' } } }, { $sort: { _id: 1 } } ]");
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("status")).toContainText("2 documents");
  await expect(page.getByRole("textbox", { name: "Results" })).toContainText('total: NumberLong("3540")');
  await page.getByRole("button", { name: "Table" }).click();
  await expect(page.getByRole("cell").first()).toHaveText('"ada"');
  await page.getByRole("button", { name: "Tree" }).click();
  await page.getByRole("button", { name: "0: {2}" }).click();
  await expect(page.getByRole("listitem").filter({ hasText: "total:" }).last()).toContainText("long");
  await page.screenshot({ path: info.outputPath("aggregate.png") });
  await page.getByRole("button", { name: "Plan" }).click();
  await expect(page.getByRole("textbox", { name: "Plan" })).toBeVisible();

  await page.getByRole("button", { name: "New query" }).click();
  await type(page, "Pipeline", "[]");
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("status")).toContainText("50 documents so far");
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("button", { name: "More" }).click();
  await expect(page.getByRole("status")).toContainText("120 documents ·");
  await page.reload();
  await expect(page.getByRole("textbox", { name: "Pipeline" })).toHaveText("[]");
  await type(page, "Pipeline", "[ { $nonsense: {} } ]");
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("alert")).toContainText("$nonsense");
});

test("documents count down by a TTL index, leave the list, and another time shows what it would end", async ({ page, server }, info) => {
  await page.goto(server.url);
  await makeCollection(page, "carts", { ttlField: "expireAt", ttl: "60" });
  await makeDocument(page, "{ _id: 'soon', expireAt: ISODate('2030-01-01T00:00:00Z') }");
  await makeDocument(page, "{ _id: 'later', expireAt: ISODate('2030-01-01T01:00:30Z') }");
  await makeDocument(page, "{ _id: 'stays' }");
  await expect(page.getByRole("option", { name: "soon" })).toContainText("1 min");
  await expect(page.getByRole("option", { name: "later" })).toContainText("1 h 1 min");
  await expect(page.getByRole("option", { name: "stays" })).toContainText(/stays$/);
  await page.getByRole("option", { name: "soon" }).click();
  await page.getByRole("button", { name: "Why?" }).click();
  await expect(page.getByText("an index of the collection ends it")).toBeVisible();
  await page.getByRole("button", { name: "+1 s" }).click();
  await expect(page.getByRole("option", { name: "soon" })).toContainText("59 s");
  await page.getByRole("button", { name: "Next expiry" }).click();
  await expect(page.getByRole("option", { name: "soon" })).toHaveCount(0);
  await expect(page.getByRole("option", { name: "later" })).toBeVisible();

  await page.getByRole("link", { name: "Time to live" }).click();
  const index = page.getByRole("form", { name: "Index expireAt_1" });
  await index.getByRole("spinbutton").fill("0");
  await index.getByRole("button", { name: "Preview" }).click();
  await expect(index.getByRole("status")).toHaveText("0 documents end at once.");
  await page.getByRole("button", { name: "+1 h" }).click();
  await index.getByRole("button", { name: "Preview" }).click();
  await expect(index.getByRole("status")).toContainText('1 document ends at once. Among them: "later".');
  await page.screenshot({ path: info.outputPath("ttl-index.png") });
  // An index on a part of the documents ends no others.
  await server.admin("POST", "dbs/shop/mongo", {
    createIndexes: "carts",
    indexes: [{ key: { expireAt: 1, total: 1 }, name: "other" }, { key: { at: 1 }, name: "part", expireAfterSeconds: 600, partialFilterExpression: { draft: true } }],
  });
  await server.admin("POST", "dbs/shop/mongo", {
    insert: "carts",
    documents: [true, false].map((draft) => ({ _id: `draft ${draft}`, at: { $date: "2030-01-01T01:00:00Z" }, draft })),
  });
  await page.getByRole("link", { name: "Documents" }).click();
  await page.getByRole("link", { name: "Time to live" }).click();
  const part = page.getByRole("form", { name: "Index part" });
  await part.getByRole("spinbutton").fill("1");
  await part.getByRole("button", { name: "Preview" }).click();
  await expect(part.getByRole("status")).toHaveText('1 document ends at once. Among them: "draft true".');
  await server.admin("POST", "dbs/shop/mongo", { delete: "carts", deletes: [{ q: { draft: { $exists: true } }, limit: 0 }] });
  await index.getByRole("spinbutton").fill("0");
  await index.getByRole("button", { name: "Preview" }).click();
  await expect(index.getByRole("status")).toContainText("1 document ends at once.");
  await index.getByRole("button", { name: "Apply" }).click();
  await expect(index.getByText("now 0 s")).toBeVisible();
  const fresh = page.getByRole("form", { name: "New TTL index" });
  await fresh.getByLabel("New TTL index on").fill("_ts");
  await fresh.getByLabel("Seconds after its date").fill("7200");
  await fresh.getByRole("button", { name: "Preview" }).click();
  await expect(fresh.getByRole("status")).toContainText("0 documents end at once.");
  await fresh.getByRole("button", { name: "Create" }).click();
  await expect(page.getByRole("form", { name: "Index _ts_1" })).toBeVisible();
  const ask = page.getByRole("form", { name: "Why is an item there or gone?" });
  await ask.getByLabel("Why is this item there or gone?").fill("later");
  await ask.getByRole("button", { name: "Ask" }).click();
  await expect(ask.getByRole("status")).toContainText("It is gone, and not purged yet");
  await page.getByRole("link", { name: "Documents" }).click();
  await expect(page.getByRole("option")).toHaveCount(1);
  await expect(page.getByRole("option", { name: "stays" })).toContainText(/h|min/);
});

test("indexes, changes, sharded collections and views have their places", async ({ page, server }, info) => {
  await page.goto(server.url);
  await makeCollection(page, "carts", { key: "user" });
  await server.admin("POST", "dbs/shop/mongo", { create: "rich", viewOn: "carts", pipeline: [{ $match: { total: { $gt: 100 } } }] });
  await page.getByRole("link", { name: "Changes" }).click();
  await expect(page.getByRole("heading", { name: "No change yet" })).toBeVisible();
  await page.waitForResponse((response) => (response.request().postData() ?? "").includes("getMore"));
  await server.admin("POST", "dbs/shop/mongo", { insert: "carts", documents: [{ _id: 1, user: "ada", total: 200 }] });
  await server.admin("POST", "dbs/shop/mongo", { delete: "carts", deletes: [{ q: { _id: 1, user: "ada" }, limit: 1 }] });
  await expect(page.getByRole("option")).toHaveCount(2);
  await expect(page.getByRole("option").nth(0)).toContainText("delete");
  await expect(page.getByRole("option").nth(1)).toContainText("insert");
  await page.getByRole("option").nth(1).click();
  await expect(page.getByRole("region", { name: "Change" })).toContainText('operationType: "insert"');
  await page.screenshot({ path: info.outputPath("change-stream.png") });
  // The server has closed the cursor: nothing is missed.
  let refusals = 1;
  await page.route("**/mongo", async (route) => {
    const isNext = (route.request().postData() ?? "").includes('"getMore"') && refusals > 0;
    if (!isNext) return route.continue();
    refusals -= 1;
    await server.admin("POST", "dbs/shop/mongo", { insert: "carts", documents: [{ _id: 3, user: "eve", total: 200 }] });
    await server.admin("POST", "dbs/shop/mongo", { delete: "carts", deletes: [{ q: { _id: 3 }, limit: 1 }] });
    return route.fulfill({ status: 404, json: { code: "CursorNotFound", message: "cursor id 7 not found" } });
  });
  await expect(page.getByRole("option")).toHaveCount(4);
  await page.unroute("**/mongo");

  await page.getByRole("link", { name: "Settings" }).click();
  const fresh = page.getByRole("form", { name: "New index" });
  await fresh.getByLabel("Key").fill("{ user: 1, total: -1 }");
  await fresh.getByLabel("Options of the index").fill("{ unique: true }");
  await fresh.getByRole("button", { name: "Create index" }).click();
  await expect(page.getByRole("cell", { name: "user_1_total_-1", exact: true })).toBeVisible();
  await page.screenshot({ path: info.outputPath("indexes.png") });
  page.once("dialog", (dialog) => void dialog.accept());
  await page.getByRole("button", { name: "Drop user_1_total_-1" }).click();
  await expect(page.getByRole("cell", { name: "user_1_total_-1", exact: true })).toHaveCount(0);

  await page.getByRole("link", { name: "Documents" }).click();
  await makeDocument(page, "{ _id: 2, user: 'bob', total: 200, ttl: 90 }");
  await page.getByRole("link", { name: "SQL" }).click();
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("status")).toContainText("1 row");
  await page.getByRole("button", { name: "List again" }).click();
  await expect(page.getByRole("listitem").filter({ hasText: "rich" }).last()).toContainText("view");
  await page.getByRole("link", { name: "rich" }).click();
  await expect(page.getByRole("option")).toHaveCount(1);
  await page.getByRole("option").click();
  await expect(page.getByRole("button", { name: "Save" })).toHaveCount(0);
  await page.getByRole("link", { name: "Settings" }).click();
  await expect(page.getByRole("region", { name: "Options" })).toContainText('viewOn: "carts"');
  page.once("dialog", (dialog) => void dialog.accept());
  await page.getByRole("button", { name: "Delete view" }).click();
  await expect(page.getByRole("link", { name: "rich" })).toHaveCount(0);
});

test("documents are uploaded and downloaded with their types, and deleted together", async ({ page, server }) => {
  await page.goto(server.url);
  await makeCollection(page, "carts");
  const lines = Array.from({ length: 250 }, (_, n) => `{"_id": {"$numberLong": "${n}"}, "at": {"$date": "2030-01-01T00:00:00Z"}}`);
  await page.getByLabel("Upload").setInputFiles({ name: "carts.jsonl", mimeType: "application/json", buffer: Buffer.from(lines.join("\n")) });
  await expect(page.getByRole("option").first()).toContainText('NumberLong("0")');
  await expect(page.getByText("of 250 stored")).toHaveCount(0);
  const counted = (await server.admin("POST", "dbs/shop/mongo", { count: "carts", query: { at: { $type: "date" } } })) as { n: unknown };
  expect(counted.n).toEqual({ $numberInt: "250" });
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download" }).click();
  const text = await (await (await saved).createReadStream()).toArray().then((parts) => Buffer.concat(parts).toString());
  expect((JSON.parse(text) as unknown[])[0]).toEqual({ _id: { $numberLong: "0" }, at: { $date: { $numberLong: String(Date.parse("2030-01-01T00:00:00Z")) } } });
  // What is there is replaced, and what has no id gets one; large ones go in several requests.
  const large = Array.from({ length: 40 }, (_, n) => `{ _id: NumberLong(${n}), text: "${"x".repeat(100_000)}" }`);
  await page.getByLabel("Upload").setInputFiles({ name: "large.json", mimeType: "application/json", buffer: Buffer.from(`[${[...large, "{ a: 1 }"].join(",")}]`) });
  await expect(async () => {
    const all = (await server.admin("POST", "dbs/shop/mongo", { count: "carts", query: {} })) as { n: unknown };
    const replaced = (await server.admin("POST", "dbs/shop/mongo", { count: "carts", query: { text: { $exists: true } } })) as { n: unknown };
    expect([all.n, replaced.n]).toEqual([{ $numberInt: "251" }, { $numberInt: "40" }]);
  }).toPass();
  await expect(page.getByText("of 41 stored")).toHaveCount(0);
  await expect(page.getByRole("option").first()).toContainText("text");
  await page.getByRole("option").nth(0).click({ modifiers: ["ControlOrMeta"] });
  await page.getByRole("option").nth(1).click({ modifiers: ["ControlOrMeta"] });
  page.once("dialog", (dialog) => void dialog.accept());
  await page.getByRole("button", { name: "Delete 2 documents" }).click();
  await expect(page.getByRole("option").first()).toContainText('NumberLong("2")');
});

test("in a sharded collection an id may be there for each shard key", async ({ page, server }) => {
  await page.goto(server.url);
  await makeCollection(page, "carts", { key: "user" });
  await server.admin("POST", "dbs/shop/mongo", { insert: "carts", documents: ["ada", "bob", "eve"].map((user) => ({ _id: 1, user, total: 1 })) });
  await page.getByRole("button", { name: "Find" }).click();
  await expect(page.getByRole("option")).toHaveCount(3);
  await page.getByRole("option", { name: "bob" }).click();
  await type(page, "Document", "{ _id: 1, user: 'bob', total: 2 }");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("option", { name: "bob" })).toContainText("total: 2");
  await expect(page.getByRole("option")).toHaveCount(3);
  page.once("dialog", (dialog) => void dialog.accept());
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await expect(page.getByRole("option")).toHaveCount(2);
  await page.getByRole("option", { name: "eve" }).click({ modifiers: ["ControlOrMeta"] });
  page.once("dialog", (dialog) => void dialog.accept());
  await page.getByRole("button", { name: "Delete 1 document" }).click();
  await expect(page.getByRole("option")).toHaveCount(1);
  const reply = (await server.admin("POST", "dbs/shop/mongo", { find: "carts" })) as { cursor: { firstBatch: unknown[] } };
  expect(reply.cursor.firstBatch).toEqual([{ _id: { $numberInt: "1" }, user: "ada", total: { $numberInt: "1" } }]);
});

test("what is typed while a new document is saved stays", async ({ page, server }) => {
  await page.goto(server.url);
  await makeCollection(page, "carts");
  let go = (): void => undefined;
  const held = new Promise<void>((resolve) => (go = resolve));
  await page.route("**/mongo", async (route) => {
    if ((route.request().postData() ?? "").includes('"insert"')) await held;
    await route.continue();
  });
  await page.getByRole("button", { name: "New document" }).click();
  await type(page, "Document", "{ _id: 1, total: 1 }");
  await page.getByRole("button", { name: "Save" }).click();
  await type(page, "Document", "{ _id: 1, total: 2 }");
  go();
  await expect(page.getByRole("option")).toContainText("total: 1");
  await expect(page.getByRole("textbox", { name: "Document" })).toHaveText("{ _id: 1, total: 2 }");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("option")).toContainText("total: 2");
});

test("documents that the text cannot show faithfully are shown, and not for editing", async ({ page, server }) => {
  await page.goto(server.url);
  await makeCollection(page, "carts");
  const nested = `${'{"a":'.repeat(110)}1${"}".repeat(110)}`;
  await server.admin("POST", "dbs/shop/mongo", `{"insert": "carts", "documents": [{"_id": "deep", "a": ${nested}}]}`);
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByRole("option", { name: "deep" }).click();
  await expect(page.getByRole("textbox", { name: "Document" })).toBeVisible();
  await expect(page.getByRole("button", { name: "Save" })).toHaveCount(0);
});

/** Sends a command with texts alone, as a driver does without authentication. */
async function sendCommand(port: number, fields: Record<string, string>): Promise<void> {
  const members = Object.entries(fields).map(([name, text]) => {
    const length = Buffer.alloc(4);
    length.writeInt32LE(Buffer.byteLength(text) + 1);
    return Buffer.concat([Buffer.from(`\x02${name}\0`), length, Buffer.from(`${text}\0`)]);
  });
  const document = Buffer.concat([Buffer.alloc(4), ...members, Buffer.from([0])]);
  document.writeInt32LE(document.length);
  const head = Buffer.alloc(21);
  head.writeInt32LE(head.length + document.length);
  head.writeInt32LE(2013, 12);
  const socket = connect(port, "127.0.0.1");
  socket.write(Buffer.concat([head, document]));
  await new Promise((resolve) => socket.once("data", resolve));
  socket.destroy();
}

test("commands of drivers are among the requests, those of the page are not", async ({ page }) => {
  const server = await Server.start({ args: ["--mongo-no-auth"] });
  try {
    await page.goto(server.url);
    await page.getByRole("link", { name: "Requests" }).click();
    await page.getByLabel("Filter").fill("shop.carts");
    await server.admin("POST", "dbs/shop/mongo", { insert: "carts", documents: [{ _id: 1 }] });
    await sendCommand(server.mongo, { find: "carts", $db: "shop" });
    await sendCommand(server.mongo, { find: "carts", nonsense: "x", $db: "shop" });
    await expect(page.getByRole("option")).toHaveCount(2);
    await expect(page.getByRole("option").nth(0)).toContainText("40415");
    await expect(page.getByRole("option").nth(1)).toContainText("ok");
  } finally {
    await server.stop();
  }
});

/** The value again after it was shown and read. */
const again = (json: string): string => toExtended(parse(print(fromExtended(parse(json)))));

test("each type is shown and read again without a change", () => {
  const values = [
    '{"$numberInt":"-2147483648"}',
    '{"$numberLong":"9223372036854775807"}',
    '{"$numberDouble":"5.0"}',
    '{"$numberDouble":"-0.0"}',
    '{"$numberDouble":"0.1"}',
    '{"$numberDouble":"NaN"}',
    '{"$numberDouble":"-Infinity"}',
    '{"$numberDecimal":"1.10"}',
    '{"$oid":"0123456789abcdef01234567"}',
    '{"$date":{"$numberLong":"0"}}',
    '{"$date":{"$numberLong":"-62167219200001"}}',
    '{"$date":{"$numberLong":"9223372036854775807"}}',
    '{"$timestamp":{"t":1,"i":4294967295}}',
    '{"$binary":{"base64":"AAH+","subType":"00"}}',
    '{"$binary":{"base64":"AAECAwQFBgcICQoLDA0ODw==","subType":"04"}}',
    '{"$regularExpression":{"pattern":"a/\\"\\\\d","options":"im"}}',
    '{"$code":"f()"}',
    '{"$code":"f()","$scope":{"a":{"$numberInt":"1"}}}',
    '{"$symbol":"s"}',
    '{"$dbPointer":{"$ref":"d.c","$id":{"$oid":"0123456789abcdef01234567"}}}',
    '{"$undefined":true}',
    '{"$minKey":1}',
    '{"$maxKey":1}',
    "null",
    "true",
    '"\\u0000\\ud800 \u2028\'`\\"\\\\"',
    "[]",
    "{}",
    '{"10":{"$numberInt":"1"},"2":[{"a b":null}],"__proto__":"x","":{"constructor":[[],{}]}}',
    '{"$eq":{"$oid":"0123456789abcdef01234567"}}',
  ];
  for (const json of values) expect(again(json)).toBe(json);
  const list = `[${values.join(",")}]`;
  expect(again(list)).toBe(list);
});

test("what people type is read as the shell does", () => {
  const cases: [typed: string, json: string][] = [
    ["{ a: 1, 'b': .5, \"c\": 1e3, }", '{"a":{"$numberInt":"1"},"b":{"$numberDouble":"0.5"},"c":{"$numberDouble":"1000.0"}}'],
    ["2147483648", '{"$numberLong":"2147483648"}'],
    ["NumberLong(7)", '{"$numberLong":"7"}'],
    ["new Date('2030-01-01T00:00:00Z')", `{"$date":{"$numberLong":"${Date.parse("2030-01-01T00:00:00Z")}"}}`],
    ["ISODate('2030-01-01T00:00:00')", `{"$date":{"$numberLong":"${Date.parse("2030-01-01T00:00:00Z")}"}}`],
    ["/a\\/[/]b/mi", '{"$regularExpression":{"pattern":"a/[/]b","options":"im"}}'],
    ["UUID('00010203-0405-0607-0809-0a0b0c0d0e0f')", '{"$binary":{"base64":"AAECAwQFBgcICQoLDA0ODw==","subType":"04"}}'],
    ["[ // one\n 1, /* two */ null ]", '[{"$numberInt":"1"},null]'],
    ["MinKey", '{"$minKey":1}'],
    ["ISODate('2030-01-01 10:00:00')", `{"$date":{"$numberLong":"${Date.parse("2030-01-01T10:00:00Z")}"}}`],
    ["Date('2030-01-01T10:00+0200')", `{"$date":{"$numberLong":"${Date.parse("2030-01-01T08:00:00Z")}"}}`],
    ["/[\\\\/]\\//", '{"$regularExpression":{"pattern":"[\\\\\\\\/]/","options":""}}'],
    ["NumberDecimal('1.10')", '{"$numberDecimal":"1.10"}'],
    ["'it\\'s \\u00e9\\n'", '"it\'s é\\n"'],
  ];
  for (const [typed, json] of cases) expect(toExtended(parse(typed))).toBe(json);
  for (const bad of ["", "{", "{a}", "{a: 1 b: 2}", "{a: 1, a: 2}", "[1", "'x", "open", "f(1)", "1x", "99999999999999999999", "ObjectId('x')", "ISODate('x')", "NumberInt(2147483648)", "1 2", "toString()", "constructor", "new Date(2030, 0, 1)", "Long(5, 1)", "ISODate('2030-1-1')", "NumberDecimal(1.1)", "MinKey(1)"]) {
    expect(() => parse(bad), bad).toThrow();
  }
  expect(() => parse("[".repeat(5_000))).toThrow("levels");
  expect(parseDocuments('{"a": 1}\n{"a": 2}').length).toBe(2);
  expect(parseDocuments('[{"a": 1}, {"a": 2}]').length).toBe(2);
  const twice = fromExtended(parseReply('{"a": {"b": {"$numberInt": "1"}, "b": null}}'));
  expect(print(twice)).toContain('"b (again)": null');
  expect(isFaithful(twice)).toBe(false);
  expect(isFaithful(fromExtended(parseReply('{"a": {"b": 1}}')))).toBe(true);
  expect(printShort(parse(`{ a: [${"1, ".repeat(1_000)}], b: 'x' }`), 40).length).toBeLessThan(60);
});
