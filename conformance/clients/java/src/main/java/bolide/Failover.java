package bolide;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.time.Instant;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.IntStream;

/**
 * Two servers over one store, of which one is killed under load:
 * {@code Failover --endpoint URL --key KEY --victim-port PORT --victim PID}.
 *
 * <p>The endpoint is that of the server that lives. Clients are in direct mode, and write to the owner of each partition. The application does what
 * applications do: it tries again what has failed with a status for that.
 */
public final class Failover {
    /** Longer than the others take for noticing that a server is dead, and than the SDK tries again by itself. */
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final Duration BEFORE = Duration.ofSeconds(5);
    private static final Duration AFTER = Duration.ofSeconds(15);
    /** The end of the run, when all clients must have left the dead server. */
    private static final Duration AT_LAST = Duration.ofSeconds(5);
    /** So that other programs on the machine are not slowed down. */
    private static final Duration PAUSE = Duration.ofMillis(10);
    private static final int WRITERS = 8;
    private static final int KEYS = 20;
    /** Timeout, gone, retry with, unavailable. */
    private static final Set<Integer> FOR_RETRIES = Set.of(408, 410, 449, 503);

    private final CosmosContainer container;
    private final String victim;
    /** Acknowledged ids, each with its key. */
    private final Map<String, String> acknowledged = new ConcurrentHashMap<>();
    /** What applications would see. */
    private final ConcurrentLinkedQueue<CosmosException> errors = new ConcurrentLinkedQueue<>();
    private final ConcurrentLinkedQueue<String> violations = new ConcurrentLinkedQueue<>();
    private volatile Duration longest = Duration.ZERO;
    private volatile boolean ended;

    private Failover(CosmosContainer container, String victimPort) {
        this.container = container;
        this.victim = ":" + victimPort + "/";
    }

    /** Runs all; the exit status is 1 if a check failed. */
    public static void main(String[] arguments) throws Exception {
        List<String> words = List.of(arguments);
        Main.trustCertificates();
        int failed;
        try (CosmosClient client = World.connect(Main.value(words, "--endpoint"), Main.value(words, "--key"))) {
            String id = World.unique("failover");
            client.createDatabase(id);
            CosmosContainerProperties properties = new CosmosContainerProperties("items", "/pk");
            client.getDatabase(id).createContainer(properties, ThroughputProperties.createManualThroughput(World.FIVE_RANGES));
            CosmosContainer container = client.getDatabase(id).getContainer("items");
            Failover failover = new Failover(container, Main.value(words, "--victim-port"));
            failed = failover.run(Long.parseLong(Main.value(words, "--victim")));
        }
        System.exit(failed == 0 ? 0 : 1);
    }

    private int run(long pid) throws Exception {
        Tour tour = new Tour(null);
        tour.check("writes go to both servers", world -> awaitBoth());
        List<Thread> writers = IntStream.range(0, WRITERS).mapToObj(number -> new Thread(() -> write(number))).toList();
        writers.forEach(writer -> {
            writer.setDaemon(true);
            writer.start();
        });
        Thread.sleep(BEFORE.toMillis());
        int before = acknowledged.size();
        ProcessHandle.of(pid).orElseThrow().destroyForcibly();
        Thread.sleep(AFTER.toMillis());
        int after = acknowledged.size();
        Thread.sleep(AT_LAST.toMillis());
        ended = true;
        for (Thread writer : writers) {
            writer.join();
        }
        Map<Integer, Integer> statuses = new TreeMap<>();
        errors.forEach(error -> statuses.merge(error.getStatusCode(), 1, Integer::sum));
        System.out.println("writes: " + before + " before, " + (acknowledged.size() - before) + " after; errors by status: " + statuses + "; longest write with its retries: "
                + longest.toMillis() + " ms");
        tour.check("the application sees no error but those for which it tries again", world ->
                Tour.equal(FOR_RETRIES.containsAll(statuses.keySet()), true, "statuses " + statuses));
        tour.check("every write is done at last", world -> Tour.equal(List.copyOf(violations), List.of(), "violations"));
        tour.check("writes go on as before", world -> Tour.equal(acknowledged.size() - after > before / 2, true, "more writes"));
        tour.check("nothing acknowledged is lost, and nothing is there twice", world -> compare());
        tour.check("writes go to the server that lives", world -> {
            for (int key = 0; key < KEYS; key++) {
                Tour.equal(isWrittenAtVictim("last-" + key), false, "a write at the dead server");
            }
        });
        return tour.finish();
    }

    /** Waits until each server owns a part of the ranges. */
    private void awaitBoth() throws Exception {
        Instant deadline = Instant.now().plus(PATIENCE);
        Set<Boolean> seen = new HashSet<>();
        for (int number = 0; seen.size() < 2; number++) {
            Tour.equal(Instant.now().isBefore(deadline), true, "in time");
            seen.add(isWrittenAtVictim("first-" + number));
            Thread.sleep(50);
        }
    }

    /** Writes an item, and tells whether that was sent to the victim. */
    private boolean isWrittenAtVictim(String key) {
        CosmosItemResponse<ObjectNode> answer = container.upsertItem(item(key, key), new PartitionKey(key), null);
        acknowledged.put(key, key);
        return answer.getDiagnostics().toString().contains(victim);
    }

    private void write(int writer) {
        for (int number = 0; !ended; number++) {
            String key = writer + "-" + number % KEYS;
            String id = writer + "." + number;
            Instant begun = Instant.now();
            try {
                create(id, key, begun);
                Duration took = Duration.between(begun, Instant.now());
                synchronized (this) {
                    longest = took.compareTo(longest) > 0 ? took : longest;
                }
                Thread.sleep(PAUSE.toMillis());
            } catch (InterruptedException | RuntimeException error) {
                violations.add(id + ": " + error);
            }
        }
    }

    private void create(String id, String key, Instant begun) {
        for (int attempt = 0; ; attempt++) {
            try {
                container.createItem(item(id, key), new PartitionKey(key), null);
                acknowledged.put(id, key);
                return;
            } catch (CosmosException error) {
                if (error.getStatusCode() == 409 && attempt > 0) {
                    // The attempt whose outcome was unknown was carried out.
                    acknowledged.put(id, key);
                    return;
                }
                errors.add(error);
            }
            if (Duration.between(begun, Instant.now()).compareTo(PATIENCE) > 0) {
                violations.add(id + " was not written within " + PATIENCE);
                return;
            }
        }
    }

    private void compare() {
        Set<String> found = new HashSet<>();
        for (JsonNode id : World.rows(container, "SELECT VALUE c.id FROM c", null)) {
            Tour.equal(found.add(id.asText()), true, id + " is there once");
        }
        for (Map.Entry<String, String> written : acknowledged.entrySet()) {
            Tour.equal(found.contains(written.getKey()), true, written.getKey() + " is there");
        }
        acknowledged.entrySet().stream().limit(500).forEach(written ->
                Tour.equal(World.read(container, written.getValue(), written.getKey()).get("pk").asText(), written.getValue(), "key"));
    }

    private static ObjectNode item(String id, String key) {
        return World.item("{'id':'" + id + "','pk':'" + key + "'}");
    }
}
