// The queries that are open for each container, as tabs. They stay in this browser.

import { keyOf, type Place } from "../api/account";

/** Tabs of a container: at most. */
export const MOST_TABS = 20;

/** The language of queries, and the first one. */
const NEW = {
  sql: "SELECT * FROM c",
  pipeline: "[\n  { $match: { } },\n  { $limit: 20 }\n]",
} as const;
export type Kind = keyof typeof NEW;

export interface Tab {
  /** Another one for each tab of the container. */
  id: number;
  text: string;
}

export interface Tabs {
  list: Tab[];
  /** The one that is shown. */
  shown: number;
}

/** The name under which the browser keeps them. */
export const storedAs = (place: Place, kind: Kind): string => `bolide.${kind === "sql" ? "queries" : kind}.${keyOf(place)}`;

export function readTabs(place: Place, kind: Kind): Tabs {
  const first: Tabs = { list: [{ id: 1, text: NEW[kind] }], shown: 1 };
  try {
    const found = JSON.parse(localStorage.getItem(storedAs(place, kind)) ?? "null") as Tabs | null;
    const list = (found?.list ?? []).filter(({ id, text }) => Number.isInteger(id) && typeof text === "string").slice(0, MOST_TABS);
    if (list.length === 0) return first;
    return withShown({ list, shown: found?.shown ?? 1 }, found?.shown ?? 1);
  } catch {
    return first;
  }
}

export function keepTabs(place: Place, kind: Kind, tabs: Tabs): void {
  try {
    localStorage.setItem(storedAs(place, kind), JSON.stringify(tabs));
  } catch {
    // The browser keeps no more: they are there until the page is closed.
  }
}

export function withNew(tabs: Tabs, kind: Kind): Tabs {
  const id = Math.max(...tabs.list.map((tab) => tab.id)) + 1;
  return { list: [...tabs.list, { id, text: NEW[kind] }], shown: id };
}

/** Without a tab; the last one stays. */
export function without(tabs: Tabs, id: number): Tabs {
  const at = tabs.list.findIndex((tab) => tab.id === id);
  const list = tabs.list.filter((tab) => tab.id !== id);
  const next = list[Math.min(at, list.length - 1)];
  return next === undefined ? tabs : { list, shown: tabs.shown === id ? next.id : tabs.shown };
}

/** With a tab shown, or the first one if there is none of that id. */
export function withShown({ list }: Tabs, id: number): Tabs {
  const shown = list.find((tab) => tab.id === id) ?? list[0];
  return { list, shown: shown?.id ?? 1 };
}
