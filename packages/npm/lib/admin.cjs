"use strict";

const http = require("node:http");

const { RequestError } = require("./errors.cjs");

const TIMEOUT_MS = 60_000;

/** Sends requests below `/_bolide/` of a server on this machine, with the account key. */
class Admin {
  #endpoint;
  #key;

  constructor(endpoint, key) {
    this.#endpoint = endpoint;
    this.#key = key;
  }

  /** Resolves to the JSON object of the answer, {} for an empty one. `path` is relative to `/_bolide/` and escaped already. */
  request(method, path, body) {
    const headers = { authorization: `Bearer ${this.#key}`, "content-type": "application/json" };
    return send(`${this.#endpoint}/_bolide/${path}`, method, headers, body === undefined ? "" : JSON.stringify(body));
  }
}

/** Sends a request and resolves to the JSON object of the answer. */
function send(url, method, headers, content) {
  const what = `${method} ${new URL(url).pathname}`;
  const options = {
    method,
    headers: { ...headers, "content-length": Buffer.byteLength(content) },
    // No shared agent: tests replace it, and connections that are kept open keep a process alive.
    agent: false,
    timeout: TIMEOUT_MS,
  };
  return new Promise((resolve, reject) => {
    const failed = (error) => reject(new RequestError(`${what}: ${error.message}`));
    const request = http.request(url, options, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("error", failed);
      answer.on("end", () => {
        const text = Buffer.concat(parts).toString();
        if (answer.statusCode < 300) resolve(text.trim() ? JSON.parse(text) : {});
        else reject(new RequestError(`${what}: ${answer.statusCode} ${messageOf(text)}`, answer.statusCode));
      });
    });
    request.on("timeout", () => request.destroy(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)));
    request.on("error", failed);
    request.end(content);
  });
}

/** The message of an error's body, or the body as it is. */
function messageOf(text) {
  try {
    return JSON.parse(text).message ?? text;
  } catch {
    return text;
  }
}

module.exports = { Admin, send };
