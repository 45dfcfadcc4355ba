package bolide;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyBuilder;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.util.CosmosPagedIterable;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

/** The shared state of the checks: a client in gateway mode, a database, the clock. */
final class World implements AutoCloseable {
    static final ObjectMapper JSON = new ObjectMapper();

    /** Enough for five partition key ranges; the default of 400 gives one. */
    static final int FIVE_RANGES = 30000;

    final String endpoint;
    final CosmosClient client;
    final CosmosDatabase database;
    private final String key;
    private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    private World(String endpoint, String key, CosmosClient client, CosmosDatabase database) {
        this.endpoint = endpoint;
        this.key = key;
        this.client = client;
        this.database = database;
    }

    /** Connects and creates the tour's database. */
    static World open(String endpoint, String key) {
        CosmosClient client = connect(endpoint, key);
        String id = unique("tour");
        client.createDatabase(id);
        return new World(endpoint, key, client, client.getDatabase(id));
    }

    static CosmosClient connect(String endpoint, String key) {
        CosmosClientBuilder builder = new CosmosClientBuilder()
                .endpoint(endpoint)
                .key(key)
                .contentResponseOnWriteEnabled(true);
        // The SDK's own default is direct mode.
        return (Main.isDirect() ? builder : builder.gatewayMode()).buildClient();
    }

    @Override
    public void close() {
        database.delete();
        client.close();
    }

    /** Creates a container of one range, keyed by {@code /pk}, without a default TTL. */
    CosmosContainer container(String label) {
        return create(new CosmosContainerProperties(unique(label), "/pk"), false);
    }

    /** Creates a container of one range with a default TTL in seconds. */
    CosmosContainer expiring(String label, int defaultTtlSeconds) {
        return create(new CosmosContainerProperties(unique(label), "/pk").setDefaultTimeToLiveInSeconds(defaultTtlSeconds), false);
    }

    /** Creates a container on one range, or on five if it is to be wide. */
    CosmosContainer create(CosmosContainerProperties properties, boolean wide) {
        database.createContainer(properties, ThroughputProperties.createManualThroughput(wide ? FIVE_RANGES : 400));
        return database.getContainer(properties.getId());
    }

    /** Moves the server's virtual clock to an instant in epoch milliseconds. */
    void setClockMs(long instant) throws Exception {
        URI url = URI.create(endpoint).resolve("/_bolide/clock");
        HttpRequest request = HttpRequest.newBuilder(url)
                .header("Authorization", "Bearer " + key)
                .header("Content-Type", "application/json")
                .PUT(HttpRequest.BodyPublishers.ofString("{\"setMs\":" + instant + "}"))
                .build();
        HttpResponse<String> answer = http.send(request, HttpResponse.BodyHandlers.ofString());
        Tour.equal(answer.statusCode(), 200, "status of moving the clock, " + answer.body());
    }

    /** Moves the clock to the first millisecond of a second. */
    void setClockSeconds(long instant) throws Exception {
        setClockMs(instant * 1000);
    }

    /** Returns an id that no other check and no other run uses. */
    static String unique(String label) {
        return label + "-" + UUID.randomUUID().toString().substring(0, 12);
    }

    /** Reads an object from text; single quotes stand for double ones. */
    static ObjectNode item(String text) {
        try {
            return (ObjectNode) JSON.readTree(text.replace('\'', '"'));
        } catch (com.fasterxml.jackson.core.JsonProcessingException error) {
            throw new IllegalArgumentException(text, error);
        }
    }

    /** Creates an item in partition {@code pk} and returns it as the server stored it. */
    static ObjectNode add(CosmosContainer container, ObjectNode item) {
        return container.createItem(item, new PartitionKey(item.get("pk").asText()), null).getItem();
    }

    /** Returns an item as the server stores it. */
    static ObjectNode read(CosmosContainer container, String pk, String id) {
        return container.readItem(id, new PartitionKey(pk), ObjectNode.class).getItem();
    }

    /** Returns the partition key of these levels, or of the first few. */
    static PartitionKey keyOf(List<String> levels) {
        PartitionKeyBuilder builder = new PartitionKeyBuilder();
        levels.forEach(builder::add);
        return builder.build();
    }

    /** Returns every row of a query; without a key it covers the container, without a size the server decides it. */
    static List<JsonNode> rows(CosmosContainer container, String text, JsonNode parameters, PartitionKey key, Integer size) {
        List<SqlParameter> values = new ArrayList<>();
        parameters.fields().forEachRemaining(field -> values.add(new SqlParameter(field.getKey(), field.getValue())));
        CosmosQueryRequestOptions options = new CosmosQueryRequestOptions();
        if (key != null) {
            options.setPartitionKey(key);
        }
        CosmosPagedIterable<JsonNode> found = container.queryItems(new SqlQuerySpec(text, values), options, JsonNode.class);
        List<JsonNode> rows = new ArrayList<>();
        for (FeedResponse<JsonNode> page : size == null ? found.iterableByPage() : found.iterableByPage(size)) {
            rows.addAll(page.getResults());
        }
        return rows;
    }

    /** Returns every row of a query without parameters. */
    static List<JsonNode> rows(CosmosContainer container, String text, PartitionKey key) {
        return rows(container, text, JSON.createObjectNode(), key, null);
    }

    /** Returns the ids of items. */
    static List<JsonNode> ids(Iterable<? extends JsonNode> items) {
        List<JsonNode> ids = new ArrayList<>();
        items.forEach(item -> ids.add(item.get("id")));
        return ids;
    }

    /** Returns texts as JSON. */
    static List<JsonNode> texts(String... texts) {
        return List.of(texts).stream().<JsonNode>map(JSON::valueToTree).toList();
    }
}
