// The requests that the server has answered last, and the faults that it injects.

import type { Client } from "./client";

export interface Answered {
  number: number;
  /** Server time. */
  atMs: number;
  method: string;
  path: string;
  /** `null`: it was refused before that was known. */
  operation: string | null;
  status: number;
  subStatus: number;
  /** Request units. */
  charge: number;
  ms: number;
}

/** Those after a number, oldest first, and the number of the newest. */
export async function requestsAfter(client: Client, number: number): Promise<{ last: number; requests: Answered[] }> {
  return (await client.admin<{ last: number; requests: Answered[] }>("GET", `requests?after=${number}`)).body;
}

/** The rules that still apply. */
export async function faultRules(client: Client): Promise<unknown[]> {
  return (await client.admin<unknown[]>("GET", "faults/rules")).body;
}

/** Replaces all of them. */
export async function setFaultRules(client: Client, text: string): Promise<void> {
  await client.admin("PUT", "faults/rules", { body: text });
}
