package example;

import static org.junit.jupiter.api.Assertions.assertSame;

import io.github.bolidedb.Bolide;
import io.github.bolidedb.junit.BolideExtension;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** A server that a method before all tests gets is that of the whole class. */
@ExtendWith(BolideExtension.class)
class SharedServerTest {
    private static Bolide ofTheClass;

    @BeforeAll
    static void keep(Bolide db) {
        ofTheClass = db;
    }

    @Test
    void theServerOfTheClassIsThatOfItsTests(Bolide db) {
        assertSame(ofTheClass, db);
    }
}
