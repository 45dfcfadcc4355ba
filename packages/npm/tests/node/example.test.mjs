import assert from "node:assert/strict";
import { test } from "node:test";

import { CosmosClient } from "@azure/cosmos";
import { start } from "bolide-db";

test("an item lives for thirty days", async () => {
  const db = await start();
  try {
    const client = new CosmosClient({ endpoint: db.endpoint, key: db.key });
    const { database } = await client.databases.create({ id: "retention" });
    const { container: tokens } = await database.containers.create({ id: "tokens", partitionKey: "/user", defaultTtl: -1 });
    await tokens.items.create({ id: "t1", user: "ada", ttl: 30 * 24 * 60 * 60 });

    await db.clock.advance({ days: 29 });
    assert.equal((await tokens.item("t1", "ada").read()).statusCode, 200);
    await db.clock.advance({ days: 1 });
    assert.equal((await tokens.item("t1", "ada").read()).statusCode, 404);
  } finally {
    await db.stop();
  }
});
