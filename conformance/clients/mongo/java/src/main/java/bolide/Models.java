package bolide;

import static bolide.Tour.equal;
import static org.springframework.data.mongodb.core.query.Criteria.where;
import static org.springframework.data.mongodb.core.query.Query.query;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.springframework.dao.DuplicateKeyException;
import org.springframework.data.annotation.Id;
import org.springframework.data.domain.Sort;
import org.springframework.data.mongodb.core.MongoTemplate;
import org.springframework.data.mongodb.core.SimpleMongoClientDatabaseFactory;
import org.springframework.data.mongodb.core.aggregation.Aggregation;
import org.springframework.data.mongodb.core.index.Index;
import org.springframework.data.mongodb.core.mapping.Document;
import org.springframework.data.mongodb.core.query.Update;

/** Objects of Spring Data: stored, found, changed, counted, and gone on time. */
final class Models {
    private Models() {}

    /** A book. */
    @Document("books")
    record Book(@Id String id, String title, List<String> tags, int pages) {}

    /** A visit that ends. */
    @Document("visits")
    record Visit(@Id String id, Instant at) {}

    static void run(Tour tour, World world) {
        tour.check("objects of spring data are stored found and changed", () -> {
            MongoTemplate template = template(world);
            template.indexOps(Book.class).ensureIndex(new Index().on("title", Sort.Direction.ASC).unique());
            template.insertAll(List.of(
                    new Book("1", "Notes", List.of("a", "b"), 10), new Book("2", "Tables", List.of("b"), 30)));
            try {
                template.insert(new Book("3", "Notes", List.of(), 1));
                throw new AssertionError("a second book of one title");
            } catch (DuplicateKeyException expected) {
                // This is what applications catch.
            }
            equal(template.find(query(where("tags").is("b").and("pages").gt(10)), Book.class).get(0).title(), "Tables", "title");
            template.updateFirst(query(where("title").is("Notes")), new Update().push("tags", "c").inc("pages", 5), Book.class);
            equal(template.findById("1", Book.class), new Book("1", "Notes", List.of("a", "b", "c"), 15), "book");
            Aggregation total = Aggregation.newAggregation(Aggregation.group().sum("pages").as("n"));
            equal(template.aggregate(total, Book.class, org.bson.Document.class).getUniqueMappedResult().get("n"), 45, "pages");
            equal(template.count(query(where("title").regex("^t", "i")), Book.class), 1L, "count");
            template.dropCollection(Book.class);
        });
        tour.check("an object of spring data expires on time", () -> {
            MongoTemplate template = template(world);
            template.indexOps(Visit.class).ensureIndex(new Index().on("at", Sort.Direction.ASC).expire(Duration.ofSeconds(60)));
            long start = world.nextSecond();
            template.insert(new Visit("1", Instant.ofEpochMilli(start)));
            world.setClock(start + 59_999);
            equal(template.findAll(Visit.class).size(), 1, "visits before the end");
            world.setClock(start + 60_000);
            equal(template.findAll(Visit.class).size(), 0, "visits at the end");
            template.dropCollection(Visit.class);
        });
    }

    private static MongoTemplate template(World world) {
        return new MongoTemplate(new SimpleMongoClientDatabaseFactory(world.client, world.database.getName() + "-models"));
    }
}
