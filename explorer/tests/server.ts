// A server of its own for each test, in memory or with a directory, with a virtual clock.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { authorization, signerOf } from "../src/api/sign";
import { test as base, expect, type Page } from "@playwright/test";

/** Where the server's clock begins. */
export const START = Date.parse("2030-01-01T00:00:00Z");

export const WELL_KNOWN_KEY =
  "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

export class Server {
  /** Where pages of the tests may ask. */
  static readonly origins = new Set<string>();

  private constructor(
    private readonly child: ChildProcess,
    private readonly files: string,
    /** Without a slash at its end. */
    readonly http: string,
    readonly https: string,
    /** Where the page is opened: one of the two. */
    readonly url: string,
    /** The port for MongoDB's drivers. */
    readonly mongo: number,
  ) {
    Server.origins.add(http).add(https);
  }

  static async start(options: { args?: string[]; onDisk?: boolean; isHttps?: boolean } = {}): Promise<Server> {
    const binary = process.env["BOLIDE_BINARY"];
    if (binary === undefined) throw new Error("BOLIDE_BINARY names the server's binary");
    const files = await mkdtemp(join(tmpdir(), "bolide-explorer-"));
    const ready = join(files, "ready.json");
    const where = options.onDisk === true ? ["--data-dir", join(files, "data")] : ["--memory"];
    const clock = `--virtual-clock=${new Date(START).toISOString()}`;
    const ports = ["--port", "0", "--mongo-port", "0", "--ready-file", ready];
    const child = spawn(binary, [...where, clock, ...ports, ...(options.args ?? [])], { stdio: ["ignore", "ignore", "inherit"] });
    for (let tries = 0; ; tries += 1) {
      try {
        const said = JSON.parse(await readFile(ready, "utf8")) as { cosmos: string; cosmosTls: string; mongo: string };
        const [http, https] = [said.cosmos, said.cosmosTls].map((url) => url.replace(/\/$/, "")) as [string, string];
        return new Server(child, files, http, https, options.isHttps === true ? https : http, Number(said.mongo.split(":").at(-1)));
      } catch (error) {
        if (child.exitCode !== null || tries > 600) throw error;
        await pause(50);
      }
    }
  }

  /** A request of the admin API with the well-known key. */
  async admin(method: string, path: string, body?: unknown): Promise<unknown> {
    return this.send(method, `_bolide/${path}`, { authorization: `Bearer ${WELL_KNOWN_KEY}` }, body);
  }

  /** A request of the protocol of Cosmos DB. */
  async cosmos(method: string, path: string, body?: unknown, more: Record<string, string> = {}): Promise<unknown> {
    const sign = await signerOf(WELL_KNOWN_KEY);
    const date = new Date().toUTCString();
    const authorized = await authorization(sign!, method, path, date);
    const headers = { authorization: authorized, "x-ms-date": date, "x-ms-version": "2020-07-15", ...more };
    return this.send(method, path, headers, body);
  }

  /** Creates an item. `path`: that of the items of a container. */
  async item(path: string, key: string, item: unknown): Promise<unknown> {
    return this.cosmos("POST", path, item, { "x-ms-documentdb-partitionkey": JSON.stringify([key]) });
  }

  private async send(method: string, path: string, headers: Record<string, string>, body: unknown): Promise<unknown> {
    const response = await fetch(`${this.http}/${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGTERM");
    await ended;
    await rm(this.files, { recursive: true, force: true });
  }
}

export { expect, type Page };

/** How the server of a test is started. */
export interface Options {
  /** With its data on the disk, and its pages over HTTPS. */
  isOnDisk: boolean;
}

interface Fixtures {
  /** Started before the test, and ended after it. */
  server: Server;
  /** What the page of the test asked of other origins than the server's, what its policy refused, and errors in it: none is allowed. */
  faults: string[];
}

export const test = base.extend<Fixtures & Options>({
  isOnDisk: [false, { option: true }],
  server: async ({ isOnDisk }, use) => {
    const server = await Server.start({ onDisk: isOnDisk, isHttps: isOnDisk });
    await use(server);
    await server.stop();
  },
  faults: [
    async ({ page }, use) => {
      const faults: string[] = [];
      page.on("request", (request) => {
        const { origin } = new URL(request.url());
        if (!Server.origins.has(origin)) faults.push(`asked ${request.url()}`);
      });
      page.on("pageerror", (error) => faults.push(error.message));
      await page.exposeFunction("reportRefusal", (what: string) => faults.push(what));
      await page.addInitScript(() => {
        addEventListener("securitypolicyviolation", (event) => {
          // Whoever types over coloured text in an editor makes the browser set the style that this text had, which is refused, and is not needed.
          const isTyping = event.effectiveDirective === "style-src-attr" && (event.target as Element).closest?.(".cm-content");
          if (!isTyping) (window as never as { reportRefusal: (what: string) => void }).reportRefusal(`refused: ${event.effectiveDirective} ${event.blockedURI}`);
        });
      });
      await use(faults);
      expect(faults).toEqual([]);
    },
    { auto: true },
  ],
});

/** Makes a container, as the page does. */
export async function makeContainer(page: Page, name: string, options: { key?: string; ttl?: string } = {}): Promise<void> {
  await page.getByRole("button", { name: "New container" }).first().click();
  const form = page.getByRole("form", { name: "New container" });
  await form.getByLabel("Database").fill("shop");
  await form.getByLabel("Container", { exact: true }).fill(name);
  await form.getByLabel("Partition key").fill(options.key ?? "/id");
  await form.getByLabel("Default time to live").fill(options.ttl ?? "");
  await form.getByRole("button", { name: "Create" }).click();
  await expect(page.getByRole("heading", { name })).toBeVisible();
}

/** Replaces the text of an editor. */
export async function type(page: Page, label: string, text: string): Promise<void> {
  const editor = page.getByRole("textbox", { name: label });
  await editor.click();
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.insertText(text);
}

/** Saves a new item. */
export async function makeItem(page: Page, item: unknown): Promise<void> {
  await page.getByRole("button", { name: "New item" }).click();
  await type(page, "Item as JSON", JSON.stringify(item));
  await page.getByRole("button", { name: "Save" }).click();
  const id = (item as { id: string }).id;
  await expect(page.getByRole("option", { name: id })).toBeVisible();
}
