// What other pages, and whoever writes items, cannot do.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, makeContainer, makeItem, test, type, WELL_KNOWN_KEY } from "./server";

const SCRIPT = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>";

test("script in items, names and errors is text", async ({ page, server }) => {
  await page.goto(server.http);
  await makeContainer(page, "orders");
  await makeItem(page, { id: SCRIPT.replace(/[/\\?#]/g, ""), [SCRIPT]: SCRIPT });
  await page.getByRole("link", { name: "Query" }).click();
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("columnheader", { name: SCRIPT })).toBeVisible();
  await type(page, "Query", `SELECT '${SCRIPT.replaceAll("'", "")}' FROM ${SCRIPT}`);
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("alert")).toBeVisible();
  const name = "a<img src=x onerror=document.title=1>";
  await server.admin("POST", "dbs/shop/mongo", { insert: name, documents: [{ _id: SCRIPT, [SCRIPT]: SCRIPT }] });
  await page.getByRole("button", { name: "List again" }).click();
  await page.getByRole("link", { name }).click();
  await page.getByRole("option").click();
  await expect(page.getByRole("textbox", { name: "Document" })).toContainText("onerror");
  await page.getByRole("link", { name: "Aggregate" }).click();
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByRole("button", { name: "Table" }).click();
  await expect(page.getByRole("columnheader", { name: SCRIPT })).toBeVisible();
  await type(page, "Pipeline", `[ { ${JSON.stringify(SCRIPT)}: 1 } ]`);
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("alert")).toContainText("onerror");
  expect(await page.title()).toBe("Bolide");
});

test("a page of another origin can neither read nor frame the explorer, nor use the database", async ({ page, server, faults }) => {
  const evil = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<title>evil</title><iframe src="${server.http}/_explorer/"></iframe>`);
  });
  await new Promise<void>((resolve) => evil.listen(0, "127.0.0.1", resolve));
  try {
    await page.goto(`http://127.0.0.1:${(evil.address() as AddressInfo).port}/`);
    const outcomes = await page.evaluate(async (http) => {
      const ask = (path: string, init: RequestInit): Promise<string> =>
        fetch(`${http}${path}`, init).then(
          async (response) => `${response.type} ${response.status} ${await response.text()}`,
          () => "refused",
        );
      return [
        await ask("/_explorer/session", {}),
        await ask("/_explorer/session", { mode: "no-cors" }),
        await ask("/dbs", { method: "POST", mode: "no-cors", body: '{"id":"evil"}' }),
        await ask("/dbs", { headers: { authorization: "x" } }),
        await ask("/_bolide/health", { mode: "no-cors" }),
      ];
    }, server.http);
    for (const outcome of outcomes) expect(outcome).toMatch(/^(refused|opaque 0 )$/);
    const frame = page.frames().find((frame) => frame.url().startsWith(server.http));
    expect(frame === undefined || (await frame.locator("#app").count()) === 0).toBe(true);
    // Nor if it knew the key.
    const key = { authorization: `Bearer ${WELL_KNOWN_KEY}` };
    const foreign = await fetch(`${server.http}/_bolide/clock`, { headers: { ...key, origin: "http://evil.example" } });
    expect(foreign.status).toBe(403);
    await page.goto(server.http);
    await expect(page.getByText("There is no database yet.")).toBeVisible();
  } finally {
    evil.close();
    // What this page asked is the point of the test.
    faults.length = 0;
  }
});
