package bolide;

import static bolide.Tour.refused;
import static bolide.Tour.same;

import com.mongodb.client.AggregateIterable;
import com.mongodb.client.FindIterable;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.model.Collation;
import com.mongodb.client.model.CollationStrength;
import com.mongodb.client.model.UpdateOptions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.bson.BsonArray;
import org.bson.BsonDocument;
import org.bson.BsonInt32;
import org.bson.BsonValue;

/** Queries, updates, pipelines and expressions from the tables that the tours of all languages share. */
final class Tables {
    private static final BsonDocument BY_ID = new BsonDocument("_id", new BsonInt32(1));

    private Tables() {}

    /** What a row claims. */
    private interface Claim {
        void hold(World world, BsonDocument row) throws Exception;
    }

    static void run(Tour tour, World world) throws Exception {
        BsonDocument queries = world.table("queries");
        BsonDocument updates = world.table("updates");
        BsonDocument pipelines = world.table("pipelines");
        BsonDocument expressions = world.table("expressions");
        tour.check("the tables are stored", () -> {
            world.collection("queries", documents(queries, "documents"));
            world.collection("orders", documents(pipelines, "documents"));
            world.collection("others", documents(pipelines, "others"));
            world.collection("expressions", List.of(expressions.getDocument("document")));
        });
        rows(tour, world, "find: ", documents(queries, "cases"), Tables::find);
        rows(tour, world, "update: ", documents(updates, "cases"), Tables::update);
        rows(tour, world, "update refused: ", documents(updates, "refusals"), Tables::updateRefused);
        rows(tour, world, "aggregate: ", documents(pipelines, "cases"), Tables::aggregate);
        rows(tour, world, "aggregate refused: ", documents(pipelines, "refusals"), (place, row) ->
                refused(whole(row, "code"), () -> all(place.existing("orders").aggregate(documents(row, "pipeline")))));
        expressions(tour, world, expressions.getArray("cases"));
    }

    private static void rows(Tour tour, World world, String prefix, List<BsonDocument> rows, Claim claim) {
        for (BsonDocument row : rows) {
            tour.check(prefix + row.getString("name").getValue(), () -> claim.hold(world, row));
        }
    }

    private static void find(World world, BsonDocument row) {
        FindIterable<BsonDocument> found = world.existing("queries").find(row.getDocument("filter"));
        found.sort(row.containsKey("sort") ? row.getDocument("sort") : BY_ID);
        if (row.containsKey("projection")) {
            found.projection(row.getDocument("projection"));
        }
        found.skip(whole(row, "skip")).limit(whole(row, "limit"));
        if (row.containsKey("collation")) {
            BsonDocument collation = row.getDocument("collation");
            CollationStrength strength = CollationStrength.fromInt(whole(collation, "strength"));
            found.collation(Collation.builder().locale(collation.getString("locale").getValue()).collationStrength(strength).build());
        }
        BsonArray documents = all(found);
        if (row.containsKey("ids")) {
            BsonArray ids = new BsonArray();
            documents.forEach(document -> ids.add(document.asDocument().get("_id")));
            same(ids, row.getArray("ids"), "ids");
        } else {
            same(documents, row.getArray("documents"), "documents");
        }
    }

    private static MongoCollection<BsonDocument> start(World world, BsonDocument row) {
        List<BsonDocument> documents = row.containsKey("document") ? List.of(row.getDocument("document")) : List.of();
        return world.collection("updates", documents);
    }

    private static void change(MongoCollection<BsonDocument> collection, BsonDocument row) {
        BsonDocument filter = row.containsKey("filter") ? row.getDocument("filter") : BY_ID;
        UpdateOptions options = new UpdateOptions().upsert(row.containsKey("upsert"));
        if (row.containsKey("arrayFilters")) {
            options.arrayFilters(documents(row, "arrayFilters"));
        }
        if (row.isArray("update")) {
            collection.updateOne(filter, documents(row, "update"), options);
        } else {
            collection.updateOne(filter, row.getDocument("update"), options);
        }
    }

    private static void update(World world, BsonDocument row) {
        MongoCollection<BsonDocument> collection = start(world, row);
        change(collection, row);
        same(all(collection.find()), new BsonArray(List.of(row.getDocument("after"))), "documents");
    }

    private static void updateRefused(World world, BsonDocument row) throws Exception {
        MongoCollection<BsonDocument> collection = start(world, row);
        refused(whole(row, "code"), () -> change(collection, row));
        same(all(collection.find()), new BsonArray(List.of(row.getDocument("document"))), "documents");
    }

    private static void aggregate(World world, BsonDocument row) {
        List<BsonDocument> pipeline = documents(row, "pipeline");
        boolean writes = row.containsKey("written");
        if (writes) {
            world.collection("written", documents(row, "before"));
        }
        AggregateIterable<BsonDocument> found;
        if (row.isString("database")) {
            found = world.client.getDatabase(row.getString("database").getValue()).aggregate(pipeline, BsonDocument.class);
        } else if (row.containsKey("database")) {
            found = world.database.aggregate(pipeline, BsonDocument.class);
        } else {
            found = world.existing("orders").aggregate(pipeline);
        }
        if (!writes) {
            same(all(found), row.getArray("documents"), "documents");
            return;
        }
        // To read it would give the collection that was written.
        found.toCollection();
        same(all(world.existing("written").find().sort(BY_ID)), row.getArray("written"), "the written collection");
    }

    private static void expressions(Tour tour, World world, BsonArray rows) {
        Map<String, Integer> seen = new HashMap<>();
        for (BsonValue one : rows) {
            BsonArray row = one.asArray();
            String name = row.get(0).asString().getValue();
            int times = seen.merge(name, 1, Integer::sum);
            String label = "expression: " + name + (times > 1 ? ", case " + times : "");
            tour.check(label, () -> {
                BsonDocument fields = new BsonDocument("_id", new BsonInt32(0)).append("v", row.get(1));
                BsonArray found = all(world.existing("expressions").aggregate(List.of(new BsonDocument("$project", fields))));
                same(found, new BsonArray(List.of(new BsonDocument("v", row.get(2)))), "value");
            });
        }
    }

    private static BsonArray all(Iterable<BsonDocument> found) {
        BsonArray documents = new BsonArray();
        found.forEach(documents::add);
        return documents;
    }

    private static List<BsonDocument> documents(BsonDocument table, String member) {
        List<BsonDocument> documents = new ArrayList<>();
        if (table.containsKey(member)) {
            table.getArray(member).forEach(one -> documents.add(one.asDocument()));
        }
        return documents;
    }

    private static int whole(BsonDocument row, String member) {
        return row.containsKey(member) ? row.getNumber(member).intValue() : 0;
    }
}
