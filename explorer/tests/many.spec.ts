// A container of many items. BOLIDE_TOUR_ITEMS says how many; only then times are judged, because they say nothing beside other tests and of a development build.

import { expect, Server, test } from "./server";

const WANTED = process.env["BOLIDE_TOUR_ITEMS"];
const ITEMS = Number(WANTED ?? 5_000);
/** Milliseconds. */
const FIRST_ROWS = 300;
const LONG_TASK = 50;

interface Seen {
  /** When the first row was there, after the page was asked for. */
  firstRow: number | null;
  longTasks: number[];
}

declare global {
  interface Window {
    seen: Seen;
  }
}

test("the first items of many are there at once, and scrolling goes on through the others", async ({ page }) => {
  test.setTimeout(600_000);
  const server = await Server.start();
  try {
    await server.cosmos("POST", "dbs", { id: "shop" });
    await server.cosmos("POST", "dbs/shop/colls", { id: "many", partitionKey: { paths: ["/id"], kind: "Hash", version: 2 }, defaultTtl: -1 });
    const line = (at: number): string => `{"id":"${String(at).padStart(8, "0")}","_ts":1893456000,"total":${at}${at % 3 === 0 ? ',"ttl":9000' : ""}}`;
    await server.admin("POST", "dbs/shop/colls/many/import", Array.from({ length: ITEMS }, (_, at) => line(at)).join("\n"));
    await page.addInitScript(() => {
      window.seen = { firstRow: null, longTasks: [] };
      new MutationObserver((_, observer) => {
        if (document.querySelector("[role=option]") === null) return;
        window.seen.firstRow = performance.now();
        observer.disconnect();
      }).observe(document, { childList: true, subtree: true });
      new PerformanceObserver((list) => list.getEntries().forEach((entry) => window.seen.longTasks.push(entry.duration))).observe({ type: "longtask" });
    });
    let pages = 0;
    page.on("request", (request) => (pages += request.url().endsWith("/query") ? 1 : 0));
    await page.goto(`${server.http}/#/shop/many/items`);
    const rows = page.getByRole("option");
    await expect(rows.first()).toBeVisible();
    expect(pages).toBe(1);
    const first = await page.evaluate(() => window.seen.firstRow);
    await page.evaluate(() => (window.seen.longTasks = []));

    await page.getByRole("listbox").hover();
    for (let step = 0; step < 60; step += 1) {
      await page.mouse.wheel(0, 2_000);
      await page.waitForTimeout(16);
    }
    await expect.poll(async () => Number(await rows.last().getAttribute("aria-posinset"))).toBeGreaterThan(1_000);
    expect(await rows.count()).toBeLessThan(100);
    // Each item once: they come in an order that is none of their ids.
    const shown = await rows.evaluateAll((elements) => elements.map((element) => element.querySelector("span")?.textContent));
    expect(new Set(shown).size).toBe(shown.length);
    const long = await page.evaluate(() => window.seen.longTasks);
    console.log(`${ITEMS} items: first rows after ${first?.toFixed(0)} ms; long tasks while scrolling: ${JSON.stringify(long)}`);
    if (WANTED !== undefined) {
      expect(first).toBeLessThan(FIRST_ROWS);
      expect(long.filter((duration) => duration > LONG_TASK)).toEqual([]);
    }
  } finally {
    await server.stop();
  }
});
