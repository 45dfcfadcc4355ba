package bolide;

import static bolide.Tour.equal;
import static bolide.Tour.refused;
import static bolide.Tour.same;

import com.mongodb.MongoException;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.model.FindOneAndUpdateOptions;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.InsertManyOptions;
import com.mongodb.client.model.ReplaceOptions;
import com.mongodb.client.model.ReturnDocument;
import com.mongodb.client.result.UpdateResult;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.bson.BsonDocument;
import org.bson.BsonInt32;

/** Documents and indexes: writes of one and of many, findAndModify, cursors, uniqueness. */
final class Documents {
    private Documents() {}

    static void run(Tour tour, World world) {
        tour.check("an inserted document is read back", () -> {
            MongoCollection<BsonDocument> collection = world.collection("documents", List.of());
            BsonDocument document = json("{_id: 1, a: [1, {b: null}], l: {$numberLong: '5'}}");
            collection.insertOne(document);
            equal(collection.find(json("{_id: 1}")).first(), document, "document");
        });
        tour.check("a taken id is refused", () -> {
            MongoCollection<BsonDocument> collection = world.collection("documents", List.of(json("{_id: 1}")));
            refused(11000, () -> collection.insertOne(json("{_id: 1}")));
        });
        tour.check("updates count what matched and what changed", () -> {
            MongoCollection<BsonDocument> collection = world.collection("documents", numbered(4));
            UpdateResult done = collection.updateMany(json("{a: {$lte: 1}}"), json("{$set: {a: 1}}"));
            equal(List.of(done.getMatchedCount(), done.getModifiedCount()), List.of(4L, 2L), "counts");
            UpdateResult upserted = collection.replaceOne(json("{_id: 9}"), json("{b: 1}"), new ReplaceOptions().upsert(true));
            equal(upserted.getUpsertedId(), new BsonInt32(9), "upserted");
        });
        tour.check("deletes count what they deleted", () -> {
            MongoCollection<BsonDocument> collection = world.collection("documents", numbered(4));
            equal(collection.deleteMany(json("{_id: {$gte: 1}}")).getDeletedCount(), 3L, "deleted");
        });
        tour.check("an unordered bulk does all it can", () -> {
            MongoCollection<BsonDocument> collection = world.collection("documents", List.of(json("{_id: 1}")));
            List<BsonDocument> many = Arrays.asList(json("{_id: 1}"), json("{_id: 2}"), json("{_id: 1}"), json("{_id: 3}"));
            refused(11000, () -> collection.insertMany(many, new InsertManyOptions().ordered(false)));
            equal(collection.countDocuments(), 3L, "documents");
        });
        tour.check("find and modify returns the document before or after", () -> modified(world));
        tour.check("a cursor gives every document in batches", () -> {
            MongoCollection<BsonDocument> collection = world.collection("documents", numbered(250));
            List<BsonDocument> found = collection.find().sort(json("{_id: 1}")).batchSize(40).into(new ArrayList<>());
            equal(found, numbered(250), "documents");
        });
        tour.check("indexes are created listed and dropped", () -> {
            MongoCollection<BsonDocument> collection = world.collection("indexes", List.of(json("{_id: 1}")));
            equal(collection.createIndex(json("{a: 1, 'b.c': -1}")), "a_1_b.c_-1", "name");
            equal(collection.listIndexes().into(new ArrayList<>()).size(), 2, "indexes");
            collection.dropIndex("a_1_b.c_-1");
            equal(collection.listIndexes().into(new ArrayList<>()).size(), 1, "indexes");
        });
        tour.check("a unique index refuses a second document with mongodbs text", () -> {
            MongoCollection<BsonDocument> collection = world.collection("unique", List.of());
            collection.createIndex(json("{email: 1}"), new IndexOptions().unique(true));
            collection.insertOne(json("{_id: 1, email: 'a@x'}"));
            MongoException error = refused(11000, () -> collection.insertOne(json("{_id: 2, email: 'a@x'}")));
            String namespace = world.database.getName() + ".unique";
            String text = "E11000 duplicate key error collection: " + namespace + " index: email_1 dup key: { email: \"a@x\" }";
            equal(error.getMessage().contains(text), true, "text of `" + error.getMessage() + "`");
        });
    }

    private static void modified(World world) {
        List<BsonDocument> start = List.of(json("{_id: 1, n: 1}"), json("{_id: 2, n: 5}"));
        MongoCollection<BsonDocument> collection = world.collection("documents", start);
        BsonDocument add = json("{$inc: {n: 1}}");
        FindOneAndUpdateOptions byNumber = new FindOneAndUpdateOptions().sort(json("{n: -1}"));
        same(collection.findOneAndUpdate(new BsonDocument(), add, byNumber), json("{_id: 2, n: 5}"), "before");
        FindOneAndUpdateOptions after =
                new FindOneAndUpdateOptions().returnDocument(ReturnDocument.AFTER).projection(json("{_id: 0}"));
        same(collection.findOneAndUpdate(json("{_id: 1}"), add, after), json("{n: 2}"), "after");
        same(collection.findOneAndDelete(json("{_id: 1}")), json("{_id: 1, n: 2}"), "deleted");
    }

    /** A document from Extended JSON. */
    static BsonDocument json(String text) {
        return BsonDocument.parse(text);
    }

    /** Documents with an {@code _id} from 0. */
    static List<BsonDocument> numbered(int count) {
        return IntStream.range(0, count).mapToObj(id -> json("{_id: " + id + ", a: " + id % 2 + "}")).toList();
    }
}
