// What a newcomer does in the first five minutes.

import { expect, makeContainer, makeItem, Server, test, type, WELL_KNOWN_KEY } from "./server";

test("items are made, changed, found and deleted", async ({ page, server }, info) => {
  await page.goto(server.http);
  await expect(page.getByText(`AccountEndpoint=${server.http}/;AccountKey=${WELL_KNOWN_KEY};`)).toBeVisible();
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
  await page.goto(server.http);
  await makeContainer(page, "orders");
  await makeItem(page, { id: "a", total: 1 });
  await page.getByRole("option", { name: "a" }).click();
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.getByRole("option", { name: "a" }).click();
  await type(other, "Item as JSON", '{"id": "a", "total": 3}');
  await other.getByRole("button", { name: "Save" }).click();
  await expect(other.getByRole("alert")).toHaveCount(0);
  await type(page, "Item as JSON", '{"id": "a", "total": 4}');
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("alert")).toBeVisible();
});

test("items count down, and leave the list when they end", async ({ page, server }, info) => {
  await page.goto(server.http);
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
});

test("another default shows what it would end before it is set", async ({ page, server }, info) => {
  await page.goto(server.http);
  await makeContainer(page, "sessions");
  await makeItem(page, { id: "a" });
  await makeItem(page, { id: "b", ttl: 5000 });
  await page.getByRole("button", { name: "+1 min" }).click();
  await page.getByRole("link", { name: "Time to live" }).click();
  await page.getByLabel("Default time to live in seconds").fill("60");
  await expect(page.getByRole("button", { name: "Apply" })).toBeDisabled();
  await page.getByRole("button", { name: "Preview" }).click();
  await expect(page.getByText("1 ends at once, 0 within an hour, 1 within a day, 0 never")).toBeVisible();
  await page.screenshot({ path: info.outputPath("preview.png") });
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByRole("link", { name: "Items" }).click();
  await expect(page.getByRole("option")).toHaveCount(1);
  await expect(page.getByRole("option", { name: "b" })).toBeVisible();
});

test("queries show their rows, their charge and their plan", async ({ page, server }, info) => {
  await page.goto(server.http);
  await makeContainer(page, "orders");
  for (const id of ["a", "b", "c"]) await makeItem(page, { id, total: id.charCodeAt(0) });
  await page.getByRole("link", { name: "Query" }).click();
  await type(page, "Query", "SELECT c.id, c.total FROM c WHERE c.total > 97 ORDER BY c.total DESC");
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("cell").first()).toHaveText("c");
  await expect(page.getByRole("status")).toContainText("2 rows");
  await page.screenshot({ path: info.outputPath("query.png") });
  await page.getByRole("button", { name: "Plan" }).click();
  await expect(page.getByRole("textbox", { name: "Plan" })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("textbox", { name: "Query" })).toContainText("ORDER BY c.total DESC");
  await type(page, "Query", "SELEC nonsense");
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("alert")).toBeVisible();
});

test("a server with a key of its own asks for it", async ({ page }) => {
  const key = "MDEyMzQ1Njc4OWFiY2RlZg==";
  const server = await Server.start({ args: ["--key", key], onDisk: true });
  try {
    await page.goto(server.http);
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
