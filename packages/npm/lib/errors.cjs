"use strict";

/** The base of all errors of this package. */
class BolideError extends Error {
  name = "BolideError";
}

/** The server did not start: no binary, or it ended, or it took too long. The message has the end of what it wrote to standard error. */
class StartError extends BolideError {
  name = "StartError";
}

/** The server refused a request of the admin API, or did not answer; `status` is the HTTP status, or undefined without an answer. */
class RequestError extends BolideError {
  name = "RequestError";

  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

module.exports = { BolideError, RequestError, StartError };
