package io.github.bolidedb;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A server's process and the folder of its files. */
final class ServerProcess {
    private static final long POLL_MILLIS = 5;
    /** The server needs at most 13 s to end its requests and to close its store. */
    private static final long STOP_SECONDS = 20;
    private static final int LOG_BYTES = 64 * 1024;

    private final Process process;
    private final Path folder;
    private final Thread atExit = new Thread(this::abandon, "bolide-exit");
    private String lastLog;

    private ServerProcess(Process process, Path folder) {
        this.process = process;
        this.folder = folder;
        Runtime.getRuntime().addShutdownHook(atExit);
    }

    /** Starts the process. The pipe to its standard input closes with this process, however that ends, and so ends the server. */
    static ServerProcess start(List<String> command, Map<String, String> environment) {
        Path folder = null;
        try {
            folder = Files.createTempDirectory("bolide-");
            ProcessBuilder builder = new ProcessBuilder(command);
            builder.command().add("--ready-file=" + folder.resolve("ready.json"));
            builder.environment().clear();
            builder.environment().putAll(environment);
            builder.redirectOutput(ProcessBuilder.Redirect.DISCARD);
            builder.redirectError(folder.resolve("server.log").toFile());
            return new ServerProcess(builder.start(), folder);
        } catch (IOException error) {
            if (folder != null) {
                remove(folder);
            }
            throw new BolideException("cannot start " + command.get(0) + ": " + error.getMessage(), 0, error);
        }
    }

    long pid() {
        return process.pid();
    }

    /** Waits for the ready file and returns its content; ends the process if there is none in time. */
    String waitUntilReady(Duration limit) {
        long deadline = System.nanoTime() + limit.toNanos();
        while (true) {
            boolean ended = !process.isAlive();
            String ready = read(folder.resolve("ready.json"));
            if (!ready.isEmpty()) {
                return ready;
            }
            if (ended) {
                throw failed("the server ended with status " + process.exitValue() + " while starting");
            }
            if (System.nanoTime() >= deadline) {
                throw failed("the server was not ready within " + limit);
            }
            try {
                Thread.sleep(POLL_MILLIS);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
                throw failed("interrupted while the server was starting");
            }
        }
    }

    private BolideException failed(String why) {
        String message = why + "\n" + log();
        close();
        return new BolideException(message);
    }

    synchronized String log() {
        return lastLog != null ? lastLog : read(folder.resolve("server.log"));
    }

    /** Asks the process to stop and waits for it. */
    synchronized void stop() {
        if (lastLog != null) {
            return;
        }
        String problem = null;
        try {
            process.getOutputStream().close();
            if (!process.waitFor(STOP_SECONDS, TimeUnit.SECONDS)) {
                problem = "the server did not end within " + STOP_SECONDS + " s";
            } else if (process.exitValue() != 0) {
                problem = "the server ended with status " + process.exitValue() + ", expected 0";
            }
        } catch (IOException error) {
            problem = "the server cannot be asked to stop: " + error.getMessage();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            problem = "interrupted while the server was stopping";
        }
        close();
        if (problem != null) {
            throw new BolideException(problem + "\n" + lastLog);
        }
    }

    private synchronized void close() {
        lastLog = log();
        abandon();
        try {
            Runtime.getRuntime().removeShutdownHook(atExit);
        } catch (IllegalStateException error) {
            // The virtual machine ends, and has run it or will.
        }
    }

    /** Ends the process at once if it runs, and removes its folder. */
    private void abandon() {
        process.destroyForcibly();
        remove(folder);
    }

    private static String read(Path file) {
        try {
            byte[] content = Files.readAllBytes(file);
            byte[] end = Arrays.copyOfRange(content, Math.max(0, content.length - LOG_BYTES), content.length);
            return new String(end, StandardCharsets.UTF_8).trim();
        } catch (IOException error) {
            return "";
        }
    }

    private static void remove(Path folder) {
        try (Stream<Path> files = Files.walk(folder)) {
            files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        } catch (IOException | UncheckedIOException error) {
            // It is gone already, or somebody else's by now.
        }
    }
}
