package bolide;

import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.List;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.bson.BsonDocument;
import org.bson.types.ObjectId;

/** The shared state of the checks: a client, a database, the clock, connection strings of other kinds. */
final class World implements AutoCloseable {
    final MongoClient client;
    final MongoDatabase database;
    private final String uri;
    private final String endpoint;
    private final String key;
    private final Path certificate;
    private final Path tables;
    private final List<MongoClient> clients = new ArrayList<>();

    World(String uri, String endpoint, String key, Path certificate, Path tables) throws Exception {
        this.uri = uri;
        this.endpoint = endpoint.replaceAll("/$", "");
        this.key = key;
        this.certificate = certificate;
        this.tables = tables;
        client = connectTo(uri);
        database = client.getDatabase("tour-" + new ObjectId());
    }

    /** Connects with other options than the tour's; {@code login} is {@code user:password@}, nothing, or null for the tour's own. */
    MongoClient connect(String login, String options) throws Exception {
        String rest = uri.substring("mongodb://".length());
        String own = rest.substring(0, rest.indexOf('@') + 1);
        String host = rest.substring(own.length()).split("/")[0];
        String used = login == null ? own : login;
        return connectTo("mongodb://" + used + host + "/?serverSelectionTimeoutMS=8000&" + options);
    }

    /** The user of the tour's own connection string. */
    String user() {
        return uri.substring("mongodb://".length()).split(":")[0];
    }

    private MongoClient connectTo(String uri) throws Exception {
        MongoClientSettings.Builder settings = MongoClientSettings.builder();
        // The driver takes no certificates from connection strings.
        if (uri.contains("tls=true")) {
            SSLContext trusting = trusting();
            settings.applyToSslSettings(tls -> tls.enabled(true).context(trusting));
        }
        settings.applyConnectionString(new ConnectionString(uri.replaceAll("&?tlsCAFile=[^&]*", "")));
        MongoClient connected = MongoClients.create(settings.build());
        clients.add(connected);
        return connected;
    }

    private SSLContext trusting() throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream file = Files.newInputStream(certificate)) {
            store.setCertificateEntry("server", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, factory.getTrustManagers(), null);
        return context;
    }

    /** A collection of the tour's database that holds exactly these documents. */
    MongoCollection<BsonDocument> collection(String name, List<BsonDocument> documents) {
        MongoCollection<BsonDocument> collection = existing(name);
        collection.drop();
        if (!documents.isEmpty()) {
            collection.insertMany(documents);
        }
        return collection;
    }

    /** A collection of the tour's database as it is. */
    MongoCollection<BsonDocument> existing(String name) {
        return database.getCollection(name, BsonDocument.class);
    }

    /** A file of the data that the tours of all languages share. */
    BsonDocument table(String name) throws Exception {
        return BsonDocument.parse(Files.readString(tables.resolve("tour_" + name + ".json")));
    }

    /** Moves the clock to an instant in epoch milliseconds. */
    void setClock(long instant) throws Exception {
        clock("PUT", "{\"setMs\":" + instant + "}");
    }

    /** Moves the clock to the beginning of the next second and returns it in epoch milliseconds. */
    long nextSecond() throws Exception {
        long now = clock("GET", "").getNumber("nowMs").longValue();
        long next = (now / 1000 + 1) * 1000;
        setClock(next);
        return next;
    }

    private BsonDocument clock(String method, String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(endpoint + "/_bolide/clock"))
                .header("Authorization", "Bearer " + key)
                .header("Content-Type", "application/json")
                .method(method, HttpRequest.BodyPublishers.ofString(body))
                .build();
        HttpResponse<String> response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        Tour.equal(response.statusCode(), 200, "status of the clock");
        return BsonDocument.parse(response.body());
    }

    @Override
    public void close() {
        clients.forEach(MongoClient::close);
    }
}
