/** Sessions, retryable writes, transactions, change streams. */
import { equal, holds, refused } from "../checks.mjs";

export function declareTransactions(tour) {
  tour.check("a retried write is done once", async (world) => {
    const collection = await world.collection("accounts", [{ _id: 1, n: 0 }]);
    const admin = world.client.db("admin");
    const data = { failCommands: ["update"], closeConnection: true };
    await admin.command({ configureFailPoint: "failCommand", mode: { times: 1 }, data });
    await collection.updateOne({ _id: 1 }, { $inc: { n: 1 } });
    equal(await collection.findOne(), { _id: 1, n: 1 });
  });

  tour.check("a transaction is seen as a whole once it is committed", async (world) => {
    const left = await world.collection("left", [{ _id: 1, n: 5 }]);
    const right = await world.collection("right", [{ _id: 1, n: 0 }]);
    await world.client.withSession(async (session) => {
      session.startTransaction();
      await left.updateOne({ _id: 1 }, { $inc: { n: -5 } }, { session });
      await right.updateOne({ _id: 1 }, { $inc: { n: 5 } }, { session });
      equal([(await right.findOne({}, { session })).n, (await right.findOne()).n], [5, 0], "inside and outside");
      await session.commitTransaction();
    });
    equal([(await left.findOne()).n, (await right.findOne()).n], [0, 5]);
  });

  tour.check("an aborted transaction leaves nothing", async (world) => {
    const collection = await world.collection("accounts", [{ _id: 1 }]);
    await world.client.withSession(async (session) => {
      session.startTransaction();
      await collection.deleteOne({ _id: 1 }, { session });
      await collection.insertOne({ _id: 2 }, { session });
      await session.abortTransaction();
    });
    equal(await collection.find().toArray(), [{ _id: 1 }]);
  });

  tour.check("of two transactions on one document the second conflicts", async (world) => {
    const collection = await world.collection("accounts", [{ _id: 1, n: 0 }]);
    const [one, other] = [world.client.startSession(), world.client.startSession()];
    one.startTransaction();
    other.startTransaction();
    await collection.updateOne({ _id: 1 }, { $inc: { n: 1 } }, { session: one });
    const error = await refused(112, () => collection.updateOne({ _id: 1 }, { $inc: { n: 1 } }, { session: other }));
    holds(error.hasErrorLabel("TransientTransactionError"), "the error has no label");
    await one.commitTransaction();
    await other.endSession();
    await one.endSession();
  });

  tour.check("with transaction repeats what conflicts", async (world) => {
    const collection = await world.collection("accounts", [{ _id: 1, n: 0 }]);
    let attempts = 0;
    await world.client.withSession((session) =>
      session.withTransaction(async () => {
        attempts += 1;
        await collection.findOne({}, { session });
        if (attempts === 1) await collection.updateOne({ _id: 1 }, { $inc: { n: 10 } });
        await collection.updateOne({ _id: 1 }, { $inc: { n: 1 } }, { session });
      }));
    equal([(await collection.findOne()).n, attempts], [11, 2]);
  });

  tour.check("a change stream shows every kind of write", async (world) => {
    const collection = await world.collection("watched", [{ _id: 0 }]);
    const stream = collection.watch([], { maxAwaitTimeMS: 300 });
    await stream.tryNext();
    await collection.insertOne({ _id: 1, a: 1 });
    await collection.updateOne({ _id: 1 }, { $set: { a: 2 } });
    await collection.replaceOne({ _id: 1 }, { c: 1 });
    await collection.deleteOne({ _id: 1 });
    const events = await taken(stream, 4);
    await stream.close();
    equal(events.map((event) => event.operationType), ["insert", "update", "replace", "delete"]);
    equal(events[1].updateDescription.updatedFields, { a: 2 });
  });

  tour.check("a change stream goes on after a token", async (world) => {
    const collection = await world.collection("watched", [{ _id: 0 }]);
    const stream = collection.watch([], { maxAwaitTimeMS: 300 });
    await stream.tryNext();
    await collection.insertMany([{ _id: 1 }, { _id: 2 }]);
    const [{ _id: resumeAfter }] = await taken(stream, 1);
    await stream.close();
    const next = collection.watch([], { maxAwaitTimeMS: 300, resumeAfter });
    equal((await taken(next, 1))[0].documentKey, { _id: 2 });
    await next.close();
  });
}

async function taken(stream, count) {
  const events = [];
  for (let tries = 0; tries < 20 && events.length < count; tries += 1) {
    const event = await stream.tryNext();
    if (event) events.push(event);
  }
  equal(events.length, count, "events");
  return events;
}
