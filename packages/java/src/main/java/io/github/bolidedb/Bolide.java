package io.github.bolidedb;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A running server. It may be used from several threads, and stops when it is closed. */
public final class Bolide implements AutoCloseable {
    /** The key of the Azure Cosmos DB emulator. It is public, and works on this machine only. */
    private static final String WELL_KNOWN_KEY =
            "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

    private final ServerProcess process;
    private final String endpoint;
    private final String httpsEndpoint;
    private final String mongo;
    private final String key;
    private final Admin admin;
    private final BolideClock clock;

    private Bolide(ServerProcess process, String ready, String key) {
        this.process = process;
        this.endpoint = Admin.text(ready, "cosmos").orElseThrow();
        this.httpsEndpoint = Admin.text(ready, "cosmosTls").orElseThrow();
        this.mongo = Admin.text(ready, "mongo").orElse(null);
        this.key = key;
        this.admin = new Admin(endpoint, key);
        this.clock = new BolideClock(admin);
    }

    /**
     * Starts a server in memory, with a virtual clock that begins now, and returns when it is ready.
     *
     * @throws BolideException if there is no binary, or if the server ends or is not ready in time, with the end of what it wrote
     */
    public static Bolide start() {
        return builder().start();
    }

    /** Other ways to start one. */
    public static Builder builder() {
        return new Builder();
    }

    /** Such as {@code http://127.0.0.1:41234}, for clients of Cosmos DB. */
    public String endpoint() {
        return endpoint;
    }

    /** The same port with TLS, under a certificate that the server made. */
    public String httpsEndpoint() {
        return httpsEndpoint;
    }

    /** The account key, base64. */
    public String key() {
        return key;
    }

    /** The connection string for clients of Cosmos DB. */
    public String connectionString() {
        return "AccountEndpoint=" + endpoint + "/;AccountKey=" + key + ";";
    }

    /**
     * The connection string for MongoDB's drivers.
     *
     * @throws BolideException if the server was started with {@code --no-mongo}
     */
    public String mongoUri() {
        if (mongo == null) {
            throw new BolideException("the server does not listen for MongoDB's drivers");
        }
        return "mongodb://localhost:" + escaped(key) + "@" + mongo.split("://")[1] + "/?replicaSet=globaldb";
    }

    /** The id of the process. */
    public long pid() {
        return process.pid();
    }

    /** The clock of the server. */
    public BolideClock clock() {
        return clock;
    }

    /**
     * Removes what has expired in a container, and returns how many items that were.
     *
     * <p>Clients cannot tell the difference, because expired items are absent before, too. With a virtual clock nothing else removes them.
     *
     * @throws BolideException with status 404 if there is no such container
     */
    public long purge(String database, String container) {
        String path = "dbs/" + escaped(database) + "/colls/" + escaped(container) + "/purge";
        return Admin.number(admin.request("POST", path, "{\"mode\":\"force\"}"), "purged");
    }

    /** Removes all databases with everything in them. Clients stay connected. */
    public void reset() {
        admin.request("POST", "reset", "{}");
    }

    /** Returns the end of what the server wrote to standard error, also after it has ended. */
    public String log() {
        return process.log();
    }

    /**
     * Stops the server: running requests end, a data directory is complete. May be called again.
     *
     * @throws BolideException if it did not end with status 0; it has ended in any case
     */
    @Override
    public void close() {
        process.stop();
    }

    @Override
    public String toString() {
        return "Bolide[" + endpoint + ", pid " + pid() + "]";
    }

    private static String escaped(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    /**
     * How a server is started.
     *
     * <p>Variables of the environment that begin with {@code BOLIDE_} are not passed on: options come only from here.
     */
    public static final class Builder {
        private final List<String> args = new ArrayList<>();
        private final Map<String, String> env = new HashMap<>();
        private String store = "--memory";
        private String clock = "--virtual-clock";
        private String key = WELL_KNOWN_KEY;
        private Path binary;
        private Duration startTimeout = Duration.ofSeconds(30);

        private Builder() {}

        /** Where the server keeps its data; without a directory everything is in memory. */
        public Builder dataDir(Path directory) {
            store = "--data-dir=" + directory;
            return this;
        }

        /** The first instant of the virtual clock; by default it begins now. */
        public Builder virtualClock(Instant start) {
            clock = "--virtual-clock=" + start;
            return this;
        }

        /** Runs on the system's clock, which nobody moves. */
        public Builder systemClock() {
            clock = null;
            return this;
        }

        /** The account key, base64; by default the emulator's well-known key. */
        public Builder key(String accountKey) {
            key = accountKey;
            return this;
        }

        /** Further options of the server, such as {@code --enforce-throughput}. */
        public Builder args(String... further) {
            args.addAll(List.of(further));
            return this;
        }

        /** A further environment variable. */
        public Builder env(String name, String value) {
            env.put(name, value);
            return this;
        }

        /** The binary to start; by default the environment variable {@code BOLIDE_BIN}, else {@code bolide} on the {@code PATH}. */
        public Builder binary(Path path) {
            binary = path;
            return this;
        }

        /** How long the start may take; 30 seconds by default. */
        public Builder startTimeout(Duration limit) {
            startTimeout = limit;
            return this;
        }

        /**
         * Starts the server and returns when it is ready.
         *
         * @throws BolideException if there is no binary, or if the server ends or is not ready in time, with the end of what it wrote
         */
        public Bolide start() {
            Map<String, String> environment = new HashMap<>(System.getenv());
            Path program = BolideBinary.find(binary, environment);
            environment.keySet().removeIf(name -> name.startsWith("BOLIDE_"));
            environment.putAll(env);
            // In the environment, because every user of the machine may read arguments.
            environment.put("BOLIDE_KEY", key);
            List<String> command = new ArrayList<>();
            command.addAll(List.of(program.toString(), "--port=0", "--mongo-port=0", "--stop-with-stdin", store));
            if (clock != null) {
                command.add(clock);
            }
            command.addAll(args);
            ServerProcess process = ServerProcess.start(command, environment);
            return new Bolide(process, process.waitUntilReady(startTimeout), key);
        }
    }
}
