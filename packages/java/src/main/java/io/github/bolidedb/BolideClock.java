package io.github.bolidedb;

import java.time.Duration;
import java.time.Instant;

/**
 * Reads and moves the clock of a server.
 *
 * <p>It counts milliseconds and stands still until it is moved. Everything in the server follows it: expiry, {@code _ts}, TTL indexes. It may be used
 * from several threads.
 */
public final class BolideClock {
    private final Admin admin;

    BolideClock(Admin admin) {
        this.admin = admin;
    }

    /** Returns the time of the server. */
    public Instant now() {
        return instant(admin.request("GET", "clock", ""));
    }

    /**
     * Moves the clock forward, and returns the new time.
     *
     * @throws IllegalArgumentException for a time that is negative or not a whole number of milliseconds
     * @throws BolideException with status 409 if the server runs on the system's clock
     */
    public Instant advance(Duration by) {
        if (by.isNegative()) {
            throw new IllegalArgumentException("advance: a negative time; set also moves the clock back. value=`" + by + "`");
        }
        if (by.getNano() % 1_000_000 != 0) {
            throw new IllegalArgumentException("advance: the clock counts whole milliseconds. value=`" + by + "`");
        }
        return instant(admin.request("PUT", "clock", "{\"advanceMs\":" + by.toMillis() + "}"));
    }

    /**
     * Moves the clock to an instant, forward or back, without its part of a millisecond, and returns the new time.
     *
     * <p>When it is moved back, time stands still for everything that is stored until it has caught up.
     *
     * @throws BolideException with status 409 if the server runs on the system's clock
     */
    public Instant set(Instant to) {
        return instant(admin.request("PUT", "clock", "{\"setMs\":" + to.toEpochMilli() + "}"));
    }

    private static Instant instant(String answer) {
        return Instant.ofEpochMilli(Admin.number(answer, "nowMs"));
    }
}
