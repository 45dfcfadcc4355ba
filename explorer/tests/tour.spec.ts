// What a newcomer does in the first five minutes.

import { expect, makeContainer, makeItem, Server, test, type, WELL_KNOWN_KEY } from "./server";

test("items are made, changed, found and deleted", async ({ page, server }, info) => {
  await page.goto(server.url);
  await expect(page.getByText(`AccountEndpoint=${server.url}/;AccountKey=${WELL_KNOWN_KEY};`)).toBeVisible();
  await makeContainer(page, "orders", { key: "/customer" });
  await expect(page.getByRole("heading", { name: "No items" })).toBeVisible();
  await makeItem(page, { id: "a", customer: "ann", total: 3 });
  await makeItem(page, { id: "b", customer: "bob", total: 5 });

  await type(page, "Item as JSON", JSON.stringify({ id: "b", customer: "bob", total: 7 }));
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByLabel("Filter").fill("WHERE c.total = 7");
  await page.getByRole("button", { name: "Apply" }).click();
  await expect(page.getByRole("option")).toHaveCount(1);
  await expect(page.getByRole("option", { name: "b" })).toContainText('["bob"]');
  await page.screenshot({ path: info.outputPath("items.png") });

  page.once("dialog", (dialog) => void dialog.accept());
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByLabel("Filter").fill("");
  await page.getByRole("button", { name: "Apply" }).click();
  await expect(page.getByRole("option")).toHaveCount(1);
  await expect(page.getByRole("option", { name: "a" })).toBeVisible();

  await page.getByRole("button", { name: "New item" }).click();
  await type(page, "Item as JSON", '{"id": "a", "customer": "ann"}');
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("alert")).toContainText("id", { ignoreCase: true });
});

test("an item that somebody else has changed is not overwritten", async ({ page, server }) => {
  await page.goto(server.url);
  await makeContainer(page, "orders");
  await makeItem(page, { id: "a", total: 1 });
  await page.getByRole("option", { name: "a" }).click();
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.getByRole("option", { name: "a" }).click();
  await type(other, "Item as JSON", '{"id": "a", "total": 3}');
  const saved = other.waitForResponse((response) => response.request().method() === "PUT");
  await other.getByRole("button", { name: "Save" }).click();
  expect((await saved).status()).toBe(200);
  await type(page, "Item as JSON", '{"id": "a", "total": 4}');
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("alert")).toBeVisible();
});

test("items count down, and leave the list when they end", async ({ page, server }, info) => {
  await page.goto(server.url);
  await makeContainer(page, "sessions", { ttl: "100" });
  await makeItem(page, { id: "default" });
  await makeItem(page, { id: "own", ttl: 30 });
  await makeItem(page, { id: "stays", ttl: -1 });
  await expect(page.getByRole("option", { name: "default" })).toContainText("1 min 40 s");
  await expect(page.getByRole("option", { name: "own" })).toContainText("30 s");
  await expect(page.getByRole("option", { name: "stays" })).toContainText("stays");

  await page.getByRole("option", { name: "own" }).click();
  await page.getByRole("button", { name: "Why?" }).click();
  await expect(page.getByText("its own ttl of 30 seconds")).toBeVisible();
  await page.screenshot({ path: info.outputPath("countdown.png") });

  await page.getByRole("button", { name: "+1 s" }).click();
  await expect(page.getByRole("option", { name: "own" })).toContainText("29 s");
  await page.getByRole("button", { name: "Next expiry" }).click();
  await expect(page.getByRole("option", { name: "own" })).toHaveCount(0);
  await expect(page.getByRole("option", { name: "default" })).toContainText("1 min 10 s");
  await page.getByRole("button", { name: "Why?" }).click();
  await expect(page.getByText("It is gone, and not purged yet")).toBeVisible();

  await page.getByRole("link", { name: "Time to live" }).click();
  await page.getByLabel("Why is this item there or gone?").fill("own");
  await page.getByLabel("Its partition key").fill('["own"]');
  await page.getByRole("button", { name: "Ask" }).click();
  await expect(page.getByRole("status")).toContainText("It is gone, and not purged yet");
  await server.admin("POST", "dbs/shop/colls/sessions/purge", { mode: "force" });
  await page.getByRole("button", { name: "Ask" }).click();
  await expect(page.getByRole("status")).toContainText("There is no such item");
});

test("another default shows what it would end before it is set", async ({ page, server }, info) => {
  await page.goto(server.url);
  await makeContainer(page, "sessions");
  await makeItem(page, { id: "a" });
  await makeItem(page, { id: "b", ttl: 5000 });
  await page.getByRole("button", { name: "+1 min" }).click();
  await page.getByRole("link", { name: "Time to live" }).click();
  await page.getByLabel("Default time to live in seconds").fill("60");
  await expect(page.getByRole("button", { name: "Apply" })).toBeDisabled();
  await page.getByRole("button", { name: "Preview" }).click();
  await expect(page.getByText("1 ends at once, 0 within an hour, 1 within a day, 0 never")).toBeVisible();
  await expect(page.getByText("Among those that end at once: a.")).toBeVisible();
  await page.screenshot({ path: info.outputPath("preview.png") });
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByRole("link", { name: "Items" }).click();
  await expect(page.getByRole("option")).toHaveCount(1);
  await expect(page.getByRole("option", { name: "b" })).toBeVisible();
});

test("queries show their rows, their charge and their plan", async ({ page, server }, info) => {
  await page.goto(server.url);
  await makeContainer(page, "orders");
  for (const id of ["a", "b", "c"]) await makeItem(page, { id, total: id.charCodeAt(0) });
  await page.getByRole("link", { name: "Query" }).click();
  await type(page, "Query", "SELECT c.id, c.total FROM c WHERE c.total > 97 ORDER BY c.total DESC");
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("cell").first()).toHaveText("c");
  await expect(page.getByRole("status")).toContainText("2 rows");
  await page.screenshot({ path: info.outputPath("query.png") });
  await page.getByRole("button", { name: "Metrics", exact: true }).click();
  const figure = (name: string) => page.locator(".figures div", { hasText: name }).getByRole("definition");
  await expect(figure("Rows")).toHaveText("2");
  await expect(figure("Paths with an index")).toContainText("/total/?");
  await expect(figure("Paths without one")).toHaveText("none");
  await page.getByRole("button", { name: "Plan" }).click();
  await expect(page.getByRole("textbox", { name: "Plan" })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("textbox", { name: "Query" })).toContainText("ORDER BY c.total DESC");
  // Tabs, and what each has found, go on side by side.
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("status")).toContainText("2 rows");
  await page.getByRole("button", { name: "New query" }).click();
  await type(page, "Query", "SELECT VALUE COUNT(1) FROM c");
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("cell")).toHaveText("3");
  await page.getByRole("button", { name: "Query 1" }).click();
  await expect(page.getByRole("status")).toContainText("2 rows");
  await page.getByRole("button", { name: "Query 2" }).click();
  // Another window has the same tabs.
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.getByRole("button", { name: "New query" }).click();
  await expect(page.getByRole("button", { name: "Query 3" })).toBeVisible();
  await other.getByRole("button", { name: "Close" }).click();
  await expect(page.getByRole("button", { name: "Query 3" })).toHaveCount(0);
  await other.close();
  await page.reload();
  await expect(page.getByRole("textbox", { name: "Query" })).toHaveText("SELECT VALUE COUNT(1) FROM c");
  await page.getByRole("button", { name: "Close" }).click();
  await expect(page.getByRole("textbox", { name: "Query" })).toContainText("ORDER BY c.total DESC");
  await expect(page.getByRole("button", { name: "Query 2" })).toHaveCount(0);
  await type(page, "Query", "SELEC nonsense");
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("alert")).toBeVisible();
});

test("whole numbers keep all their digits", async ({ page, server }) => {
  await page.goto(server.url);
  await makeContainer(page, "orders");
  await page.getByRole("button", { name: "New item" }).click();
  await type(page, "Item as JSON", '{"id": "a", "account": 9007199254740993}');
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("option", { name: "a" }).click();
  await expect(page.getByRole("textbox", { name: "Item as JSON" })).toContainText("9007199254740993");
  await page.getByRole("button", { name: "Duplicate" }).click();
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("option", { name: "a-copy" })).toBeVisible();
  await page.getByRole("link", { name: "Query" }).click();
  await type(page, "Query", "SELECT c.id FROM c WHERE c.account = 9007199254740993");
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("status")).toContainText("2 rows");
});

test("pages without a match are passed over", async ({ page, server }) => {
  await page.goto(server.url);
  await makeContainer(page, "orders");
  const lines = Array.from({ length: 200 }, (_, n) => JSON.stringify({ id: `item ${n}`, number: n }));
  await server.admin("POST", "dbs/shop/colls/orders/import", lines.map((line) => line.replace("}", ',"_ts":1893456000}')).join("\n"));
  for (let splits = 0; splits < 3; splits += 1) await server.admin("POST", "dbs/shop/colls/orders/split", {});
  for (const number of [3, 50, 120, 199]) {
    await page.getByLabel("Filter").fill(`WHERE c.number = ${number}`);
    await page.getByRole("button", { name: "Apply" }).click();
    await expect(page.getByRole("option")).toHaveCount(1);
    await expect(page.getByRole("option", { name: `item ${number}` })).toBeVisible();
  }
  await page.getByLabel("Filter").fill("WHERE c.number < 0");
  await page.getByRole("button", { name: "Apply" }).click();
  await expect(page.getByText("None fits the filter.")).toBeVisible();
});

test("a server with a key of its own asks for it", async ({ page, isOnDisk }) => {
  const key = "MDEyMzQ1Njc4OWFiY2RlZg==";
  const server = await Server.start({ args: ["--key", key], onDisk: true, isHttps: isOnDisk });
  try {
    await page.goto(server.url);
    await page.getByLabel("Account key").fill(WELL_KNOWN_KEY);
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page.getByRole("alert")).toBeVisible();
    await page.getByLabel("Account key").fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await makeContainer(page, "orders");
    const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
    expect(kept).not.toContain(key);
    await page.reload();
    await expect(page.getByLabel("Account key")).toBeVisible();
  } finally {
    await server.stop();
  }
});

test("many items are uploaded, downloaded and deleted", async ({ page, server }) => {
  await page.goto(server.url);
  await makeContainer(page, "orders", { key: "/customer/name" });
  const lines = Array.from({ length: 300 }, (_, n) => JSON.stringify({ id: `item ${n}`, customer: { name: `Zoë/${n}` } }));
  const upload = page.getByLabel("Upload");
  await upload.setInputFiles({ name: "orders.jsonl", mimeType: "application/json", buffer: Buffer.from(lines.join("\n")) });
  await expect(page.getByRole("option").first()).toBeVisible();
  await expect(page.getByRole("option").first()).toHaveAttribute("aria-setsize", "300");
  await expect(page.getByText("of 300 stored")).toHaveCount(0);

  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download" }).click();
  const items = JSON.parse(await (await (await saved).createReadStream()).toArray().then((parts) => Buffer.concat(parts).toString())) as { id: string }[];
  expect(new Set(items.map((item) => item.id)).size).toBe(300);

  await page.getByRole("option").nth(0).click({ modifiers: ["ControlOrMeta"] });
  await page.getByRole("option").nth(2).click({ modifiers: ["ControlOrMeta"] });
  page.once("dialog", (dialog) => void dialog.accept());
  await page.getByRole("button", { name: "Delete 2 items" }).click();
  await expect(page.getByRole("option").first()).toHaveAttribute("aria-setsize", "298");

  await upload.setInputFiles({ name: "bad.jsonl", mimeType: "application/json", buffer: Buffer.from('{"id": "x"}\nnot JSON\n') });
  await expect(page.getByRole("alert")).toContainText("Line 2 is not JSON");
  await page.getByRole("button", { name: "Apply" }).click();
  await expect(page.getByRole("option").first()).toHaveAttribute("aria-setsize", "298");
});

test("results are shown as JSON and as a tree, and queries as programs", async ({ page, server }) => {
  await page.goto(server.url);
  await makeContainer(page, "orders");
  await makeItem(page, { id: "a", lines: [{ name: "tea" }] });
  await page.getByRole("link", { name: "Query" }).click();
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByRole("button", { name: "Tree" }).click();
  await page.getByRole("button", { name: "0: {" }).click();
  await page.getByRole("button", { name: "lines: [1]" }).click();
  await page.getByRole("button", { name: "0: {1}" }).click();
  await expect(page.getByText('name: "tea"')).toBeVisible();
  await page.getByRole("button", { name: "JSON" }).click();
  await expect(page.getByRole("textbox", { name: "Results" })).toContainText('"tea"');
  await page.getByLabel("As code").selectOption("Python");
  await expect(page.getByRole("region", { name: "Code" })).toContainText('query_items("SELECT * FROM c"');
  await expect(page.getByRole("region", { name: "Code" })).not.toContainText(WELL_KNOWN_KEY);
  await type(page, "Query", "SELECT 1");
  await page.getByLabel("Earlier queries").selectOption("SELECT * FROM c");
  await expect(page.getByRole("textbox", { name: "Query" })).toHaveText("SELECT * FROM c");
});

test("changes are shown as they happen, and ends as such", async ({ page, server }, info) => {
  await page.goto(server.url);
  await makeContainer(page, "sessions", { ttl: "100" });
  await page.getByRole("link", { name: "Settings" }).click();
  await type(
    page,
    "Settings as JSON",
    JSON.stringify({ id: "sessions", partitionKey: { paths: ["/id"], kind: "Hash", version: 2 }, defaultTtl: 100, changeFeedPolicy: { retentionDuration: 10 } }),
  );
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("Saved.")).toBeVisible();
  await page.getByRole("link", { name: "Changes" }).click();
  await page.getByRole("button", { name: "All versions and deletes" }).click();
  await expect(page.getByRole("heading", { name: "Nothing has changed yet" })).toBeVisible();
  // The feed has begun when a request of it was answered.
  await page.waitForResponse((response) => response.url().endsWith("/docs") && response.status() === 304);

  const other = await page.context().newPage();
  await other.goto(page.url().replace(/changes$/, "items"));
  await makeItem(other, { id: "a" });
  await expect(page.getByRole("option")).toContainText("created");
  await server.admin("PUT", "clock", { advanceMs: 100_000 });
  await server.admin("POST", "dbs/shop/colls/sessions/purge", { mode: "force" });
  await expect(page.getByRole("option").first()).toContainText("ended (TTL)");
  await page.getByRole("option").first().click();
  await page.screenshot({ path: info.outputPath("changes.png") });

  await page.getByRole("button", { name: "Latest versions" }).click();
  await makeItem(other, { id: "b" });
  await expect(page.getByRole("option")).toContainText("written");
  await page.getByLabel("From the beginning").check();
  await expect(page.getByRole("option")).toHaveCount(1);
  await expect(page.getByRole("option")).toContainText("b");
});

test("procedures, triggers and functions are made and run", async ({ page, server }, info) => {
  await page.goto(server.url);
  await makeContainer(page, "orders");
  await makeItem(page, { id: "a" });
  await page.getByRole("link", { name: "Scripts" }).click();
  await page.getByRole("button", { name: "New stored procedure" }).click();
  await page.getByLabel("Name").fill("count");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByLabel("Partition key").fill('["a"]');
  await page.getByLabel("Parameters").fill('["items: "]');
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("status")).toContainText("items: 1");
  await page.screenshot({ path: info.outputPath("scripts.png") });

  await page.getByRole("button", { name: "Functions" }).click();
  await page.getByRole("button", { name: "New function" }).click();
  await page.getByLabel("Name").fill("withTax");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("listitem").getByRole("button", { name: "withTax" })).toBeVisible();
  await page.getByRole("link", { name: "Query" }).click();
  await type(page, "Query", "SELECT VALUE udf.withTax(10) FROM c");
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("cell")).toHaveText("12");
});

test("a container is made with all its settings, by a form or as JSON", async ({ page, server }, info) => {
  await page.goto(server.url);
  const form = page.getByRole("form", { name: "New container" });
  await page.getByRole("button", { name: "New container" }).first().click();
  await form.getByLabel("Database").fill("shop");
  await form.getByLabel("Container", { exact: true }).fill("books");
  await form.getByLabel("Partition key").fill("/tenant, /author");
  await form.getByText("Unique keys and indexes").click();
  await form.getByLabel("Unique keys").fill("/isbn\n/title, /year");
  await form.getByLabel("Paths that are not indexed").fill("/cover");
  await form.getByLabel("Vector path").fill("/embedding");
  await form.getByLabel("Dimensions").fill("3");
  await form.getByLabel("Full-text paths").fill("/title");
  await form.getByText("Throughput", { exact: true }).click();
  await form.getByLabel("Request units per second").fill("700");
  await page.screenshot({ path: info.outputPath("new-container.png") });
  await form.getByRole("button", { name: "Create" }).click();
  await page.getByRole("link", { name: "Settings" }).click();
  expect(await server.cosmos("GET", "dbs/shop/colls/books")).toMatchObject({
    partitionKey: { paths: ["/tenant", "/author"], kind: "MultiHash" },
    uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/isbn"] }, { paths: ["/title", "/year"] }] },
    indexingPolicy: { vectorIndexes: [{ path: "/embedding", type: "quantizedFlat" }], fullTextIndexes: [{ path: "/title" }] },
    vectorEmbeddingPolicy: { vectorEmbeddings: [{ path: "/embedding", dimensions: 3, distanceFunction: "cosine", dataType: "float32" }] },
    fullTextPolicy: { fullTextPaths: [{ path: "/title", language: "en-US" }] },
  });

  const throughput = page.getByRole("form", { name: "Throughput" });
  await expect(throughput.getByLabel("Request units per second")).toHaveValue("700");
  await throughput.getByLabel("Request units per second").fill("4000");
  await throughput.getByLabel("At most so many").check();
  await throughput.getByRole("button", { name: "Set throughput" }).click();
  await expect(throughput.getByRole("status")).toHaveText("Throughput is set.");
  await page.reload();
  await expect(throughput.getByLabel("Request units per second")).toHaveValue("4000");
  await expect(throughput.getByLabel("At most so many")).toBeChecked();
  // To the other kind, with another number.
  await throughput.getByLabel("Request units per second").fill("500");
  await throughput.getByLabel("At most so many").uncheck();
  await throughput.getByRole("button", { name: "Set throughput" }).click();
  await expect(throughput.getByRole("status")).toHaveText("Throughput is set.");
  await page.reload();
  await expect(throughput.getByLabel("Request units per second")).toHaveValue("500");
  await expect(throughput.getByLabel("At most so many")).not.toBeChecked();
  await throughput.getByLabel("Request units per second").fill("7");
  await throughput.getByRole("button", { name: "Set throughput" }).click();
  await expect(page.getByRole("alert")).toBeVisible();

  await page.getByRole("button", { name: "New container in shop" }).click();
  await form.getByLabel("Container", { exact: true }).fill("other");
  await form.getByLabel("Partition key").fill("/id");
  await form.getByRole("button", { name: "As JSON" }).click();
  const text = { id: "as-json", partitionKey: { paths: ["/k"], kind: "Hash", version: 2 }, computedProperties: [{ name: "low", query: "SELECT VALUE LOWER(c.k) FROM c" }] };
  await type(page, "Definition as JSON", JSON.stringify(text));
  await form.getByRole("button", { name: "Create" }).click();
  await expect(page.getByRole("heading", { name: "as-json" })).toBeVisible();
});

test("requests show with their answers, and faults are injected", async ({ page }, info) => {
  const server = await Server.start({ args: ["--enable-faults"] });
  try {
    await page.goto(server.url);
    await makeContainer(page, "orders");
    await page.getByRole("link", { name: "Requests" }).click();
    await expect(page.getByRole("option").filter({ hasText: "CreateContainer" })).toContainText("201");
    await page.getByRole("link", { name: "Faults" }).click();
    await type(page, "Rules as JSON", JSON.stringify([{ match: { operation: "ReadItem" }, status: 503, subStatus: 21007, times: 2 }]));
    await page.getByRole("button", { name: "Set", exact: true }).click();
    await expect(page.getByRole("status")).toHaveText("Set.");
    await page.screenshot({ path: info.outputPath("faults.png") });
    await page.getByRole("link", { name: "Requests" }).click();
    await page.getByLabel("Filter").fill("503");
    await expect(page.getByText("None fits the filter")).toBeVisible();
    await server.cosmos("GET", "dbs/shop/colls/orders/docs/a", undefined, { "x-ms-documentdb-partitionkey": '["a"]' }).catch(() => null);
    await expect(page.getByRole("option")).toHaveCount(1);
    await expect(page.getByRole("option")).toContainText("503/21007");
    await page.getByRole("option").click();
    await expect(page.getByRole("region", { name: "Request" })).toContainText('"operation": "ReadItem"');
    await page.screenshot({ path: info.outputPath("requests.png") });
    await page.getByRole("link", { name: "Faults" }).click();
    await expect(page.getByRole("textbox", { name: "Rules as JSON" })).toContainText('"times": 1');
    await page.getByRole("button", { name: "Clear" }).click();
    await expect(page.getByRole("textbox", { name: "Rules as JSON" })).toHaveText("[]");
    await type(page, "Rules as JSON", '[{"match": {"nonsense": 1}, "status": 503}]');
    await page.getByRole("button", { name: "Set", exact: true }).click();
    await expect(page.getByRole("alert")).toContainText("nonsense");
  } finally {
    await server.stop();
  }
});

test("without --enable-faults the page says so", async ({ page, server }) => {
  await page.goto(server.url);
  await page.getByRole("link", { name: "Faults" }).click();
  await expect(page.getByRole("heading", { name: "Faults are not injected" })).toBeVisible();
});

test("metrics go on while they are looked at", async ({ page, server }, info) => {
  await page.goto(server.url);
  await makeContainer(page, "orders");
  await makeItem(page, { id: "a" });
  await page.getByRole("link", { name: "Metrics" }).click();
  await expect(page.getByRole("row", { name: /CreateItem 1/ })).toBeVisible();
  await expect(page.getByRole("img", { name: /^Items: 1 / })).toBeVisible();
  await page.screenshot({ path: info.outputPath("metrics.png") });
});
