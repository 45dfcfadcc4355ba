package bolide;

import static bolide.Documents.json;
import static bolide.Tour.equal;
import static bolide.Tour.refused;

import com.mongodb.client.MongoCollection;
import com.mongodb.client.model.IndexOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.bson.BsonDateTime;
import org.bson.BsonDocument;

/** Time to live: the index on {@code _ts} with the field {@code ttl}, and indexes on dates, to the millisecond. */
final class Expiry {
    private Expiry() {}

    static void run(Tour tour, World world) {
        tour.check("documents end seconds after their last change", () -> {
            MongoCollection<BsonDocument> collection = expiring(world, "sessions", "_ts", 10);
            long start = world.nextSecond();
            collection.insertMany(List.of(json("{_id: 1}"), json("{_id: 2}")));
            world.setClock(start + 5_000);
            collection.updateOne(json("{_id: 2}"), json("{$set: {seen: true}}"));
            visibleAt(world, collection, start + 9_999, 1, 2);
            visibleAt(world, collection, start + 10_000, 2);
            visibleAt(world, collection, start + 15_000);
        });
        tour.check("a document has a time to live of its own", () -> {
            MongoCollection<BsonDocument> collection = expiring(world, "sessions", "_ts", 10);
            long start = world.nextSecond();
            collection.insertMany(List.of(
                    json("{_id: 1, ttl: {$numberDouble: '20.0'}}"),
                    json("{_id: 2, ttl: {$numberInt: '20'}}"),
                    json("{_id: 3, ttl: {$numberLong: '20'}}"),
                    json("{_id: 4, ttl: 20.5}"),
                    json("{_id: 5, ttl: {$numberLong: '2147483649'}}")));
            visibleAt(world, collection, start + 9_999, 1, 2, 3, 4, 5);
            visibleAt(world, collection, start + 10_000, 1, 2, 3);
            visibleAt(world, collection, start + 20_000);
        });
        tour.check("dates end documents to the millisecond", () -> {
            MongoCollection<BsonDocument> collection = expiring(world, "dates", "expireAt", 0);
            long start = world.nextSecond();
            collection.insertMany(List.of(ending(1, start + 1_234), ending(2, start + 1_235), json("{_id: 3}")));
            visibleAt(world, collection, start + 1_233, 1, 2, 3);
            visibleAt(world, collection, start + 1_234, 2, 3);
            visibleAt(world, collection, start + 1_235, 3);
        });
        tour.check("an expired document holds neither its id nor unique keys", () -> {
            MongoCollection<BsonDocument> collection = expiring(world, "dates", "expireAt", 0);
            collection.createIndex(json("{email: 1}"), new IndexOptions().unique(true));
            long start = world.nextSecond();
            collection.insertOne(ending(1, start + 1_000).append("email", json("{v: 'a@x'}").get("v")));
            refused(11000, () -> collection.insertOne(json("{_id: 2, email: 'a@x'}")));
            world.setClock(start + 1_000);
            collection.insertOne(json("{_id: 2, email: 'a@x'}"));
            collection.insertOne(json("{_id: 1, email: 'b@x'}"));
        });
    }

    private static MongoCollection<BsonDocument> expiring(World world, String name, String field, long seconds) {
        MongoCollection<BsonDocument> collection = world.collection(name, List.of());
        collection.createIndex(json("{'" + field + "': 1}"), new IndexOptions().expireAfter(seconds, TimeUnit.SECONDS));
        return collection;
    }

    private static BsonDocument ending(int id, long instant) {
        return json("{_id: " + id + "}").append("expireAt", new BsonDateTime(instant));
    }

    private static void visibleAt(World world, MongoCollection<BsonDocument> collection, long instant, Integer... ids)
            throws Exception {
        world.setClock(instant);
        List<Integer> found = new ArrayList<>();
        collection.find().sort(json("{_id: 1}")).forEach(document -> found.add(document.getInt32("_id").getValue()));
        equal(found, List.of(ids), "find");
        equal(collection.countDocuments(), (long) ids.length, "countDocuments");
        equal(collection.estimatedDocumentCount(), (long) ids.length, "estimatedDocumentCount");
    }
}
