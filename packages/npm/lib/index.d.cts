/** How a server is started. */
export interface StartOptions {
  /** Where it keeps its data; without one everything is in memory. */
  dataDir?: string;
  /** Whether the clock stands still until `db.clock` moves it (the default), or its first instant; false for the system's clock. */
  virtualClock?: boolean | Date;
  /** The account key, base64; by default the emulator's well-known key. */
  key?: string;
  /** Further options of the server, such as `["--enforce-throughput"]`. */
  args?: string[];
  /** Further environment variables. Variables of the caller that begin with `BOLIDE_` are not passed on: options come only from here. */
  env?: Record<string, string>;
  /** The binary to start, see `findBinary`. */
  binary?: string;
  /** How long the start may take, in milliseconds; 30,000 by default. */
  startTimeoutMs?: number;
}

/** A time span; the parts add up to a whole number of milliseconds that is not negative. */
export interface Duration {
  weeks?: number;
  days?: number;
  hours?: number;
  minutes?: number;
  seconds?: number;
  milliseconds?: number;
}

/**
 * Reads and moves the clock of a server. It counts milliseconds and stands still until it is moved. Everything in the server follows it: expiry,
 * `_ts`, TTL indexes.
 */
export class Clock {
  private constructor();
  /** Resolves to the time of the server. */
  now(): Promise<Date>;
  /** Moves the clock forward, and resolves to the new time. Rejects with a RequestError if the server runs on the system's clock. */
  advance(by: Duration): Promise<Date>;
  /**
   * Moves the clock to an instant, forward or back, and resolves to it. When it is moved back, time stands still for everything that is stored until
   * it has caught up.
   */
  set(instant: Date): Promise<Date>;
}

/** What clients and tests need of a server. */
export interface Connection {
  /** Such as `http://127.0.0.1:41234`, for clients of Cosmos DB. */
  readonly endpoint: string;
  /** The same port with TLS, under a certificate that the server made. */
  readonly httpsEndpoint: string;
  /** The account key, base64. */
  readonly key: string;
  /** The connection string for clients of Cosmos DB. */
  readonly connectionString: string;
  /** The connection string for MongoDB's drivers; throws a BolideError if the server was started with `--no-mongo`. */
  readonly mongoUri: string;
  /** The id of the process. */
  readonly pid: number;
  readonly clock: Clock;
  /**
   * Removes what has expired in a container, and resolves to how many items that were. Clients cannot tell the difference, because expired items
   * are absent before, too. With a virtual clock nothing else removes them.
   */
  purge(database: string, container: string): Promise<number>;
  /** Removes all databases with everything in them. Clients stay connected. */
  reset(): Promise<void>;
}

/** A server that this process has started. It never outlives this process, and does not keep it alive. */
export class Server implements Connection {
  private constructor();
  readonly endpoint: string;
  readonly httpsEndpoint: string;
  readonly key: string;
  readonly connectionString: string;
  readonly mongoUri: string;
  readonly pid: number;
  readonly clock: Clock;
  purge(database: string, container: string): Promise<number>;
  reset(): Promise<void>;
  /** Returns the end of what the server wrote to standard error, also after it has ended. */
  log(): string;
  /**
   * Stops the server: running requests end, a data directory is complete. May be called again. Rejects with a BolideError if it did not end with
   * status 0; it has ended in any case.
   */
  stop(): Promise<void>;
}

/** Starts a server and resolves when it is ready; rejects with a StartError that has the end of what the server wrote. */
export function start(options?: StartOptions): Promise<Server>;

/** Returns the server that the global setup of this test run has started; throws a BolideError if there is none. */
export function server(): Connection;

/**
 * Returns the path of the binary. In this order: `binary`, the environment variable `BOLIDE_BIN`, the package of this platform, `bolide` on the
 * `PATH`. Throws a StartError if there is none.
 */
export function findBinary(binary?: string): string;

/** The base of all errors of this package. */
export class BolideError extends Error {}

/** The server did not start. */
export class StartError extends BolideError {}

/** The server refused a request of the admin API, or did not answer. */
export class RequestError extends BolideError {
  /** The HTTP status, or undefined without an answer. */
  readonly status?: number;
}
