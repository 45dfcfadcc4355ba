// Requests to the server that the page came from. Nothing else is ever asked.

import { parse } from "./json";
import { authorization, type Signer, signerOf } from "./sign";

/** The version of the protocol that the page speaks. */
const VERSION = "2020-07-15";

/** A response that is not a success, in the server's words. */
export class ServerError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
    this.name = "ServerError";
  }
}

export interface Answer<T> {
  body: T;
  headers: Headers;
  /** Request units. */
  charge: number;
  /** Milliseconds, seen from here. */
  took: number;
}

export interface Options {
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Whoever is signed in. The key is in memory only. */
export class Client {
  private constructor(
    private readonly key: string,
    private readonly sign: Signer,
  ) {}

  /** Signs in. Throws if the key is not one of this server's. */
  static async signIn(key: string): Promise<Client> {
    const client = await Client.withKey(key);
    await client.admin("GET", "clock");
    return client;
  }

  /** With a key of which the server has said that it is its own. */
  static async withKey(key: string): Promise<Client> {
    const sign = await signerOf(key);
    if (sign === null) throw new Error("A key is base64 text; this is not.");
    return new Client(key.trim(), sign);
  }

  /** A request of the protocol of Cosmos DB. `path`: encoded, without a slash at its beginning. */
  async cosmos<T>(method: string, path: string, options: Options = {}): Promise<Answer<T>> {
    const date = new Date().toUTCString();
    const headers = {
      authorization: await authorization(this.sign, method, path, date),
      "x-ms-date": date,
      "x-ms-version": VERSION,
      ...options.headers,
    };
    return parsed<T>(await send(method, `/${path}`, { ...options, headers }));
  }

  /** A request of the admin API. `path`: encoded, below `/_bolide/`. */
  async admin<T>(method: string, path: string, options: Options = {}): Promise<Answer<T>> {
    return parsed<T>(await this.adminText(method, path, options));
  }

  /** The same, with the text of the answer. */
  async adminText(method: string, path: string, options: Options = {}): Promise<Answer<string>> {
    const headers = { authorization: `Bearer ${this.key}`, ...options.headers };
    return send(method, `/_bolide/${path}`, { ...options, headers });
  }
}

/** A request that needs no key. */
export async function open<T>(path: string): Promise<T> {
  return parsed<T>(await send("GET", path, {})).body;
}

function parsed<T>(answer: Answer<string>): Answer<T> {
  return { ...answer, body: (answer.body === "" ? null : parse(answer.body)) as T };
}

async function send(method: string, url: string, options: Options): Promise<Answer<string>> {
  const began = performance.now();
  const response = await ask(method, url, options);
  const text = await response.text();
  // 304: nothing has changed, which is an answer of the change feed.
  if (!response.ok && response.status !== 304) throw errorOf(response.status, text);
  return {
    body: text,
    headers: response.headers,
    charge: Number(response.headers.get("x-ms-request-charge") ?? 0),
    took: performance.now() - began,
  };
}

async function ask(method: string, url: string, options: Options): Promise<Response> {
  const headers: Record<string, string> = { accept: "application/json", ...options.headers };
  const init: RequestInit = { method, headers, cache: "no-store", credentials: "omit", redirect: "error" };
  if (options.signal !== undefined) init.signal = options.signal;
  if (options.body !== undefined) {
    init.body = typeof options.body === "string" ? options.body : JSON.stringify(options.body);
    headers["content-type"] ??= "application/json";
  }
  try {
    return await fetch(url, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is it still running?");
  }
}

function errorOf(status: number, text: string): ServerError {
  try {
    const { code, message } = JSON.parse(text) as { code?: unknown; message?: unknown };
    return new ServerError(status, String(code ?? status), String(message ?? text));
  } catch {
    return new ServerError(status, String(status), text === "" ? `The server answered ${status}.` : text);
  }
}

/** A segment of a path. */
export function segment(name: string): string {
  return encodeURIComponent(name);
}
