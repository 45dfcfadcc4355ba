package bolide;

import com.azure.cosmos.CosmosException;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Named checks and their helpers.
 *
 * <p>A check throws when its claim does not hold; its name is the claim.
 */
final class Tour {
    /** Equal numbers are equal, whether they came as whole numbers or not. */
    private static final Comparator<JsonNode> BY_VALUE = (a, b) ->
            a.isNumber() && b.isNumber() ? a.decimalValue().compareTo(b.decimalValue()) : a.equals(b) ? 0 : 1;

    private final World world;
    private int passed;
    private int failed;

    Tour(World world) {
        this.world = world;
    }

    /** The body of a check, or a call that should be refused. */
    interface Body {
        void run(World world) throws Exception;
    }

    /** Runs one check and prints {@code ok name} or {@code FAIL name: reason}. */
    void check(String name, Body body) {
        try {
            body.run(world);
            passed += 1;
            System.out.println("ok " + name);
        } catch (Exception | AssertionError error) {
            failed += 1;
            String reason = String.valueOf(error).replaceAll("\\s+", " ");
            System.out.println("FAIL " + name + ": " + reason.substring(0, Math.min(reason.length(), 400)));
        }
    }

    /** Prints the totals and returns how many checks failed. */
    int finish() {
        System.out.println(passed + " passed, " + failed + " failed");
        return failed;
    }

    /** Fails unless both values are equal as JSON; the message shows both. */
    static void equal(Object actual, Object expected, String what) {
        if (!same(World.JSON.valueToTree(actual), World.JSON.valueToTree(expected))) {
            throw new AssertionError(what + ": expected " + expected + ", got " + actual);
        }
    }

    /** Fails unless both lists have the same values, in whatever order. */
    static void equalInAnyOrder(List<JsonNode> actual, List<JsonNode> expected, String what) {
        List<JsonNode> left = new ArrayList<>(actual);
        boolean found = expected.stream().allMatch(value -> removeOne(left, value));
        if (!found || !left.isEmpty()) {
            throw new AssertionError(what + ": expected in any order " + expected + ", got " + actual);
        }
    }

    /** Removes the first value that is equal to this one; tells whether there was one. */
    static boolean removeOne(List<JsonNode> values, JsonNode value) {
        for (int place = 0; place < values.size(); place++) {
            if (same(values.get(place), value)) {
                values.remove(place);
                return true;
            }
        }
        return false;
    }

    /** Expects that the server refuses the call with this status. */
    static void refused(int status, Body call) throws Exception {
        try {
            call.run(null);
        } catch (CosmosException refusal) {
            equal(refusal.getStatusCode(), status, "status of `" + refusal.getShortMessage() + "`");
            return;
        }
        throw new AssertionError("expected status " + status + ", but the call succeeded");
    }

    private static boolean same(JsonNode a, JsonNode b) {
        return a.equals(BY_VALUE, b);
    }
}
