package bolide;

import static bolide.Documents.json;
import static bolide.Tour.equal;
import static bolide.Tour.refused;
import static bolide.Tour.same;

import com.mongodb.MongoException;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoChangeStreamCursor;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.model.changestream.ChangeStreamDocument;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.bson.BsonDocument;

/** Retryable writes, transactions, change streams. */
final class Transactions {
    private Transactions() {}

    static void run(Tour tour, World world) {
        tour.check("a retried write is done once", () -> {
            MongoCollection<BsonDocument> collection = world.collection("accounts", List.of(json("{_id: 1, n: 0}")));
            world.client.getDatabase("admin").runCommand(json("{configureFailPoint: 'failCommand', mode: {times: 1},"
                    + " data: {failCommands: ['update'], closeConnection: true}}"));
            collection.updateOne(json("{_id: 1}"), json("{$inc: {n: 1}}"));
            same(collection.find().first(), json("{_id: 1, n: 1}"), "document");
        });
        tour.check("a transaction is seen as a whole once it is committed", () -> {
            MongoCollection<BsonDocument> left = world.collection("left", List.of(json("{_id: 1, n: 5}")));
            MongoCollection<BsonDocument> right = world.collection("right", List.of(json("{_id: 1, n: 0}")));
            try (ClientSession session = world.client.startSession()) {
                session.startTransaction();
                left.updateOne(session, json("{_id: 1}"), json("{$inc: {n: -5}}"));
                right.updateOne(session, json("{_id: 1}"), json("{$inc: {n: 5}}"));
                same(right.find(session).first(), json("{_id: 1, n: 5}"), "inside");
                same(right.find().first(), json("{_id: 1, n: 0}"), "outside");
                session.commitTransaction();
            }
            same(left.find().first(), json("{_id: 1, n: 0}"), "left");
            same(right.find().first(), json("{_id: 1, n: 5}"), "right");
        });
        tour.check("an aborted transaction leaves nothing", () -> {
            MongoCollection<BsonDocument> collection = world.collection("accounts", List.of(json("{_id: 1}")));
            try (ClientSession session = world.client.startSession()) {
                session.startTransaction();
                collection.deleteOne(session, json("{_id: 1}"));
                collection.insertOne(session, json("{_id: 2}"));
                session.abortTransaction();
            }
            equal(collection.find().into(new ArrayList<>()), List.of(json("{_id: 1}")), "documents");
        });
        tour.check("of two transactions on one document the second conflicts", () -> {
            MongoCollection<BsonDocument> collection = world.collection("accounts", List.of(json("{_id: 1, n: 0}")));
            BsonDocument add = json("{$inc: {n: 1}}");
            try (ClientSession one = world.client.startSession(); ClientSession other = world.client.startSession()) {
                one.startTransaction();
                other.startTransaction();
                collection.updateOne(one, json("{_id: 1}"), add);
                MongoException error = refused(112, () -> collection.updateOne(other, json("{_id: 1}"), add));
                equal(error.hasErrorLabel(MongoException.TRANSIENT_TRANSACTION_ERROR_LABEL), true, "the label");
                one.commitTransaction();
            }
        });
        tour.check("a change stream shows every kind of write", () -> {
            MongoCollection<BsonDocument> collection = world.collection("watched", List.of(json("{_id: 0}")));
            try (MongoChangeStreamCursor<ChangeStreamDocument<BsonDocument>> stream =
                    collection.watch().maxAwaitTime(300, TimeUnit.MILLISECONDS).cursor()) {
                collection.insertOne(json("{_id: 1, a: 1}"));
                collection.updateOne(json("{_id: 1}"), json("{$set: {a: 2}}"));
                collection.replaceOne(json("{_id: 1}"), json("{c: 1}"));
                collection.deleteOne(json("{_id: 1}"));
                List<String> kinds = new ArrayList<>();
                taken(stream, 4).forEach(event -> kinds.add(event.getOperationType().getValue()));
                equal(kinds, List.of("insert", "update", "replace", "delete"), "kinds");
            }
        });
        tour.check("a change stream goes on after a token", () -> {
            MongoCollection<BsonDocument> collection = world.collection("watched", List.of(json("{_id: 0}")));
            BsonDocument token;
            try (MongoChangeStreamCursor<ChangeStreamDocument<BsonDocument>> stream =
                    collection.watch().maxAwaitTime(300, TimeUnit.MILLISECONDS).cursor()) {
                collection.insertMany(List.of(json("{_id: 1}"), json("{_id: 2}")));
                token = taken(stream, 1).get(0).getResumeToken();
            }
            try (MongoChangeStreamCursor<ChangeStreamDocument<BsonDocument>> next =
                    collection.watch().resumeAfter(token).maxAwaitTime(300, TimeUnit.MILLISECONDS).cursor()) {
                same(taken(next, 1).get(0).getDocumentKey(), json("{_id: 2}"), "document key");
            }
        });
    }

    private static List<ChangeStreamDocument<BsonDocument>> taken(
            MongoChangeStreamCursor<ChangeStreamDocument<BsonDocument>> stream, int count) {
        List<ChangeStreamDocument<BsonDocument>> events = new ArrayList<>();
        for (int tries = 0; tries < 20 && events.size() < count; tries++) {
            ChangeStreamDocument<BsonDocument> event = stream.tryNext();
            if (event != null) {
                events.add(event);
            }
        }
        equal(events.size(), count, "events");
        return events;
    }
}
