/** Indexes and time to live: the index on `_ts` with the field `ttl`, and indexes on dates, to the millisecond. */
import { Double, Int32, Long } from "mongodb";

import { equal, refused } from "../checks.mjs";

export function declareExpiry(tour) {
  tour.check("indexes are created listed and dropped", async (world) => {
    const collection = await world.collection("indexes", [{ _id: 1 }]);
    equal(await collection.createIndex({ a: 1, "b.c": -1 }), "a_1_b.c_-1");
    equal((await collection.indexes()).map((index) => [index.name, index.key]), [["_id_", { _id: 1 }], ["a_1_b.c_-1", { a: 1, "b.c": -1 }]]);
    await collection.dropIndex("a_1_b.c_-1");
    equal((await collection.indexes()).length, 1);
  });

  tour.check("a unique index refuses a second document with mongodbs text", async (world) => {
    const collection = await world.collection("unique");
    await collection.createIndex({ email: 1 }, { unique: true });
    await collection.insertOne({ _id: 1, email: "a@x" });
    const error = await refused(11000, () => collection.insertOne({ _id: 2, email: "a@x" }));
    const namespace = `${world.database.databaseName}.unique`;
    equal(error.message, `E11000 duplicate key error collection: ${namespace} index: email_1 dup key: { email: "a@x" }`);
  });

  tour.check("documents end seconds after their last change", async (world) => {
    const collection = await world.collection("sessions");
    await collection.createIndex({ _ts: 1 }, { expireAfterSeconds: 10 });
    const start = await world.clock.nextSecond();
    await collection.insertMany([{ _id: 1 }, { _id: 2 }]);
    await world.clock.setMs(start + 5_000);
    await collection.updateOne({ _id: 2 }, { $set: { seen: true } });
    await visibleAt(world, collection, start + 9_999, [1, 2]);
    await visibleAt(world, collection, start + 10_000, [2]);
    await visibleAt(world, collection, start + 15_000, []);
  });

  tour.check("a document has a time to live of its own", async (world) => {
    const collection = await world.collection("sessions");
    await collection.createIndex({ _ts: 1 }, { expireAfterSeconds: 10 });
    const start = await world.clock.nextSecond();
    await collection.insertMany([
      { _id: 1, ttl: new Double(20) },
      { _id: 2, ttl: new Int32(20) },
      { _id: 3, ttl: Long.fromNumber(20) },
      { _id: 4, ttl: 20.5 },
      { _id: 5, ttl: Long.fromNumber(2147483649) },
    ]);
    await visibleAt(world, collection, start + 9_999, [1, 2, 3, 4, 5]);
    await visibleAt(world, collection, start + 10_000, [1, 2, 3]);
    await visibleAt(world, collection, start + 20_000, []);
  });

  tour.check("dates end documents to the millisecond", async (world) => {
    const collection = await world.collection("dates");
    await collection.createIndex({ expireAt: 1 }, { expireAfterSeconds: 0 });
    const start = await world.clock.nextSecond();
    await collection.insertMany([{ _id: 1, expireAt: new Date(start + 1_234) }, { _id: 2, expireAt: new Date(start + 1_235) }, { _id: 3 }]);
    await visibleAt(world, collection, start + 1_233, [1, 2, 3]);
    await visibleAt(world, collection, start + 1_234, [2, 3]);
    await visibleAt(world, collection, start + 1_235, [3]);
  });

  tour.check("an expired document holds neither its id nor unique keys", async (world) => {
    const collection = await world.collection("dates");
    await collection.createIndex({ expireAt: 1 }, { expireAfterSeconds: 0 });
    await collection.createIndex({ email: 1 }, { unique: true });
    const start = await world.clock.nextSecond();
    await collection.insertOne({ _id: 1, email: "a@x", expireAt: new Date(start + 1_000) });
    await refused(11000, () => collection.insertOne({ _id: 2, email: "a@x" }));
    await world.clock.setMs(start + 1_000);
    await collection.insertOne({ _id: 2, email: "a@x" });
    await collection.insertOne({ _id: 1, email: "b@x" });
  });

  tour.check("a longer time does not bring documents back", async (world) => {
    const collection = await world.collection("dates");
    await collection.createIndex({ created: 1 }, { name: "created", expireAfterSeconds: 10 });
    const start = await world.clock.nextSecond();
    await collection.insertMany([{ _id: 1, created: new Date(start) }, { _id: 2, created: new Date(start + 5_000) }]);
    await visibleAt(world, collection, start + 10_000, [2]);
    await world.database.command({ collMod: "dates", index: { name: "created", expireAfterSeconds: 100 } });
    await visibleAt(world, collection, start + 104_999, [2]);
    await visibleAt(world, collection, start + 105_000, []);
  });
}

async function visibleAt(world, collection, instant, ids) {
  await world.clock.setMs(instant);
  equal((await collection.find({}, { sort: { _id: 1 } }).toArray()).map((one) => one._id), ids, "find");
  equal((await collection.distinct("_id")).sort(), ids, "distinct");
  equal([await collection.countDocuments(), await collection.estimatedDocumentCount()], [ids.length, ids.length], "counts");
}
