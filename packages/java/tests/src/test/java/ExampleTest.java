import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.PartitionKey;
import io.github.bolidedb.Bolide;
import io.github.bolidedb.junit.BolideTest;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;

@BolideTest
class ExampleTest {
    @Test
    void anItemLivesForThirtyDays(Bolide db) {
        // Or in the configuration of the test runner: the SDK refuses plain HTTP otherwise.
        System.setProperty("COSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED", "true");
        CosmosClientBuilder builder = new CosmosClientBuilder().endpoint(db.endpoint()).key(db.key()).gatewayMode();
        try (CosmosClient client = builder.buildClient()) {
            client.createDatabase("retention");
            CosmosContainerProperties properties = new CosmosContainerProperties("tokens", "/user");
            client.getDatabase("retention").createContainer(properties.setDefaultTimeToLiveInSeconds(-1));
            CosmosContainer tokens = client.getDatabase("retention").getContainer("tokens");
            tokens.createItem(Map.of("id", "t1", "user", "ada", "ttl", 30 * 24 * 60 * 60));

            db.clock().advance(Duration.ofDays(29));
            assertEquals(200, read(tokens));
            db.clock().advance(Duration.ofDays(1));
            assertEquals(404, assertThrows(CosmosException.class, () -> read(tokens)).getStatusCode());
        }
    }

    private static int read(CosmosContainer tokens) {
        return tokens.readItem("t1", new PartitionKey("ada"), Map.class).getStatusCode();
    }
}
