import { CosmosClient } from "@azure/cosmos";
import { server } from "bolide-db";
import { beforeEach, expect, test } from "vitest";

const db = server();

beforeEach(() => db.reset());

test("an item lives for thirty days", async () => {
  const client = new CosmosClient({ endpoint: db.endpoint, key: db.key });
  const { database } = await client.databases.create({ id: "retention" });
  const { container: tokens } = await database.containers.create({
    id: "tokens", partitionKey: "/user", defaultTtl: 30 * 24 * 60 * 60,
  });
  await tokens.items.create({ id: "t1", user: "ada" });

  await db.clock.advance({ days: 29 });
  expect((await tokens.item("t1", "ada").read()).statusCode).toBe(200);
  await db.clock.advance({ days: 1 });
  expect((await tokens.item("t1", "ada").read()).statusCode).toBe(404);
});
