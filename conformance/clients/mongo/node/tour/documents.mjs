/** Documents: single writes, bulk writes, findAndModify, cursors. */
import { equal, holds, refused } from "../checks.mjs";

export function declareDocuments(tour) {
  const numbered = (count) => Array.from({ length: count }, (_, _id) => ({ _id }));

  tour.check("an inserted document is read back", async (world) => {
    const collection = await world.collection("documents");
    equal((await collection.insertOne({ _id: 1, a: [1, { b: null }] })).insertedId, 1);
    equal(await collection.findOne({ _id: 1 }), { _id: 1, a: [1, { b: null }] });
  });

  tour.check("a taken id is refused", async (world) => {
    const collection = await world.collection("documents", [{ _id: 1 }]);
    const error = await refused(11000, () => collection.insertOne({ _id: 1 }));
    equal(error.keyValue ?? error.errorResponse?.keyValue, { _id: 1 });
  });

  tour.check("updates count what matched and what changed", async (world) => {
    const collection = await world.collection("documents", numbered(4).map(({ _id }) => ({ _id, a: _id % 2 })));
    const done = await collection.updateMany({ a: { $lte: 1 } }, { $set: { a: 1 } });
    equal([done.matchedCount, done.modifiedCount], [4, 2]);
    const upserted = await collection.replaceOne({ _id: 9 }, { b: 1 }, { upsert: true });
    equal([upserted.matchedCount, upserted.upsertedId], [0, 9]);
  });

  tour.check("deletes count what they deleted", async (world) => {
    const collection = await world.collection("documents", numbered(4));
    equal((await collection.deleteOne({})).deletedCount, 1);
    equal((await collection.deleteMany({ _id: { $gte: 2 } })).deletedCount, 2);
  });

  tour.check("an unordered bulk does all it can", async (world) => {
    const collection = await world.collection("documents", [{ _id: 1 }]);
    const error = await refused(11000, () => collection.insertMany([{ _id: 1 }, { _id: 2 }, { _id: 1 }, { _id: 3 }], { ordered: false }));
    equal([error.result.insertedCount, error.writeErrors.map((one) => one.index)], [2, [0, 2]]);
  });

  tour.check("a bulk of every kind counts each", async (world) => {
    const collection = await world.collection("documents", numbered(3));
    const done = await collection.bulkWrite([
      { insertOne: { document: { _id: 3 } } },
      { updateOne: { filter: { _id: 0 }, update: { $set: { a: 1 } } } },
      { updateMany: { filter: { _id: { $gte: 1 } }, update: { $set: { b: 1 } } } },
      { replaceOne: { filter: { _id: 9 }, replacement: { c: 1 }, upsert: true } },
      { deleteOne: { filter: { _id: 2 } } },
    ]);
    equal([done.insertedCount, done.matchedCount, done.modifiedCount, done.deletedCount, done.upsertedIds], [1, 4, 4, 1, { 3: 9 }]);
  });

  tour.check("find and modify returns the document before or after", async (world) => {
    const collection = await world.collection("documents", [{ _id: 1, n: 1 }, { _id: 2, n: 5 }]);
    equal(await collection.findOneAndUpdate({}, { $inc: { n: 1 } }, { sort: { n: -1 } }), { _id: 2, n: 5 });
    const after = await collection.findOneAndUpdate({ _id: 1 }, { $inc: { n: 1 } }, { returnDocument: "after", projection: { _id: 0 } });
    equal(after, { n: 2 });
    equal(await collection.findOneAndDelete({ _id: 1 }), { _id: 1, n: 2 });
  });

  tour.check("a cursor gives every document in batches", async (world) => {
    const collection = await world.collection("documents", numbered(250));
    const found = await collection.find({}, { batchSize: 40, sort: { _id: 1 } }).toArray();
    equal(found.map((one) => one._id), numbered(250).map((one) => one._id));
  });

  tour.check("counts and distinct values", async (world) => {
    const collection = await world.collection("documents", numbered(6).map(({ _id }) => ({ _id, a: [_id % 3, 9] })));
    equal([await collection.estimatedDocumentCount(), await collection.countDocuments({ a: 1 })], [6, 2]);
    equal((await collection.distinct("a")).sort(), [0, 1, 2, 9]);
  });

  tour.check("unacknowledged writes arrive", async (world) => {
    const collection = await world.collection("documents");
    const done = await collection.insertOne({ _id: 1 }, { writeConcern: { w: 0 } });
    holds(!done.acknowledged, "the write was acknowledged");
    for (let tries = 0; tries < 200; tries += 1) {
      if (await collection.findOne({ _id: 1 })) return;
    }
    throw new Error("the write did not arrive");
  });
}
