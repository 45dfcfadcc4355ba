// The same over HTTPS, with the certificate that the server has made, and with its data on the disk.

import { expect, makeContainer, makeItem, Server, test } from "./server";

test.use({ ignoreHTTPSErrors: true });

test("items are made and end over https", async ({ page }) => {
  const server = await Server.start({ onDisk: true });
  try {
    await page.goto(server.https);
    await expect(page.getByText(`AccountEndpoint=${server.https}/;`)).toBeVisible();
    await makeContainer(page, "sessions", { ttl: "10" });
    await makeItem(page, { id: "a" });
    await expect(page.getByRole("option", { name: "a" })).toContainText("10 s");
    await page.getByRole("button", { name: "Next expiry" }).click();
    await expect(page.getByRole("heading", { name: "No items" })).toBeVisible();
  } finally {
    await server.stop();
  }
});
