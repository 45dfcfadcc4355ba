package example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.PartitionKey;
import io.github.bolidedb.Bolide;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Thirty days pass in a test without JUnit's extension, and what has expired is purged. */
class ThirtyDaysTest {
    private static final int THIRTY_DAYS = 30 * 24 * 60 * 60;

    @Test
    void anItemLivesForThirtyDays() {
        try (Bolide db = Bolide.start(); CosmosClient client = connect(db)) {
            CosmosContainer tokens = container(client);
            tokens.createItem(Map.of("id", "t1", "user", "ada", "ttl", THIRTY_DAYS));

            db.clock().advance(Duration.ofDays(29));
            assertEquals(200, read(tokens));
            db.clock().advance(Duration.ofDays(1));
            assertEquals(404, assertThrows(CosmosException.class, () -> read(tokens)).getStatusCode());
            assertEquals(1, db.purge("retention", "tokens"));
        }
    }

    private static CosmosClient connect(Bolide db) {
        // The default, direct mode, is encrypted, and would need the server's certificate.
        return new CosmosClientBuilder().endpoint(db.endpoint()).key(db.key()).gatewayMode().buildClient();
    }

    private static CosmosContainer container(CosmosClient client) {
        client.createDatabase("retention");
        CosmosContainerProperties properties = new CosmosContainerProperties("tokens", "/user").setDefaultTimeToLiveInSeconds(-1);
        client.getDatabase("retention").createContainer(properties);
        return client.getDatabase("retention").getContainer("tokens");
    }

    private static int read(CosmosContainer tokens) {
        return tokens.readItem("t1", new PartitionKey("ada"), Map.class).getStatusCode();
    }
}
