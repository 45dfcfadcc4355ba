/** Models of Mongoose: schemas, validation, indexes, populated references, sessions that expire. */
import mongoose from "mongoose";

import { equal, holds } from "../checks.mjs";

export function declareModels(tour) {
  /** Runs a check with a connection to a database of its own. */
  const connected = (body) => async (world) => {
    const dbName = `${world.database.databaseName}-models`;
    const connection = await mongoose.createConnection(world.uri.href, { dbName, autoIndex: false }).asPromise();
    try {
      await body(connection, world);
      await connection.dropDatabase();
    } finally {
      await connection.close();
    }
  };

  tour.check("models of mongoose are stored found and populated", connected(async (connection) => {
    const Author = connection.model("Author", new mongoose.Schema({ name: { type: String, required: true } }));
    const Book = connection.model(
      "Book",
      new mongoose.Schema({ title: { type: String, unique: true }, tags: [String], author: { type: mongoose.Types.ObjectId, ref: "Author" } }, { timestamps: true }),
    );
    await Book.createIndexes();
    const author = await Author.create({ name: "Ada" });
    await Book.create({ title: "Notes", tags: ["a", "b"], author });
    const found = await Book.findOne({ tags: "b" }).populate("author").exec();
    equal([found.title, found.author.name], ["Notes", "Ada"]);
    holds(found.createdAt instanceof Date, "there is no time of creation");
    equal(await Book.create({ title: "Notes" }).then(() => "stored", (error) => error.code), 11000);
    equal(await Author.create({}).then(() => "stored", (error) => error.name), "ValidationError");
    found.tags.push("c");
    found.tags.pull("a");
    await found.save();
    equal((await Book.findById(found._id).lean()).tags, ["b", "c"]);
    equal((await Book.aggregate().unwind("tags").sortByCount("tags")).length, 2);
  }));

  tour.check("a session of mongoose expires on time", connected(async (connection, world) => {
    const Session = connection.model("Session", new mongoose.Schema({ _id: Number, at: { type: Date, expires: 60 } }));
    await Session.createIndexes();
    const start = await world.clock.nextSecond();
    await Session.create({ _id: 1, at: new Date(start) });
    await world.clock.setMs(start + 59_999);
    equal(await Session.countDocuments(), 1);
    await world.clock.setMs(start + 60_000);
    equal(await Session.countDocuments(), 0);
  }));

  tour.check("a transaction of mongoose is a whole", connected(async (connection) => {
    const Item = connection.model("Item", new mongoose.Schema({ n: Number }));
    await Item.createCollection();
    const outcome = await connection
      .transaction(async (session) => {
        await Item.create([{ n: 1 }], { session });
        throw new Error("changed my mind");
      })
      .then(() => "committed", (error) => error.message);
    equal([outcome, await Item.countDocuments()], ["changed my mind", 0]);
  }));
}
