// Databases and their containers, as the server has listed them.

import { signal } from "@preact/signals";
import { containers, databases } from "../api/account";
import type { Client } from "../api/client";
import { collections } from "../mongo/commands";
import { wordsOf } from "./session";

/** A container, and what it is for MongoDB's drivers. */
export interface Leaf {
  id: string;
  kind: "container" | "collection" | "view";
}

export interface Branch {
  id: string;
  /** `null`: not asked yet. */
  containers: Leaf[] | null;
  isOpen: boolean;
}

/** `null`: not asked yet. */
export const tree = signal<Branch[] | null>(null);
export const treeError = signal<string | null>(null);

/** Lists everything that is shown again. */
export async function refresh(client: Client): Promise<void> {
  try {
    const before = new Map((tree.peek() ?? []).map((branch) => [branch.id, branch]));
    const found = await databases(client);
    // A few databases are opened at once; with many of them the list stays short.
    const opens = found.length <= 5;
    tree.value = await Promise.all(
      found.map(async ({ id }) => {
        const isOpen = before.get(id)?.isOpen ?? opens;
        return { id, isOpen, containers: isOpen ? await leaves(client, id) : null };
      }),
    );
    treeError.value = null;
  } catch (error) {
    treeError.value = wordsOf(error);
  }
}

/** Opens or closes a database. */
export async function toggle(client: Client, id: string): Promise<void> {
  const change = (with_: Partial<Branch>): void => {
    tree.value = (tree.peek() ?? []).map((branch) => (branch.id === id ? { ...branch, ...with_ } : branch));
  };
  const branch = tree.peek()?.find((branch) => branch.id === id);
  if (branch === undefined) return;
  change({ isOpen: !branch.isOpen });
  if (branch.isOpen || branch.containers !== null) return;
  try {
    change({ containers: await leaves(client, id) });
  } catch (error) {
    treeError.value = wordsOf(error);
  }
}

async function leaves(client: Client, database: string): Promise<Leaf[]> {
  // A server with --no-mongo has collections, too, but shows them as containers.
  const [all, known] = await Promise.all([containers(client, database), collections(client, database).catch(() => [])]);
  const views = new Map(known.map(({ name, isView }) => [name, isView]));
  return all.map(({ id }) => {
    const isView = views.get(id);
    return { id, kind: isView === undefined ? "container" : isView ? "view" : "collection" };
  });
}
