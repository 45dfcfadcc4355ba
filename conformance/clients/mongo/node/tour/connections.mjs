/** Connections: topologies, encryption, compression, authentication. */
import { equal, holds, refused } from "../checks.mjs";

const SET_NAME = "globaldb";

export function declareConnections(tour) {
  const pings = async (client) => equal((await client.db("admin").command({ ping: 1 })).ok, 1);

  tour.check("clients find the primary of the replica set", (world) => pings(world.connect({ replicaSet: SET_NAME })));

  tour.check("clients connect directly", (world) => pings(world.connect({ directConnection: "true" })));

  tour.check("another name of the replica set is not accepted", async (world) => {
    const client = world.connect({ replicaSet: "other", serverSelectionTimeoutMS: "1500" });
    const outcome = await client.db("admin").command({ ping: 1 }).then(() => "accepted", (error) => error.name);
    equal(outcome, "MongoServerSelectionError");
  });

  tour.check("connections are encrypted on the same port", (world) =>
    pings(world.connect({ replicaSet: SET_NAME, tls: "true", tlsCAFile: world.certificate })));

  tour.check("connections are not encrypted unless asked", (world) => pings(world.connect({ replicaSet: SET_NAME, tls: "false" })));

  // The package for zstd downloads its library from elsewhere than the registry.
  for (const compressor of ["snappy", "zlib"]) {
    tour.check(`messages are compressed with ${compressor}`, async (world) => {
      const client = world.connect({ replicaSet: SET_NAME, compressors: compressor });
      const collection = client.db(world.database.databaseName).collection("compressed");
      const text = "compress me ".repeat(5000);
      await collection.replaceOne({ _id: compressor }, { text }, { upsert: true });
      equal((await collection.findOne({ _id: compressor })).text, text);
      const hello = await client.db("admin").command({ hello: 1, compression: [compressor, "frob"] });
      equal(hello.compression, [compressor], "the compressors of hello");
    });
  }

  for (const [name, mechanism] of [["scram sha 256", "SCRAM-SHA-256"], ["scram sha 1", "SCRAM-SHA-1"]]) {
    tour.check(`${name} authenticates`, async (world) => {
      const client = world.connect({ authMechanism: mechanism, replicaSet: SET_NAME });
      const status = await client.db("admin").command({ connectionStatus: 1 });
      equal(status.authInfo.authenticatedUsers.length, 1);
      await client.db(world.database.databaseName).collection("c").findOne();
    });
  }

  tour.check("a wrong password is refused", async (world) => {
    for (const authMechanism of ["SCRAM-SHA-256", "SCRAM-SHA-1"]) {
      const client = world.connect({ authMechanism, directConnection: "true" }, { password: "d3Jvbmc" });
      await refused(18, () => client.db("admin").command({ listDatabases: 1 }));
    }
  });

  tour.check("nothing is read without credentials", async (world) => {
    const client = world.connect({ directConnection: "true" }, { credentials: false });
    await pings(client);
    await refused(13, () => client.db("x").collection("c").findOne());
  });

  tour.check("the connections of a client outlive its heartbeats", async (world) => {
    const client = world.connect({ replicaSet: SET_NAME, heartbeatFrequencyMS: "500" });
    const lost = [];
    client.on("connectionPoolCleared", (event) => lost.push(event));
    client.on("serverHeartbeatFailed", (event) => lost.push(event.failure.message));
    await pings(client);
    await new Promise((done) => setTimeout(done, 2500));
    await pings(client);
    equal(lost, [], "what was lost");
  });

  tour.check("unknown commands and options are refused", async (world) => {
    await refused(59, () => world.database.command({ frobnicate: 1 }));
    await refused(40415, () => world.database.command({ find: "c", frob: 1 }));
    holds(true);
  });
}
