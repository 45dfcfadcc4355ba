package bolide;

import java.nio.file.Path;
import java.util.List;

/**
 * The tour of Bolide with MongoDB's driver for Java:
 * {@code Main --uri URI --endpoint URL --key KEY --certificate FILE --tables DIR}.
 *
 * <pre>
 *   connections   topologies, encryption, compression, authentication
 *   documents     writes of one and of many, findAndModify, cursors, uniqueness
 *   tables        queries, updates, pipelines and expressions that the tours of all languages share
 *   expiry        both kinds of time to live, with the clock moved by hand
 *   transactions  retryable writes, transactions, change streams
 *   models        objects of Spring Data
 * </pre>
 */
public final class Main {
    private Main() {}

    /** Runs the tour; the exit status is 1 if a check failed. */
    public static void main(String[] arguments) throws Exception {
        List<String> words = List.of(arguments);
        int failed;
        Path certificate = Path.of(value(words, "--certificate"));
        Path tables = Path.of(value(words, "--tables"));
        try (World world = new World(value(words, "--uri"), value(words, "--endpoint"), value(words, "--key"), certificate, tables)) {
            Tour tour = new Tour();
            Connections.run(tour, world);
            Documents.run(tour, world);
            Tables.run(tour, world);
            Expiry.run(tour, world);
            Transactions.run(tour, world);
            Models.run(tour, world);
            failed = tour.finish();
        }
        System.exit(failed > 0 ? 1 : 0);
    }

    private static String value(List<String> words, String name) {
        int index = words.indexOf(name);
        if (index < 0 || index + 1 == words.size()) {
            throw new IllegalArgumentException(name + " is needed");
        }
        return words.get(index + 1);
    }
}
