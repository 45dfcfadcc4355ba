package bolide;

import static bolide.Tour.equal;
import static bolide.Tour.refused;

import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.model.ReplaceOptions;
import java.util.ArrayList;
import org.bson.BsonDocument;
import org.bson.BsonString;

/** Connections: topologies, encryption, compression, authentication. */
final class Connections {
    private Connections() {}

    static void run(Tour tour, World world) {
        tour.check("clients find the primary of the replica set", () -> pings(world, "replicaSet=globaldb"));
        tour.check("clients connect directly", () -> pings(world, "directConnection=true"));
        tour.check("connections are encrypted on the same port", () -> pings(world, "replicaSet=globaldb&tls=true"));
        tour.check("connections are not encrypted unless asked", () -> pings(world, "replicaSet=globaldb&tls=false"));
        for (String compressor : new String[] {"snappy", "zlib", "zstd"}) {
            tour.check("messages are compressed with " + compressor, () -> compressed(world, compressor));
        }
        tour.check("scram sha 256 authenticates", () -> lists(world, null, "replicaSet=globaldb&authMechanism=SCRAM-SHA-256"));
        tour.check("scram sha 1 authenticates", () -> lists(world, null, "replicaSet=globaldb&authMechanism=SCRAM-SHA-1"));
        tour.check("a wrong password is refused",
                () -> refused(18, () -> lists(world, world.user() + ":d3Jvbmc@", "directConnection=true")));
        tour.check("nothing is read without credentials", () -> refused(13, () -> lists(world, "", "directConnection=true")));
    }

    private static void pings(World world, String options) throws Exception {
        MongoClient client = world.connect(null, options);
        BsonDocument reply = client.getDatabase("admin").runCommand(BsonDocument.parse("{ping: 1}"), BsonDocument.class);
        equal(reply.getNumber("ok").intValue(), 1, "ok");
    }

    private static void lists(World world, String login, String options) throws Exception {
        MongoClient client = world.connect(login, options);
        client.listDatabaseNames().into(new ArrayList<>());
    }

    private static void compressed(World world, String compressor) throws Exception {
        MongoClient client = world.connect(null, "replicaSet=globaldb&compressors=" + compressor);
        MongoCollection<BsonDocument> collection =
                client.getDatabase(world.database.getName()).getCollection("compressed", BsonDocument.class);
        BsonDocument filter = new BsonDocument("_id", new BsonString(compressor));
        BsonDocument document = filter.clone().append("text", new BsonString("compress me ".repeat(5000)));
        collection.replaceOne(filter, document, new ReplaceOptions().upsert(true));
        equal(collection.find(filter).first(), document, "the document");
    }
}
