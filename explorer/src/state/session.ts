// Who is signed in, and what the server says of itself.

import { signal } from "@preact/signals";
import { Client, open } from "../api/client";

/** What the server says of itself, in the page or at `/_explorer/session`. */
export interface Server {
  version: string;
  endpoint: string;
  /** The key that everybody knows, if the server has it. */
  key: string | null;
}

export const server = signal<Server | null>(null);
export const client = signal<Client | null>(null);
/** Why the page cannot begin. */
export const broken = signal<string | null>(null);

/** Asks the server what it is, and signs in if its key is the one that everybody knows. */
export async function begin(): Promise<void> {
  try {
    server.value = said() ?? (await open<Server>("/_explorer/session"));
    const key = server.value.key;
    if (key !== null) client.value = await Client.withKey(key);
  } catch (error) {
    broken.value = wordsOf(error);
  }
}

/** `null`: the page is served by something else, as while it is developed. */
function said(): Server | null {
  const text = document.querySelector('meta[name="session"]')?.getAttribute("content") ?? "";
  return text.startsWith('{"') ? (JSON.parse(text) as Server) : null;
}

/** Throws if the key is not one of the server's. */
export async function signIn(key: string): Promise<void> {
  client.value = await Client.signIn(key);
}

export function signOut(): void {
  client.value = null;
}

/** An error in words for people. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
