// The pictures of the documentation, made when BOLIDE_SCREENSHOTS names a directory.

import { join } from "node:path";
import { expect, Server, START, test, type } from "./server";

const DIRECTORY = process.env["BOLIDE_SCREENSHOTS"];

test.skip(DIRECTORY === undefined, "only when BOLIDE_SCREENSHOTS names a directory");
test.use({ viewport: { width: 1200, height: 720 } });

/** Five minutes of a shop. */
async function fill(server: Server): Promise<void> {
  await server.cosmos("POST", "dbs", { id: "shop" });
  const key = { paths: ["/user"], kind: "Hash", version: 2 };
  const containers = [
    { id: "carts", partitionKey: key, defaultTtl: 1800, changeFeedPolicy: { retentionDuration: 10 } },
    { id: "orders", partitionKey: key },
    { id: "sessions", partitionKey: key, defaultTtl: -1 },
  ];
  for (const container of containers) await server.cosmos("POST", "dbs/shop/colls", container);
  const users = ["ada", "bob", "eve", "zoe"];
  const goods = ["tea", "coffee", "milk", "bread", "rice"];
  for (let at = 0; at < 24; at += 1) {
    const user = users[at % users.length] ?? "";
    const cart = { id: `cart-${at + 1}`, user, lines: [{ name: goods[at % goods.length], count: 1 + (at % 3) }], total: 3 + at };
    // Some have a life of their own.
    await server.item("dbs/shop/colls/carts/docs", user, at % 4 === 1 ? { ...cart, ttl: 60 + at * 40 } : at % 7 === 3 ? { ...cart, ttl: -1 } : cart);
    await server.admin("PUT", "clock", { advanceMs: 9_000 });
  }
  const pages = ["/shop/tea", "/shop/coffee", "/about"];
  const visits = Array.from({ length: 40 }, (_, at) => ({
    _id: { $oid: (0x65a00000 + at).toString(16).padStart(24, "0") },
    page: pages[at % pages.length],
    ms: { $numberDouble: String(12.5 + at) },
    visitor: { $numberLong: String(9_007_199_254_740_993n + BigInt(at)) },
    at: { $date: new Date(START + at * 5_000).toISOString() },
  }));
  await server.admin("POST", "dbs/shop/mongo", { insert: "visits", documents: visits });
  await server.admin("POST", "dbs/shop/mongo", { createIndexes: "visits", indexes: [{ key: { at: 1 }, name: "at_1", expireAfterSeconds: 600 }] });
}

test("pictures of each page", async ({ page }) => {
  const server = await Server.start({ args: ["--enable-faults"] });
  try {
    await fill(server);
    const take = async (name: string): Promise<void> => {
      await page.mouse.move(0, 0);
      await page.screenshot({ path: join(DIRECTORY ?? "", `${name}.png`) });
    };
    await page.goto(server.http);
    await expect(page.getByText("AccountEndpoint=").first()).toBeVisible();
    await expect(page.getByRole("link", { name: "carts" })).toBeVisible();
    await page.getByRole("link", { name: "carts" }).click();
    await page.getByRole("option", { name: "cart-22" }).click();
    await page.getByRole("button", { name: "Why?" }).click();
    await expect(page.getByText("its own ttl")).toBeVisible();
    await take("items");

    await page.getByRole("link", { name: "Query" }).click();
    await type(page, "Query", "SELECT c.user, COUNT(1) AS carts, SUM(c.total) AS total\nFROM c\nWHERE c.total > 5\nGROUP BY c.user");
    await page.getByRole("button", { name: "Run" }).click();
    await expect(page.getByRole("cell").first()).toBeVisible();
    await take("query");

    await page.getByRole("link", { name: "Time to live" }).click();
    await page.getByLabel("Default time to live in seconds").fill("60");
    await page.getByRole("button", { name: "Preview" }).click();
    await expect(page.getByText("Among those that end at once")).toBeVisible();
    await take("time-to-live");

    await page.getByRole("link", { name: "Changes" }).click();
    await page.getByLabel("From the beginning").check();
    await page.getByRole("option").first().click();
    await take("changes");

    await page.getByRole("link", { name: "Settings" }).click();
    await expect(page.getByRole("textbox", { name: "Settings as JSON" })).toContainText("defaultTtl");
    await expect(page.getByRole("form", { name: "Throughput" })).toBeVisible();
    await take("settings");

    await page.getByRole("link", { name: "Scripts" }).click();
    await page.getByRole("button", { name: "New stored procedure" }).click();
    await page.getByLabel("Name").fill("count");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByLabel("Partition key").fill('["ada"]');
    await page.getByLabel("Parameters").fill('["carts: "]');
    await page.getByRole("button", { name: "Run" }).click();
    await expect(page.getByRole("status")).toContainText("carts: ");
    await take("scripts");

    await page.getByRole("link", { name: "Metrics" }).click();
    await expect(page.getByRole("row", { name: /CreateItem/ })).toBeVisible();
    await page.waitForTimeout(8_000);
    await take("metrics");

    await page.getByRole("link", { name: "Requests" }).click();
    await page.getByRole("option").nth(3).click();
    await take("requests");

    await page.getByRole("link", { name: "Faults" }).click();
    const rules = [
      { match: { operation: "ReadItem" }, status: 429, retryAfterMs: 50, times: 5 },
      { match: { operation: "QueryItems" }, delayMs: 800 },
    ];
    await type(page, "Rules as JSON", JSON.stringify(rules, null, 2));
    await page.getByRole("button", { name: "Set", exact: true }).click();
    await expect(page.getByRole("status")).toHaveText("Set.");
    await take("faults");
    await page.getByRole("button", { name: "Clear" }).click();

    await page.getByRole("button", { name: "List again" }).click();
    await page.getByRole("link", { name: "visits" }).click();
    await page.getByLabel("Filter").fill('{ page: /^\\/shop/, at: { $gte: ISODate("2030-01-01T00:01:00Z") } }');
    await page.getByRole("button", { name: "Find" }).click();
    await page.getByRole("option").nth(1).click();
    await page.getByRole("button", { name: "Why?" }).click();
    await expect(page.getByText("an index of the collection")).toBeVisible();
    await take("documents");
    await page.getByRole("link", { name: "Aggregate" }).click();
    await type(page, "Pipeline", '[\n  { $match: { ms: { $gt: 20 } } },\n  { $group: { _id: "$page", visits: { $sum: 1 }, ms: { $avg: "$ms" } } },\n  { $sort: { visits: -1 } }\n]');
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByRole("button", { name: "Table" }).click();
    await expect(page.getByRole("cell").first()).toBeVisible();

    await page.getByRole("button", { name: "New container" }).first().click();
    await page.getByText("Unique keys and indexes").click();
    await take("new-container");
  } finally {
    await server.stop();
  }
});
