package bolide;

import java.io.FileInputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.List;

/**
 * The tour of Bolide with azure-cosmos: {@code Main --endpoint URL --key KEY --kinds FILE}.
 *
 * <pre>
 *   resources   databases, containers, throughput
 *   items       writes, reads, conditions, patches, batches, bulk, reading many, change feed
 *   kinds       queries of every kind, on one range and on several, in pages of several sizes
 *   ttl         items expire at their exact second, with the clock moved by hand
 * </pre>
 *
 * The client is in gateway mode, or with {@code -Dbolide.direct=true} in direct mode, as it is when nobody sets a mode. Over HTTPS it verifies the server's certificate against a trust store that holds only
 * the file that {@code SSL_CERT_FILE} names.
 */
public final class Main {
    private static final String PASSWORD = "bolide tour";

    private Main() {}

    /** Runs the tour; the exit status is 1 if a check failed. */
    public static void main(String[] arguments) throws Exception {
        List<String> words = List.of(arguments);
        String endpoint = value(words, "--endpoint");
        System.setProperty("COSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED", "true");
        trustCertificates();
        int failed;
        try (World world = World.open(endpoint, value(words, "--key"))) {
            Tour tour = new Tour(world);
            Resources.declare(tour);
            Items.declare(tour);
            Kinds.declare(tour, Path.of(value(words, "--kinds")));
            Ttl.declare(tour);
            failed = tour.finish();
        }
        System.exit(failed == 0 ? 0 : 1);
    }

    /** Whether clients are in direct mode. */
    static boolean isDirect() {
        return Boolean.getBoolean("bolide.direct");
    }

    /** Trusts the certificates in the file that {@code SSL_CERT_FILE} names, if it names one. The SDK reads that once, when its first class is loaded. */
    static void trustCertificates() throws Exception {
        if (System.getenv("SSL_CERT_FILE") != null) {
            trustOnly(Path.of(System.getenv("SSL_CERT_FILE")));
        }
    }

    static String value(List<String> words, String name) {
        int place = words.indexOf(name);
        if (place < 0 || place + 1 == words.size()) {
            throw new IllegalArgumentException("missing option. name=`" + name + "`");
        }
        return words.get(place + 1);
    }

    private static void trustOnly(Path certificates) throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        try (FileInputStream pem = new FileInputStream(certificates.toFile())) {
            for (Certificate certificate : CertificateFactory.getInstance("X.509").generateCertificates(pem)) {
                store.setCertificateEntry("bolide-" + store.size(), certificate);
            }
        }
        Path file = Files.createTempFile("bolide-trust", ".p12");
        file.toFile().deleteOnExit();
        try (OutputStream out = Files.newOutputStream(file)) {
            store.store(out, PASSWORD.toCharArray());
        }
        System.setProperty("javax.net.ssl.trustStore", file.toString());
        System.setProperty("javax.net.ssl.trustStorePassword", PASSWORD);
    }
}
