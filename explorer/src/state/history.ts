// Queries that were run, the newest first. They stay in this browser.

import { signal } from "@preact/signals";
import { keyOf, type Place } from "../api/account";

const NAME = "bolide.history";
const KEPT = 50;

interface Entry {
  of: string;
  text: string;
}

export const history = signal<Entry[]>(read());

function read(): Entry[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(NAME) ?? "[]");
    return Array.isArray(found) ? found.filter((entry): entry is Entry => typeof entry?.of === "string" && typeof entry?.text === "string") : [];
  } catch {
    return [];
  }
}

export function remember(place: Place, text: string): void {
  const of = keyOf(place);
  const others = history.peek().filter((entry) => entry.of !== of || entry.text !== text);
  history.value = [{ of, text }, ...others].slice(0, KEPT);
  try {
    localStorage.setItem(NAME, JSON.stringify(history.peek()));
  } catch {
    // The browser keeps no more: they are there until the page is closed.
  }
}
