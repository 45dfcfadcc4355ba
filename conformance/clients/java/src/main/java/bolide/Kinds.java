package bolide;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CompositePath;
import com.azure.cosmos.models.CompositePathSortOrder;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.IncludedPath;
import com.azure.cosmos.models.IndexingPolicy;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.PartitionKind;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;

/** Queries of every kind: each one on one range and on five, in pages of one, of three and of any size. */
final class Kinds {
    private static final List<Integer> PAGE_SIZES = Arrays.asList(1, 3, null);

    private Kinds() {}

    static void declare(Tour tour, Path file) throws IOException {
        JsonNode kinds = World.JSON.readTree(file.toFile());
        for (boolean wide : new boolean[] {false, true}) {
            String place = wide ? "five ranges" : "one range";
            Map<String, CosmosContainer> stores = new HashMap<>();
            tour.check("items for queries of every kind are stored on " + place, world ->
                    kinds.get("containers").fields().forEachRemaining(entry ->
                            stores.put(entry.getKey(), store(world, entry.getKey(), entry.getValue(), wide))));
            for (JsonNode kind : kinds.get("queries")) {
                String name = "query " + kind.get("name").asText() + ", " + place;
                tour.check(name, world -> rowsAreAsExpected(stores.get(kind.get("container").asText()), kind));
            }
        }
    }

    /** Creates a container of the file with its items. */
    private static CosmosContainer store(World world, String label, JsonNode shape, boolean wide) {
        List<String> paths = texts(shape.get("paths"));
        PartitionKeyDefinition key = new PartitionKeyDefinition()
                .setPaths(paths)
                .setKind(paths.size() == 1 ? PartitionKind.HASH : PartitionKind.MULTI_HASH)
                .setVersion(PartitionKeyDefinitionVersion.V2);
        List<List<CompositePath>> composites = new ArrayList<>();
        for (JsonNode index : shape.get("compositeIndexes")) {
            List<CompositePath> composite = new ArrayList<>();
            index.forEach(path -> composite.add(compositePath(path)));
            composites.add(composite);
        }
        IndexingPolicy policy = new IndexingPolicy()
                .setIncludedPaths(List.of(new IncludedPath("/*")))
                .setCompositeIndexes(composites);
        CosmosContainerProperties properties =
                new CosmosContainerProperties(World.unique(label), key).setIndexingPolicy(policy);
        CosmosContainer container = world.create(properties, wide);
        for (JsonNode item : shape.get("items")) {
            List<String> levels = paths.stream().map(path -> item.at(path).asText()).toList();
            container.createItem(item, World.keyOf(levels), null);
        }
        return container;
    }

    private static CompositePath compositePath(JsonNode path) {
        boolean ascending = path.get("order").asText().equals("ascending");
        return new CompositePath()
                .setPath(path.get("path").asText())
                .setOrder(ascending ? CompositePathSortOrder.ASCENDING : CompositePathSortOrder.DESCENDING);
    }

    private static void rowsAreAsExpected(CosmosContainer container, JsonNode kind) {
        PartitionKey key = kind.has("key") ? World.keyOf(texts(kind.get("key"))) : null;
        for (Integer size : PAGE_SIZES) {
            List<JsonNode> found = World.rows(container, kind.get("text").asText(), kind.path("parameters"), key, size);
            compare(found, kind, "rows in pages of " + size);
        }
    }

    /** Expects the rows in their order, or in any, or any {@code take} of them. */
    private static void compare(List<JsonNode> found, JsonNode kind, String what) {
        List<JsonNode> expected = new ArrayList<>();
        kind.get("rows").forEach(expected::add);
        if (kind.has("take")) {
            int take = kind.get("take").asInt();
            Tour.equal(List.of(found.size(), new HashSet<>(found).size()), List.of(take, take), what + ", rows " + found);
            found.forEach(row -> Tour.equal(Tour.removeOne(expected, row), true, what + ", row " + row));
        } else if (kind.path("ordered").asBoolean()) {
            Tour.equal(found, expected, what);
        } else {
            Tour.equalInAnyOrder(found, expected, what);
        }
    }

    private static List<String> texts(JsonNode list) {
        List<String> texts = new ArrayList<>();
        list.forEach(text -> texts.add(text.asText()));
        return texts;
    }
}
