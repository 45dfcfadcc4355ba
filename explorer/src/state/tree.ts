// Databases and their containers, as the server has listed them.

import { signal } from "@preact/signals";
import { type Container, containers, databases } from "../api/account";
import type { Client } from "../api/client";
import { wordsOf } from "./session";

export interface Branch {
  id: string;
  /** `null`: not asked yet. */
  containers: Container[] | null;
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
        return { id, isOpen, containers: isOpen ? await containers(client, id) : null };
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
    change({ containers: await containers(client, id) });
  } catch (error) {
    treeError.value = wordsOf(error);
  }
}
