package example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.bolidedb.Bolide;
import io.github.bolidedb.BolideClock;
import io.github.bolidedb.BolideException;
import io.github.bolidedb.junit.BolideTest;
import java.time.Duration;
import java.time.Instant;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.RepeatedTest;

/** Each test has a server of its own otherwise, with what runs before and after it. */
@BolideTest(args = "--no-mongo")
class OwnServerTest {
    private static Bolide ofTheLastTest;

    private Bolide beforeEach;

    @BeforeEach
    void keep(Bolide db) {
        beforeEach = db;
    }

    @RepeatedTest(2)
    void oneTestHasOneServer(Bolide db, BolideClock clock) {
        assertSame(beforeEach, db);
        assertNotSame(ofTheLastTest, db);
        ofTheLastTest = db;
        assertThrows(BolideException.class, db::mongoUri);
        Instant before = clock.now();
        assertEquals(before.plus(Duration.ofDays(30)), clock.advance(Duration.ofDays(30)));
    }
}
