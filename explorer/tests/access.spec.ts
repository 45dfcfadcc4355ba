// People who use a keyboard, a screen reader or a small screen.

import { AxeBuilder } from "@axe-core/playwright";
import { expect, makeContainer, makeItem, type Page, test } from "./server";

async function findings(page: Page): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const severe = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  return severe.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
}

for (const scheme of ["light", "dark"] as const) {
  test(`no view has serious findings, ${scheme}`, async ({ page, server }, info) => {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await page.goto(server.http);
    await makeContainer(page, "orders", { ttl: "90" });
    await makeItem(page, { id: "a" });
    for (const view of ["Items", "Query", "Time to live", "Changes", "Scripts", "Settings", "Requests", "Metrics", "Faults"]) {
      await page.getByRole("link", { name: view }).click();
      if (view === "Query") await page.getByRole("button", { name: "Run" }).click();
      await page.waitForLoadState("networkidle");
      expect(await findings(page), view).toEqual([]);
      await page.screenshot({ path: info.outputPath(`${view}.png`) });
    }
    await server.admin("POST", "dbs/shop/mongo", { insert: "carts", documents: [{ _id: 1, at: { $date: "2030-01-01T00:00:00Z" } }] });
    await server.admin("POST", "dbs/shop/mongo", { createIndexes: "carts", indexes: [{ key: { at: 1 }, name: "at_1", expireAfterSeconds: 90 }] });
    await page.getByRole("button", { name: "List again" }).click();
    await page.getByRole("link", { name: "carts" }).click();
    for (const view of ["Documents", "Aggregate", "SQL", "Time to live", "Changes", "Settings"]) {
      await page.getByRole("link", { name: view }).click();
      if (view === "Documents") await page.getByRole("option").click();
      if (view === "Aggregate") {
        await page.getByRole("button", { name: "Run" }).click();
        await page.getByRole("button", { name: "Tree" }).click();
      }
      await page.waitForLoadState("networkidle");
      expect(await findings(page), view).toEqual([]);
      await page.screenshot({ path: info.outputPath(`collection ${view}.png`) });
    }
    await page.getByRole("button", { name: "New container" }).first().click();
    await page.getByRole("button", { name: "MongoDB collection" }).click();
    expect(await findings(page), "new collection").toEqual([]);
    await page.getByRole("link", { name: "Bolide" }).click();
    expect(await findings(page), "connect").toEqual([]);
  });
}

test("the list is used with the keyboard", async ({ page, server }) => {
  await page.goto(server.http);
  await makeContainer(page, "orders");
  for (const id of ["a", "b", "c"]) await makeItem(page, { id });
  await page.getByRole("option").first().click();
  await page.getByRole("listbox").focus();
  await page.keyboard.press("ArrowDown");
  await expect(page.getByRole("option").nth(1)).toHaveAttribute("aria-selected", "true");
  await page.keyboard.press("End");
  await expect(page.getByRole("option").nth(2)).toHaveAttribute("aria-selected", "true");
});

test("a narrow screen shows everything", async ({ page, server }, info) => {
  await page.setViewportSize({ width: 380, height: 720 });
  await page.goto(server.http);
  await makeContainer(page, "orders");
  await makeItem(page, { id: "a" });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(wide).toBeLessThanOrEqual(380);
  await page.screenshot({ path: info.outputPath("narrow.png") });
});
