// What is shown, as the part of the address after `#`, so that pages can be linked, and the browser's buttons work.

import { signal } from "@preact/signals";
import type { Place } from "../api/account";

/** Views of a container, or of a collection of MongoDB. */
export const VIEWS = ["items", "aggregate", "query", "ttl", "changes", "scripts", "settings"] as const;
export type View = (typeof VIEWS)[number];

/** Pages of the server, and their addresses: without a slash, so that none is that of a container. */
export const PAGES = { requests: "#requests", metrics: "#metrics", faults: "#faults" } as const;

export type Shown = { page: "connect" } | { page: keyof typeof PAGES } | { page: "container"; place: Place; view: View };

function parse(hash: string): Shown {
  const page = (Object.keys(PAGES) as (keyof typeof PAGES)[]).find((name) => hash === PAGES[name]);
  if (page !== undefined) return { page };
  const [database, container, view] = hash.replace(/^#\/?/, "").split("/").map(decode);
  if (database === undefined || container === undefined || database === "" || container === "") return { page: "connect" };
  const known = VIEWS.find((name) => name === view) ?? "items";
  return { page: "container", place: { database, container }, view: known };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const shown = signal<Shown>(parse(location.hash));

addEventListener("hashchange", () => {
  shown.value = parse(location.hash);
});

export function linkTo(place: Place, view: View = "items"): string {
  return `#/${[place.database, place.container, view].map(encodeURIComponent).join("/")}`;
}

export function show(place: Place, view: View = "items"): void {
  location.hash = linkTo(place, view);
}
