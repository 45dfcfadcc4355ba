// The requests that the server has answered last, and the faults that it injects.

import type { Client } from "./client";

export interface Answered {
  number: number;
  protocol: "cosmos" | "mongodb";
  /** Server time. */
  atMs: number;
  /** Of MongoDB: the name of the command. */
  method: string;
  /** Of MongoDB: the namespace. */
  path: string;
  /** `null`: it was refused before that was known. */
  operation: string | null;
  /** Of MongoDB: the code of the error, 0 without one. */
  status: number;
  subStatus: number;
  /** Request units. */
  charge: number;
  ms: number;
}

export interface Recent {
  /** Another one for each start of the server, with which the numbers begin anew. */
  run: string;
  /** The number of the newest. */
  last: number;
  /** Oldest first. */
  requests: Answered[];
}

/** Those after a number. */
export async function requestsAfter(client: Client, number: number): Promise<Recent> {
  return (await client.admin<Recent>("GET", `requests?after=${number}`)).body;
}

/** The rules that still apply. */
export async function faultRules(client: Client): Promise<unknown[]> {
  return (await client.admin<unknown[]>("GET", "faults/rules")).body;
}

/** Replaces all of them. */
export async function setFaultRules(client: Client, text: string): Promise<void> {
  await client.admin("PUT", "faults/rules", { body: text });
}
