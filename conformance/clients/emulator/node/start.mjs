// Testcontainers for Node.js: starts its Cosmos DB container and uses it with @azure/cosmos. Prints `ok name` or `FAIL name: reason`.
//
// `DOCKER_HOST` names the engine.

import { CosmosClient } from "@azure/cosmos";
import { AzureCosmosDbEmulatorContainer } from "@testcontainers/azure-cosmosdb-emulator";

const IMAGE = "bolide";

async function check(name, run) {
  try {
    await run();
    console.log(`ok ${name}`);
  } catch (error) {
    process.exitCode = 1;
    console.log(`FAIL ${name}: ${error}`.replaceAll("\n", " "));
  }
}

async function useDatabase(started) {
  const client = new CosmosClient({ endpoint: started.getEndpoint(), key: started.getKey() });
  const { database } = await client.databases.create({ id: "tests" });
  const { container } = await database.containers.create({ id: "items", partitionKey: "/pk" });
  await container.items.create({ id: "a", pk: "p" });
  const { resource } = await container.item("a", "p").read();
  if (resource?.id !== "a") throw new Error(`read ${JSON.stringify(resource)}`);
  client.dispose();
}

for (const protocol of ["http", "https"]) {
  await check(`${protocol}: the container starts, is used and stops`, async () => {
    const started = await new AzureCosmosDbEmulatorContainer(IMAGE).withProtocol(protocol).start();
    try {
      // The certificate is made anew by each container, and so cannot be among those that Node.js was started with.
      process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
      await useDatabase(started);
      if (!started.getConnectionUri().startsWith(`AccountEndpoint=${protocol}://`)) {
        throw new Error(started.getConnectionUri());
      }
    } finally {
      await started.stop();
    }
  });
}
