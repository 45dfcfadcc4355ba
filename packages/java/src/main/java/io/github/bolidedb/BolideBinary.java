package io.github.bolidedb;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** Where the binary is. */
final class BolideBinary {
    private BolideBinary() {}

    /**
     * Returns the path of the binary: {@code named}, which may be null, else the environment variable {@code BOLIDE_BIN}, else {@code bolide} on the
     * {@code PATH}.
     */
    static Path find(Path named, Map<String, String> environment) {
        if (named != null) {
            return checked("binary", named);
        }
        String variable = environment.getOrDefault("BOLIDE_BIN", "");
        if (!variable.isEmpty()) {
            return checked("BOLIDE_BIN", Path.of(variable));
        }
        String name = File.separatorChar == '\\' ? "bolide.exe" : "bolide";
        for (String folder : environment.getOrDefault("PATH", "").split(File.pathSeparator)) {
            Path place = Path.of(folder, name);
            if (!folder.isEmpty() && isExecutable(place)) {
                return place;
            }
        }
        throw new BolideException("there is no bolide binary: BOLIDE_BIN is not set, and PATH has none; install Bolide");
    }

    private static Path checked(String source, Path path) {
        if (!isExecutable(path)) {
            throw new BolideException(source + ": not an executable file. value=`" + path + "`");
        }
        return path.toAbsolutePath();
    }

    private static boolean isExecutable(Path path) {
        return Files.isRegularFile(path) && Files.isExecutable(path);
    }
}
