package io.github.bolidedb;

/** The server did not start or stop as it should, or refused a request of the admin API. */
public class BolideException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final int status;

    BolideException(String message, int status, Throwable cause) {
        super(message, cause);
        this.status = status;
    }

    BolideException(String message) {
        this(message, 0, null);
    }

    /** The HTTP status of the refusal; 0 if there was no answer, or no request. */
    public int status() {
        return status;
    }
}
