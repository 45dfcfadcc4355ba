package bolide;

import static bolide.Tour.equal;
import static bolide.Tour.equalInAnyOrder;
import static bolide.Tour.refused;
import static bolide.World.add;
import static bolide.World.item;
import static bolide.World.read;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/**
 * Time to live: items expire at their exact second for every kind of request.
 *
 * <p>The server's clock is virtual, so a test of thirty days takes milliseconds. An item's second is {@code _ts} plus its
 * time to live; it is live at the last millisecond before that second and gone from the second on.
 */
final class Ttl {
    private static final PartitionKey P = new PartitionKey("p");
    private static final int THIRTY_DAYS = 30 * 24 * 3600;

    private Ttl() {}

    static void declare(Tour tour) {
        tour.check("item ends at its exact second for every kind of request", Ttl::itemEndsAtItsSecond);
        tour.check("own ttl of an item outweighs the default", Ttl::ownTtlOutweighs);
        tour.check("write renews an item and a read does not", Ttl::writeRenews);
        tour.check("id of an expired item is free", Ttl::idIsFree);
        tour.check("items end on every range at the same second", Ttl::itemsEndOnEveryRange);
        tour.check("invalid ttl of an item is refused with 400", Ttl::invalidTtlIsRefused);
    }

    private static void itemEndsAtItsSecond(World world) throws Exception {
        CosmosContainer container = world.expiring("ends", 100);
        long end = birth(container, "{'id':'a','pk':'p','n':1}") + 100;
        world.setClockMs(end * 1000 - 1);
        read(container, "p", "a");
        seen(container, "a");
        world.setClockSeconds(end);
        refused(404, unused -> read(container, "p", "a"));
        refused(404, unused -> container.replaceItem(item("{'id':'a','pk':'p'}"), "a", P, null));
        refused(404, unused -> container.patchItem("a", P, CosmosPatchOperations.create().set("/n", 2), ObjectNode.class));
        refused(404, unused -> container.deleteItem("a", P, null));
        seen(container);
    }

    private static void ownTtlOutweighs(World world) throws Exception {
        CosmosContainer container = world.expiring("own", 100);
        long born = birth(container, "{'id':'default','pk':'p'}");
        add(container, item("{'id':'shorter','pk':'p','ttl':10}"));
        add(container, item("{'id':'longer','pk':'p','ttl':" + THIRTY_DAYS + "}"));
        add(container, item("{'id':'never','pk':'p','ttl':-1}"));
        world.setClockSeconds(born + 9);
        seen(container, "default", "longer", "never", "shorter");
        world.setClockSeconds(born + 10);
        seen(container, "default", "longer", "never");
        world.setClockSeconds(born + 100);
        seen(container, "longer", "never");
        world.setClockSeconds(born + THIRTY_DAYS - 1);
        seen(container, "longer", "never");
        world.setClockSeconds(born + THIRTY_DAYS);
        seen(container, "never");
    }

    private static void writeRenews(World world) throws Exception {
        CosmosContainer container = world.expiring("renew", 100);
        long born = birth(container, "{'id':'written','pk':'p'}");
        add(container, item("{'id':'read','pk':'p'}"));
        world.setClockSeconds(born + 60);
        container.replaceItem(item("{'id':'written','pk':'p'}"), "written", P, null);
        read(container, "p", "read");
        world.setClockSeconds(born + 100);
        seen(container, "written");
        world.setClockSeconds(born + 160);
        seen(container);
    }

    private static void idIsFree(World world) throws Exception {
        CosmosContainer container = world.expiring("free", 10);
        long born = birth(container, "{'id':'a','pk':'p'}");
        add(container, item("{'id':'b','pk':'p'}"));
        world.setClockSeconds(born + 10);
        add(container, item("{'id':'a','pk':'p'}"));
        equal(container.upsertItem(item("{'id':'b','pk':'p'}")).getStatusCode(), 201, "status of the upsert");
    }

    private static void itemsEndOnEveryRange(World world) throws Exception {
        CosmosContainerProperties properties =
                new CosmosContainerProperties(World.unique("wide end"), "/pk").setDefaultTimeToLiveInSeconds(100);
        CosmosContainer container = world.create(properties, true);
        long end = 0;
        for (int n = 0; n < 20; n++) {
            end = birth(container, "{'id':'i" + n + "','pk':'p" + n + "'}") + 100;
        }
        String count = "SELECT VALUE COUNT(1) FROM c";
        world.setClockMs(end * 1000 - 1);
        equal(World.rows(container, count, null), List.of(20), "count before");
        world.setClockSeconds(end);
        equal(World.rows(container, count, null), List.of(0), "count at the second");
    }

    private static void invalidTtlIsRefused(World world) throws Exception {
        CosmosContainer container = world.expiring("invalid", -1);
        for (String ttl : List.of("0", "-2", "null", "'10'", "1.5", "true", "2147483648")) {
            refused(400, unused -> add(container, item("{'id':'a','pk':'p','ttl':" + ttl + "}")));
        }
    }

    /** Creates an item and returns the second in which it was written. */
    private static long birth(CosmosContainer container, String body) {
        return add(container, item(body)).get("_ts").asLong();
    }

    /** Expects that a query and a count in the partition show exactly these items. */
    private static void seen(CosmosContainer container, String... ids) {
        equalInAnyOrder(World.rows(container, "SELECT VALUE c.id FROM c", P), World.texts(ids), "items");
        equal(World.rows(container, "SELECT VALUE COUNT(1) FROM c", P), List.of(ids.length), "count");
    }
}
