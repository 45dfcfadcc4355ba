"use strict";

const { spawn } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { setTimeout: pause } = require("node:timers/promises");

const { Admin } = require("./admin.cjs");
const { findBinary } = require("./binary.cjs");
const { Clock } = require("./clock.cjs");
const { deleteAllDatabases } = require("./cosmos.cjs");
const { BolideError, StartError } = require("./errors.cjs");

// The key of the Azure Cosmos DB emulator. It is public, and works on this machine only.
const WELL_KNOWN_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const POLL_MS = 5;
// The server needs at most 13 s to end its requests and to close its store.
const STOP_MS = 20_000;
const LOG_BYTES = 64 * 1024;
const ABSENT = [404, 405, 501];
const OPTIONS = ["dataDir", "virtualClock", "key", "args", "env", "binary", "startTimeoutMs"];

/** The servers that run, so that their folders go with this process. */
const running = new Set();
process.on("exit", () => running.forEach((own) => own.abandon()));

/** What clients and tests need of a server; see index.d.cts. */
class Connection {
  #admin;

  constructor({ endpoint, httpsEndpoint, key, mongo, pid }) {
    Object.assign(this, { endpoint, httpsEndpoint, key, pid });
    this.#admin = new Admin(endpoint, key);
    this.clock = new Clock(this.#admin);
    // Not shown when a server is printed.
    Object.defineProperty(this, "mongo", { value: mongo });
  }

  get connectionString() {
    return `AccountEndpoint=${this.endpoint}/;AccountKey=${this.key};`;
  }

  get mongoUri() {
    if (!this.mongo) throw new BolideError("the server does not listen for MongoDB's drivers");
    return `mongodb://localhost:${encodeURIComponent(this.key)}@${this.mongo.split("://")[1]}/?replicaSet=globaldb`;
  }

  async purge(database, container) {
    const target = `dbs/${encodeURIComponent(database)}/colls/${encodeURIComponent(container)}/purge`;
    return (await this.#admin.request("POST", target, { mode: "force" })).purged;
  }

  async reset() {
    try {
      await this.#admin.request("POST", "reset", {});
    } catch (error) {
      if (!ABSENT.includes(error.status)) throw error;
      await deleteAllDatabases(this.endpoint, this.key);
    }
  }

  /** What another process needs to make the same connection. */
  describe() {
    return { endpoint: this.endpoint, httpsEndpoint: this.httpsEndpoint, key: this.key, mongo: this.mongo, pid: this.pid };
  }
}

/** A server that this process has started. */
class Server extends Connection {
  #own;

  constructor(description, own) {
    super(description);
    this.#own = own;
  }

  log() {
    return this.#own.log();
  }

  async stop() {
    await this.#own.stop();
  }
}

/** A process and the folder of its files. */
class OwnProcess {
  #child;
  #folder;
  #ended;
  #stopping;
  #lastLog;

  constructor(command, environment) {
    this.#folder = fs.mkdtempSync(path.join(os.tmpdir(), "bolide-"));
    const log = fs.openSync(this.#logFile, "w");
    const [program, ...args] = [...command, `--ready-file=${this.#readyFile}`];
    // The pipe to its standard input closes with this process, however that ends, and so ends the server.
    const stdio = ["pipe", "ignore", log];
    // Ctrl-C is for the tests; they stop the server when they have ended.
    this.#child = spawn(program, args, { env: environment, stdio, detached: process.platform !== "win32", windowsHide: true });
    fs.closeSync(log);
    // Neither the process nor the pipe keeps this process alive.
    this.#child.unref();
    this.#child.stdin.unref();
    this.#child.stdin.on("error", () => {});
    this.#ended = new Promise((resolve) => {
      this.#child.on("error", (error) => resolve({ error }));
      this.#child.on("exit", (status, signal) => resolve({ status: status ?? signal }));
    });
    running.add(this);
  }

  get #readyFile() {
    return path.join(this.#folder, "ready.json");
  }

  get #logFile() {
    return path.join(this.#folder, "server.log");
  }

  /** The content of the ready file, once it is there. */
  async ready(limitMs) {
    let end;
    this.#ended.then((how) => (end = how));
    const deadline = performance.now() + limitMs;
    for (;;) {
      try {
        return JSON.parse(fs.readFileSync(this.#readyFile, "utf8"));
      } catch {
        // Not there yet.
      }
      if (end) {
        const how = end.error ? `cannot be started: ${end.error.message}` : `ended with status ${end.status} while starting`;
        throw new StartError(`the server ${how}\n${this.log()}`);
      }
      if (performance.now() >= deadline) throw new StartError(`the server was not ready within ${limitMs} ms\n${this.log()}`);
      await pause(POLL_MS);
    }
  }

  log() {
    return this.#lastLog ?? endOf(this.#logFile);
  }

  stop() {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop() {
    if (process.platform === "win32") this.#child.stdin.end();
    else this.#child.kill("SIGTERM");
    const waiting = new AbortController();
    const late = pause(STOP_MS, { status: undefined }, { signal: waiting.signal }).catch(() => {});
    const how = await Promise.race([this.#ended, late]);
    waiting.abort();
    if (how?.status === undefined) {
      this.#child.kill("SIGKILL");
      await this.#ended;
    }
    this.#lastLog = endOf(this.#logFile);
    this.abandon();
    if (how?.status !== 0) {
      const status = how?.status ?? `none within ${STOP_MS / 1000} s`;
      throw new BolideError(`the server ended with status ${status}, expected 0\n${this.#lastLog}`);
    }
  }

  /** Ends the process at once if it runs, and removes its folder. */
  abandon() {
    running.delete(this);
    this.#child.kill("SIGKILL");
    this.#child.stdin.destroy();
    fs.rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function start(options = {}) {
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown) throw new TypeError(`start: unknown option; there are ${OPTIONS.join(", ")}. value=\`${unknown}\``);
  const key = options.key ?? WELL_KNOWN_KEY;
  const store = options.dataDir === undefined ? "--memory" : `--data-dir=${options.dataDir}`;
  const command = [
    findBinary(options.binary), "--port=0", "--mongo-port=0", "--stop-with-stdin", store, ...clockOptions(options.virtualClock ?? true),
    ...(options.args ?? []),
  ];
  // Options come only from the call, whatever the environment has.
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("BOLIDE_"));
  // In the environment, because every user of the machine may read arguments.
  const own = new OwnProcess(command, { ...Object.fromEntries(inherited), ...options.env, BOLIDE_KEY: key });
  try {
    const { cosmos: endpoint, cosmosTls: httpsEndpoint, mongo, pid } = await own.ready(options.startTimeoutMs ?? 30_000);
    return new Server({ endpoint, httpsEndpoint, mongo, pid, key }, own);
  } catch (error) {
    own.abandon();
    throw error;
  }
}

function clockOptions(virtualClock) {
  if (typeof virtualClock === "boolean") return virtualClock ? ["--virtual-clock"] : [];
  const isDate = Object.prototype.toString.call(virtualClock) === "[object Date]" && !Number.isNaN(virtualClock.getTime());
  if (!isDate) throw new TypeError(`virtualClock: neither a boolean nor a valid Date. value=\`${virtualClock}\``);
  return [`--virtual-clock=${virtualClock.toISOString()}`];
}

function endOf(file) {
  try {
    const content = fs.readFileSync(file);
    return content.subarray(Math.max(0, content.length - LOG_BYTES)).toString().trim();
  } catch {
    return "";
  }
}

module.exports = { Connection, Server, start };
