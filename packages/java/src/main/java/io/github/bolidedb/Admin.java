package io.github.bolidedb;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Sends requests below {@code /_bolide/} of a server on this machine, with the account key. */
final class Admin {
    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    // A proxy of the system must not see requests to this machine.
    private final HttpClient client =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).proxy(HttpClient.Builder.NO_PROXY).build();
    private final String endpoint;
    private final String key;

    Admin(String endpoint, String key) {
        this.endpoint = endpoint;
        this.key = key;
    }

    /** Returns the JSON text of the answer. {@code path} is escaped already; an empty body is sent as none. */
    String request(String method, String path, String body) {
        String what = method + " /_bolide/" + path;
        HttpRequest request = HttpRequest.newBuilder(URI.create(endpoint + "/_bolide/" + path))
                .header("Authorization", "Bearer " + key)
                .header("Content-Type", "application/json")
                .timeout(TIMEOUT)
                .method(method, body.isEmpty() ? BodyPublishers.noBody() : BodyPublishers.ofString(body))
                .build();
        HttpResponse<String> answer;
        try {
            answer = client.send(request, BodyHandlers.ofString());
        } catch (IOException error) {
            throw new BolideException(what + ": " + error, 0, error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new BolideException(what + ": interrupted", 0, error);
        }
        if (answer.statusCode() >= 300) {
            String message = text(answer.body(), "message").orElse(answer.body());
            throw new BolideException(what + ": " + answer.statusCode() + " " + message, answer.statusCode(), null);
        }
        return answer.body();
    }

    /** A whole number of a JSON object that the server wrote. */
    static long number(String json, String name) {
        Matcher found = Pattern.compile("\"" + Pattern.quote(name) + "\"\\s*:\\s*(-?\\d+)").matcher(json);
        if (!found.find()) {
            throw new BolideException("the server's answer has no " + name + ". answer=`" + json + "`");
        }
        return Long.parseLong(found.group(1));
    }

    /** A text of a JSON object that the server wrote, none if it is missing or null; quotes and reverse solidi in it are the only escapes that are resolved. */
    static Optional<String> text(String json, String name) {
        Matcher found = Pattern.compile("\"" + Pattern.quote(name) + "\"\\s*:\\s*\"((?:[^\"\\\\]|\\\\.)*)\"").matcher(json);
        return found.find() ? Optional.of(found.group(1).replaceAll("\\\\([\"\\\\/])", "$1")) : Optional.empty();
    }
}
