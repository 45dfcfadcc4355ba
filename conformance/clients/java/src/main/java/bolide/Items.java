package bolide;

import static bolide.Tour.equal;
import static bolide.Tour.equalInAnyOrder;
import static bolide.Tour.refused;
import static bolide.World.add;
import static bolide.World.item;
import static bolide.World.read;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchResponse;
import com.azure.cosmos.models.CosmosBulkOperationResponse;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/** Items: writes, reads, conditions, patches, batches, bulk, reading many at once, the change feed. */
final class Items {
    private static final PartitionKey P = new PartitionKey("p");

    private Items() {}

    static void declare(Tour tour) {
        tour.check("created item is read back with its system properties", Items::createdItemIsReadBack);
        tour.check("second item of the same id is refused with 409", Items::secondItemIsRefused);
        tour.check("upsert creates with 201 and then replaces with 200", Items::upsertCreatesThenReplaces);
        tour.check("stale etag is refused with 412 and changes nothing", Items::staleEtagIsRefused);
        tour.check("patch applies every operation in order, if its condition holds", Items::patchApplies);
        tour.check("deleted item is 404 and its id is free", Items::deletedItemIsGone);
        tour.check("unusual ids and partition keys are kept exactly", Items::unusualIdsAreKept);
        tour.check("batch writes everything", Items::batchWritesEverything);
        tour.check("batch with a failing operation writes nothing", Items::failingBatchWritesNothing);
        tour.check("bulk writes over five ranges answer each operation", Items::bulkAnswersEach);
        tour.check("several items are read at once over five ranges", Items::manyAreRead);
        tour.check("all items of a partition are read", Items::partitionIsRead);
        tour.check("change feed shows the latest version of every item of five ranges", Items::changeFeedShowsLatest);
        tour.check("malformed query is refused with 400", world ->
                refused(400, unused -> World.rows(world.container("malformed"), "SELEKT *", null)));
    }

    private static void createdItemIsReadBack(World world) {
        CosmosContainer container = world.container("items");
        ObjectNode body = item("{'id':'a','pk':'p','text':'grüße','whole':7,'part':0.5,'none':null,'nested':{'list':[1,'x']}}");
        ObjectNode created = add(container, body);
        ObjectNode found = read(container, "p", "a");
        equal(found, created, "read item");
        for (String name : List.of("_rid", "_self", "_etag", "_ts")) {
            equal(found.has(name), true, "has " + name);
        }
        equal(userPart(found), body, "user properties");
    }

    private static void secondItemIsRefused(World world) throws Exception {
        CosmosContainer container = world.container("items");
        add(container, item("{'id':'a','pk':'p'}"));
        refused(409, unused -> add(container, item("{'id':'a','pk':'p'}")));
        add(container, item("{'id':'a','pk':'another partition'}"));
    }

    private static void upsertCreatesThenReplaces(World world) {
        CosmosContainer container = world.container("items");
        equal(container.upsertItem(item("{'id':'a','pk':'p','v':1}")).getStatusCode(), 201, "first status");
        equal(container.upsertItem(item("{'id':'a','pk':'p','v':2}")).getStatusCode(), 200, "second status");
        equal(read(container, "p", "a").get("v"), 2, "v");
    }

    private static void staleEtagIsRefused(World world) throws Exception {
        CosmosContainer container = world.container("items");
        String stale = add(container, item("{'id':'a','pk':'p','v':1}")).get("_etag").asText();
        CosmosItemRequestOptions when = new CosmosItemRequestOptions().setIfMatchETag(stale);
        ObjectNode third = item("{'id':'a','pk':'p','v':3}");
        container.replaceItem(item("{'id':'a','pk':'p','v':2}"), "a", P, when);
        refused(412, unused -> container.replaceItem(third, "a", P, when));
        refused(412, unused -> container.upsertItem(third, P, when));
        refused(412, unused -> container.deleteItem("a", P, when));
        equal(read(container, "p", "a").get("v"), 2, "v");
    }

    private static void patchApplies(World world) throws Exception {
        CosmosContainer container = world.container("items");
        add(container, item("{'id':'a','pk':'p','keep':1,'gone':1,'n':3,'list':['x'],'from':'here'}"));
        CosmosPatchOperations patch = CosmosPatchOperations.create()
                .add("/list/-", "y")
                .set("/fresh", item("{'deep':true}"))
                .replace("/keep", 2)
                .remove("/gone")
                .increment("/n", 4)
                .move("/from", "/to");
        CosmosPatchItemRequestOptions when = new CosmosPatchItemRequestOptions().setFilterPredicate("FROM c WHERE c.n = 3");
        ObjectNode patched = container.patchItem("a", P, patch, when, ObjectNode.class).getItem();
        equal(
                userPart(patched),
                item("{'id':'a','pk':'p','keep':2,'n':7,'list':['x','y'],'fresh':{'deep':true},'to':'here'}"),
                "patched item");
        refused(412, unused -> container.patchItem("a", P, patch, when, ObjectNode.class));
    }

    private static void deletedItemIsGone(World world) throws Exception {
        CosmosContainer container = world.container("items");
        add(container, item("{'id':'a','pk':'p'}"));
        equal(container.deleteItem("a", P, null).getStatusCode(), 204, "status");
        refused(404, unused -> read(container, "p", "a"));
        refused(404, unused -> container.deleteItem("a", P, null));
        add(container, item("{'id':'a','pk':'p'}"));
    }

    private static void unusualIdsAreKept(World world) throws Exception {
        CosmosContainer container = world.container("unusual ids");
        for (String id : List.of("two words", "naïve-日本-🎉", "per%20cent", "plus+equals=", "a;b,c:d&e")) {
            ObjectNode body = World.JSON.createObjectNode().put("id", id).put("pk", id);
            add(container, body);
            equal(read(container, id, id).get("id"), id, "id");
            container.deleteItem(id, new PartitionKey(id), null);
            refused(404, unused -> read(container, id, id));
        }
    }

    private static void batchWritesEverything(World world) {
        CosmosContainer container = world.container("batch");
        for (String id : List.of("replaced", "deleted", "patched")) {
            add(container, item("{'id':'" + id + "','pk':'p','v':1}"));
        }
        CosmosBatch batch = CosmosBatch.createCosmosBatch(P);
        batch.createItemOperation(item("{'id':'created','pk':'p','v':2}"));
        batch.upsertItemOperation(item("{'id':'upserted','pk':'p','v':2}"));
        batch.replaceItemOperation("replaced", item("{'id':'replaced','pk':'p','v':2}"));
        batch.patchItemOperation("patched", CosmosPatchOperations.create().set("/v", 2));
        batch.deleteItemOperation("deleted");
        batch.readItemOperation("created");
        CosmosBatchResponse answer = container.executeCosmosBatch(batch);
        equal(answer.isSuccessStatusCode(), true, "success");
        equal(statuses(answer), List.of(201, 201, 200, 200, 204, 200), "statuses");
        equalInAnyOrder(
                World.rows(container, "SELECT VALUE c.id FROM c WHERE c.v = 2", P),
                World.texts("created", "patched", "replaced", "upserted"),
                "items after the batch");
    }

    private static void failingBatchWritesNothing(World world) throws Exception {
        CosmosContainer container = world.container("batch");
        CosmosBatch batch = CosmosBatch.createCosmosBatch(P);
        batch.createItemOperation(item("{'id':'a','pk':'p'}"));
        batch.replaceItemOperation("missing", item("{'id':'missing','pk':'p'}"));
        batch.createItemOperation(item("{'id':'b','pk':'p'}"));
        CosmosBatchResponse answer = container.executeCosmosBatch(batch);
        equal(answer.isSuccessStatusCode(), false, "success");
        equal(statuses(answer), List.of(424, 404, 424), "statuses");
        refused(404, unused -> read(container, "p", "a"));
    }

    private static void bulkAnswersEach(World world) {
        CosmosContainer container = wide(world, "bulk");
        add(container, item("{'id':'i03','pk':'p3'}"));
        List<CosmosItemOperation> operations = new ArrayList<>();
        for (int n = 0; n < 20; n++) {
            operations.add(CosmosBulkOperations.getCreateItemOperation(numbered(n), new PartitionKey("p" + n)));
        }
        int conflicts = 0;
        int created = 0;
        for (CosmosBulkOperationResponse<Object> answer : container.executeBulkOperations(operations)) {
            int status = answer.getResponse().getStatusCode();
            conflicts += status == 409 ? 1 : 0;
            created += status == 201 ? 1 : 0;
        }
        equal(List.of(created, conflicts), List.of(19, 1), "created and refused");
        equal(World.rows(container, "SELECT VALUE c.id FROM c", null).size(), 20, "items");
    }

    private static void manyAreRead(World world) {
        CosmosContainer container = wide(world, "many");
        List<CosmosItemIdentity> wanted = new ArrayList<>(List.of(new CosmosItemIdentity(P, "missing")));
        for (int n = 0; n < 20; n++) {
            add(container, numbered(n));
            wanted.add(new CosmosItemIdentity(new PartitionKey("p" + n), numbered(n).get("id").asText()));
        }
        FeedResponse<ObjectNode> answer = container.readMany(wanted, ObjectNode.class);
        equalInAnyOrder(World.ids(answer.getResults()), allIds(), "ids");
    }

    private static void partitionIsRead(World world) {
        CosmosContainer container = wide(world, "partition");
        for (String id : List.of("a", "b", "c")) {
            add(container, item("{'id':'" + id + "','pk':'p'}"));
            add(container, item("{'id':'" + id + "','pk':'q'}"));
        }
        equalInAnyOrder(World.ids(container.readAllItems(P, ObjectNode.class)), World.texts("a", "b", "c"), "ids");
    }

    private static void changeFeedShowsLatest(World world) {
        CosmosContainer container = wide(world, "feed");
        for (int n = 0; n < 20; n++) {
            add(container, numbered(n));
        }
        container.upsertItem(numbered(7).put("v", 2));
        CosmosChangeFeedRequestOptions options =
                CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(FeedRange.forFullRange()).setMaxItemCount(3);
        List<JsonNode> changes = new ArrayList<>();
        for (FeedResponse<JsonNode> page : container.queryChangeFeed(options, JsonNode.class).iterableByPage()) {
            changes.addAll(page.getResults());
        }
        equalInAnyOrder(World.ids(changes), allIds(), "ids of the changes");
        equal(changes.stream().filter(change -> change.has("v")).count(), 1, "changed versions");
    }

    private static CosmosContainer wide(World world, String label) {
        return world.create(new CosmosContainerProperties(World.unique(label), "/pk"), true);
    }

    private static ObjectNode numbered(int n) {
        return World.JSON.createObjectNode().put("id", "i%02d".formatted(n)).put("pk", "p" + n);
    }

    private static List<JsonNode> allIds() {
        return IntStream.range(0, 20).mapToObj(n -> numbered(n).get("id")).toList();
    }

    private static List<Integer> statuses(CosmosBatchResponse answer) {
        return answer.getResults().stream().map(result -> result.getStatusCode()).toList();
    }

    /** Removes the system properties. */
    private static ObjectNode userPart(ObjectNode item) {
        return item.deepCopy().remove(List.of("_rid", "_self", "_etag", "_ts", "_attachments"));
    }
}
