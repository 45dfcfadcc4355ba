package bolide;

import com.mongodb.MongoException;
import com.mongodb.MongoBulkWriteException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.bson.BsonArray;
import org.bson.BsonDocument;
import org.bson.BsonNumber;
import org.bson.BsonValue;

/** Named checks and their helpers. A check throws when its claim does not hold; its name is the claim. */
final class Tour {
    private int passed;
    private int failed;

    /** The body of a check. */
    interface Check {
        void run() throws Exception;
    }

    /** Runs one check and prints {@code ok name} or {@code FAIL name: reason}. */
    void check(String name, Check body) {
        try {
            body.run();
            passed++;
            System.out.println("ok " + name);
        } catch (Exception | AssertionError error) {
            failed++;
            String text = (error.getClass().getSimpleName() + ": " + error.getMessage()).replaceAll("\\s+", " ");
            System.out.println("FAIL " + name + ": " + text.substring(0, Math.min(text.length(), 400)));
        }
    }

    /** Prints the totals and returns how many checks failed. */
    int finish() {
        System.out.println(passed + " passed, " + failed + " failed");
        return failed;
    }

    /** Fails unless both values are equal. */
    static void equal(Object actual, Object expected, String what) {
        if (!Objects.equals(actual, expected)) {
            throw new AssertionError(what + ": expected " + expected + ", got " + actual);
        }
    }

    /** Fails unless both values are equal; numbers are equal by value, and the order of fields counts. */
    static void same(BsonValue actual, BsonValue expected, String what) {
        if (!isSame(actual, expected)) {
            throw new AssertionError(what + ": expected " + expected + ", got " + actual);
        }
    }

    private static boolean isSame(BsonValue one, BsonValue other) {
        if (one instanceof BsonDocument left && other instanceof BsonDocument right) {
            List<Map.Entry<String, BsonValue>> entries = new ArrayList<>(right.entrySet());
            int index = 0;
            for (Map.Entry<String, BsonValue> entry : left.entrySet()) {
                boolean fits = index < entries.size()
                        && entry.getKey().equals(entries.get(index).getKey())
                        && isSame(entry.getValue(), entries.get(index).getValue());
                if (!fits) {
                    return false;
                }
                index++;
            }
            return index == entries.size();
        }
        if (one instanceof BsonArray left && other instanceof BsonArray right) {
            for (int index = 0; index < Math.min(left.size(), right.size()); index++) {
                if (!isSame(left.get(index), right.get(index))) {
                    return false;
                }
            }
            return left.size() == right.size();
        }
        if (one instanceof BsonNumber left && other instanceof BsonNumber right && !one.isDecimal128() && !other.isDecimal128()) {
            // Every number of the tour is exact as a double.
            return left.doubleValue() == right.doubleValue();
        }
        return Objects.equals(one, other);
    }

    /** Expects the server to refuse a call with an error code; returns the error. */
    static MongoException refused(int code, Check call) throws Exception {
        try {
            call.run();
        } catch (MongoBulkWriteException error) {
            equal(error.getWriteErrors().get(0).getCode(), code, "code of `" + error.getMessage() + "`");
            return error;
        } catch (MongoException error) {
            Throwable cause = error.getCause();
            int found = error.getCode() < 0 && cause instanceof MongoException inner ? inner.getCode() : error.getCode();
            equal(found, code, "code of `" + error.getMessage() + "`");
            return error;
        }
        throw new AssertionError("expected code " + code + ", but the call succeeded");
    }
}
