/** Account, databases, containers and throughput. */
import { CosmosClient } from "@azure/cosmos";

import { equal, refused } from "../checks.mjs";
import { FIVE_RANGES, unique } from "./world.mjs";

/** How many requests the server has answered. */
async function requests({ endpoint, key }) {
  const answer = await fetch(new URL("/_bolide/metrics", endpoint), { headers: { authorization: `Bearer ${key}` } });
  const counts = [...(await answer.text()).matchAll(/^bolide_requests_total\{.*\} (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

export function declareResources(tour) {
  tour.check("account is read with session consistency", async ({ client }) => {
    const { resource } = await client.getDatabaseAccount();
    equal(resource.consistencyPolicy, "Session");
  });

  tour.check("point read makes one request", async (world) => {
    const container = await world.container("one");
    await container.items.create({ id: "a", pk: "p" });
    const item = container.item("a", "p");
    await item.read();
    const before = await requests(world);
    await item.read();
    equal((await requests(world)) - before, 1, "requests");
  });

  tour.check("wrong key is refused with 401", async ({ endpoint }) => {
    const stranger = new CosmosClient({ endpoint, key: "d3JvbmcgYWNjb3VudCBrZXk=" });
    try {
      await refused(401, () => stranger.databases.readAll().fetchAll());
    } finally {
      stranger.dispose();
    }
  });

  tour.check("database can be read, listed, queried and deleted", async ({ client }) => {
    const id = unique("shelf");
    const { database, statusCode } = await client.databases.create({ id });
    equal(statusCode, 201, "status");
    equal((await database.read()).resource.id, id);
    const { resources: listed } = await client.databases.readAll().fetchAll();
    equal(listed.filter((entry) => entry.id === id).length, 1, "listed");
    const text = { query: "SELECT * FROM root r WHERE r.id = @id", parameters: [{ name: "@id", value: id }] };
    const { resources: found } = await client.databases.query(text).fetchAll();
    equal(found.map((entry) => entry.id), [id], "queried");
    await database.delete();
    await refused(404, () => database.read());
  });

  tour.check("second database of the same name is refused with 409", async ({ client, database }) => {
    await refused(409, () => client.databases.create({ id: database.id }));
    equal((await client.databases.createIfNotExists({ id: database.id })).statusCode, 200, "status");
  });

  tour.check("missing database and container are 404", async ({ client, database }) => {
    await refused(404, () => client.database("nowhere").read());
    await refused(404, () => database.container("nowhere").read());
  });

  tour.check("container echoes its partition key and default ttl", async (world) => {
    const container = await world.container("echo", { defaultTtl: 3600 });
    const { resource } = await container.read();
    equal(resource.partitionKey, { paths: ["/pk"], kind: "Hash", version: 2 });
    equal(resource.defaultTtl, 3600);
  });

  tour.check("replacing a container changes and removes its default ttl", async (world) => {
    const container = await world.container("replace", { defaultTtl: 60 });
    const { resource } = await container.read();
    equal((await container.replace({ ...resource, defaultTtl: -1 })).resource.defaultTtl, -1);
    const { defaultTtl, ...rest } = resource;
    await container.replace(rest);
    equal("defaultTtl" in (await container.read()).resource, false, "defaultTtl is still there");
  });

  tour.check("container can be listed, queried and deleted", async (world) => {
    const { containers } = world.database;
    const container = await world.container("kept only briefly");
    const { resources: listed } = await containers.readAll().fetchAll();
    equal(listed.filter((entry) => entry.id === container.id).length, 1, "listed");
    const text = { query: "SELECT * FROM root r WHERE r.id = @id", parameters: [{ name: "@id", value: container.id }] };
    const { resources: found } = await containers.query(text).fetchAll();
    equal(found.map((entry) => entry.id), [container.id], "queried");
    await container.delete();
    await refused(404, () => container.read());
  });

  tour.check("second container of the same name is refused with 409", async (world) => {
    const { id } = await world.container("twice");
    await refused(409, () => world.database.containers.create({ id, partitionKey: { paths: ["/pk"] } }));
  });

  tour.check("default ttl of zero or below minus one is refused with 400", async (world) => {
    for (const defaultTtl of [0, -2]) await refused(400, () => world.container("bad ttl", { defaultTtl }));
  });

  tour.check("throughput can be read and replaced through the offer", async (world) => {
    const container = await world.container("offer", { throughput: 500 });
    const { resource: offer } = await container.readOffer();
    equal(offer.content.offerThroughput, 500);
    offer.content.offerThroughput = 900;
    await world.client.offer(offer.id).replace(offer);
    equal((await container.readOffer()).resource.content.offerThroughput, 900);
  });

  tour.check("autoscale throughput keeps its maximum", async (world) => {
    const container = await world.container("autoscale", { maxThroughput: 4000 });
    const { resource: offer } = await container.readOffer();
    equal(offer.content.offerAutopilotSettings.maxThroughput, 4000);
  });

  tour.check("throughput decides the number of ranges", async (world) => {
    const narrow = await world.container("narrow");
    const wide = await world.container("wide", { throughput: FIVE_RANGES });
    equal((await narrow.readPartitionKeyRanges().fetchAll()).resources.length, 1);
    equal((await wide.readPartitionKeyRanges().fetchAll()).resources.length, 5);
  });
}
