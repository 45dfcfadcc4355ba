package example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.bolidedb.Bolide;
import io.github.bolidedb.BolideException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the package promises of a server besides the clients' view: its end, its errors, its clock. */
class ServerTest {
    private static final Instant START = Instant.parse("2030-01-01T00:00:00Z");

    @TempDir
    private Path folder;

    @Test
    void closingEndsTheProcessAndMayBeRepeated() {
        Bolide db = Bolide.start();
        assertTrue(isRunning(db.pid()));
        db.close();
        assertFalse(isRunning(db.pid()));
        db.close();
    }

    @Test
    void theServerEndsWithTheProcessThatStartedIt() throws Exception {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        Process parent = new ProcessBuilder(java, "-cp", System.getProperty("java.class.path"), StartAndDie.class.getName())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        long pid = Long.parseLong(new String(parent.getInputStream().readAllBytes(), StandardCharsets.UTF_8).trim());
        assertTrue(parent.waitFor(60, TimeUnit.SECONDS));
        for (int turn = 0; turn < 1000 && isRunning(pid); turn++) {
            Thread.sleep(20);
        }
        assertFalse(isRunning(pid));
    }

    @Test
    void aRefusedOptionIsShownWithWhatTheServerSaysOfIt() {
        BolideException error = assertThrows(BolideException.class, () -> Bolide.builder().args("--no-such-option").start());
        assertTrue(error.getMessage().contains("--no-such-option"), error.getMessage());
    }

    @Test
    void aMissingBinaryIsNamed() {
        Path nothing = folder.resolve("nothing");
        BolideException error = assertThrows(BolideException.class, () -> Bolide.builder().binary(nothing).start());
        assertEquals("binary: not an executable file. value=`" + nothing + "`", error.getMessage());
    }

    @Test
    void aServerThatDoesNotGetReadyIsEndedInTime() throws IOException {
        Path binary = folder.resolve("slow");
        Files.writeString(binary, "#!/bin/sh\necho still busy >&2\nexec sleep 600\n");
        Files.setPosixFilePermissions(binary, PosixFilePermissions.fromString("rwxr-xr-x"));
        Bolide.Builder slow = Bolide.builder().binary(binary).startTimeout(Duration.ofMillis(500));
        String message = assertThrows(BolideException.class, slow::start).getMessage();
        assertEquals("the server was not ready within PT0.5S\nstill busy", message);
    }

    @Test
    void theClockMovesAndRefusesWhatIsUnclear() {
        Bolide.Builder options = Bolide.builder().virtualClock(START).dataDir(folder.resolve("data")).key("YSBrZXkgb2Ygb25lJ3Mgb3du");
        try (Bolide db = options.start()) {
            assertTrue(db.connectionString().contains("AccountKey=YSBrZXkgb2Ygb25lJ3Mgb3du;"));
            assertEquals(Instant.parse("2030-01-02T12:00:00.005Z"), db.clock().advance(Duration.ofHours(36).plusMillis(5)));
            assertEquals(Instant.parse("2030-01-02T12:00:00.005Z"), db.clock().now());
            Instant later = Instant.parse("2031-01-01T00:00:00Z");
            assertEquals(later, db.clock().set(later));
            assertThrows(IllegalArgumentException.class, () -> db.clock().advance(Duration.ofDays(-1)));
            assertThrows(IllegalArgumentException.class, () -> db.clock().advance(Duration.ofNanos(1)));
        }
        try (Bolide db = Bolide.builder().systemClock().args("--no-mongo").start()) {
            assertEquals(409, assertThrows(BolideException.class, () -> db.clock().advance(Duration.ofDays(1))).status());
            assertThrows(BolideException.class, db::mongoUri);
        }
    }

    private static boolean isRunning(long pid) {
        return ProcessHandle.of(pid).map(ProcessHandle::isAlive).orElse(false);
    }

    /** Starts a server, prints its process id and ends without closing it or running hooks. */
    static final class StartAndDie {
        public static void main(String[] arguments) {
            System.out.println(Bolide.start().pid());
            Runtime.getRuntime().halt(0);
        }
    }
}
