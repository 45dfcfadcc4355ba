package bolide;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.PartitionKey;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.Map;
import org.testcontainers.containers.CosmosDBEmulatorContainer;
import org.testcontainers.utility.DockerImageName;

/**
 * Testcontainers for Java: starts its Cosmos DB container and uses it with azure-cosmos over HTTPS, trusting only the
 * certificate that the module downloads. Prints {@code ok name} or {@code FAIL name: reason}.
 *
 * <p>The variable {@code DOCKER_HOST} names the engine.
 */
public final class Main {
    private static final DockerImageName IMAGE = DockerImageName.parse("bolide")
            .asCompatibleSubstituteFor("mcr.microsoft.com/cosmosdb/linux/azure-cosmos-emulator");

    private Main() {}

    /** A check, which fails by an exception. */
    private interface Check {
        void run() throws Exception;
    }

    private static boolean report(String name, Check check) {
        try {
            check.run();
            System.out.println("ok " + name);
            return true;
        } catch (Exception | LinkageError failure) {
            System.out.println(("FAIL " + name + ": " + failure).replace('\n', ' '));
            return false;
        }
    }

    /** Runs the checks; the exit status is 1 if one failed. */
    public static void main(String[] arguments) {
        try (CosmosDBEmulatorContainer container = new CosmosDBEmulatorContainer(IMAGE)) {
            boolean succeeded = report("the container starts", container::start)
                    && report("its certificate is trusted", () -> trustOnly(container.buildNewKeyStore(), container.getEmulatorKey()))
                    && report("a database, a container and an item", () -> useDatabase(container))
                    && report("the container stops", container::stop);
            System.exit(succeeded ? 0 : 1);
        }
    }

    private static void trustOnly(KeyStore store, String password) throws Exception {
        Path file = Files.createTempFile("emulator", ".p12");
        file.toFile().deleteOnExit();
        try (OutputStream output = Files.newOutputStream(file)) {
            store.store(output, password.toCharArray());
        }
        System.setProperty("javax.net.ssl.trustStore", file.toString());
        System.setProperty("javax.net.ssl.trustStorePassword", password);
        System.setProperty("javax.net.ssl.trustStoreType", "PKCS12");
    }

    private static void useDatabase(CosmosDBEmulatorContainer container) {
        CosmosClientBuilder builder = new CosmosClientBuilder()
                .gatewayMode()
                .endpoint(container.getEmulatorEndpoint())
                .key(container.getEmulatorKey());
        try (CosmosClient client = builder.buildClient()) {
            client.createDatabase("tests");
            client.getDatabase("tests").createContainer("items", "/pk");
            CosmosContainer items = client.getDatabase("tests").getContainer("items");
            items.createItem(Map.of("id", "a", "pk", "p"));
            Object id = items.readItem("a", new PartitionKey("p"), Map.class).getItem().get("id");
            if (!"a".equals(id)) {
                throw new IllegalStateException("read " + id);
            }
        }
    }
}
