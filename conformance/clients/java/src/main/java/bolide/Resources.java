package bolide;

import static bolide.Tour.equal;
import static bolide.Tour.refused;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import java.util.List;

/** Databases, containers and throughput. */
final class Resources {
    private Resources() {}

    static void declare(Tour tour) {
        tour.check("wrong key is refused", Resources::wrongKeyIsRefused);
        tour.check("database can be read, queried and deleted", Resources::databaseLives);
        tour.check("second database and container of the same name are refused with 409", Resources::namesAreUnique);
        tour.check("container echoes its default ttl, which can be replaced", Resources::containerEchoes);
        tour.check("missing database and container are 404", Resources::missingIsNotFound);
        tour.check("throughput can be read and replaced", Resources::throughputIsReplaced);
        tour.check("throughput decides the number of feed ranges", Resources::throughputDecidesRanges);
    }

    /** The SDK reads the account while it builds the client, and hides the status. */
    private static void wrongKeyIsRefused(World world) {
        try {
            World.connect(world.endpoint, "d3JvbmcgYWNjb3VudCBrZXk=").close();
        } catch (RuntimeException refusal) {
            boolean named = refusal.getMessage().contains("The wrong key is being used");
            equal(named, true, "reason in `" + refusal.getMessage() + "`");
            return;
        }
        throw new AssertionError("expected a refusal, but the client was built");
    }

    private static void databaseLives(World world) throws Exception {
        String id = World.unique("shelf");
        world.client.createDatabase(id);
        CosmosDatabase database = world.client.getDatabase(id);
        equal(database.read().getProperties().getId(), id, "read");
        SqlQuerySpec query = new SqlQuerySpec("SELECT * FROM root r WHERE r.id = @id", List.of(new SqlParameter("@id", id)));
        equal(world.client.queryDatabases(query, new CosmosQueryRequestOptions()).stream().count(), 1, "queried");
        database.delete();
        refused(404, unused -> database.read());
    }

    private static void namesAreUnique(World world) throws Exception {
        refused(409, unused -> world.client.createDatabase(world.database.getId()));
        CosmosContainer container = world.container("twice");
        refused(409, unused -> world.database.createContainer(container.getId(), "/pk"));
    }

    private static void containerEchoes(World world) {
        CosmosContainer container = world.expiring("echo", 3600);
        CosmosContainerProperties properties = container.read().getProperties();
        equal(properties.getPartitionKeyDefinition().getPaths(), List.of("/pk"), "paths");
        equal(properties.getDefaultTimeToLiveInSeconds(), 3600, "default ttl");
        container.replace(properties.setDefaultTimeToLiveInSeconds(-1));
        equal(container.read().getProperties().getDefaultTimeToLiveInSeconds(), -1, "replaced default ttl");
    }

    private static void missingIsNotFound(World world) throws Exception {
        refused(404, unused -> world.client.getDatabase("nowhere").read());
        refused(404, unused -> world.database.getContainer("nowhere").read());
        refused(404, unused -> World.read(world.database.getContainer("nowhere"), "p", "a"));
    }

    private static void throughputIsReplaced(World world) {
        CosmosContainer container = world.container("offer");
        equal(container.readThroughput().getProperties().getManualThroughput(), 400, "throughput");
        container.replaceThroughput(ThroughputProperties.createManualThroughput(900));
        equal(container.readThroughput().getProperties().getManualThroughput(), 900, "replaced throughput");
    }

    private static void throughputDecidesRanges(World world) {
        equal(world.container("narrow").getFeedRanges().size(), 1, "ranges");
        CosmosContainer wide = world.create(new CosmosContainerProperties(World.unique("wide"), "/pk"), true);
        equal(wide.getFeedRanges().size(), 5, "ranges");
    }
}
