// Items of a file: a JSON array, one item, or an item in each line.

import { type Container, partitionKeyOf, type Place, upsertItem } from "./account";
import type { Client } from "./client";
import { parse } from "./json";

/** Requests at once. */
const AT_ONCE = 4;

/** Throws if a part of the text is not JSON, before anything is stored. */
export function itemsOf(text: string): unknown[] {
  const trimmed = text.trim();
  if (trimmed === "") return [];
  try {
    const whole = parse(trimmed);
    return Array.isArray(whole) ? whole : [whole];
  } catch {
    return trimmed.split(/\r?\n/).map((line, at) => {
      try {
        return parse(line);
      } catch (error) {
        throw new Error(`Line ${at + 1} is not JSON: ${error instanceof Error ? error.message : String(error)}`);
      }
    });
  }
}

/** Stores items, and replaces those that are there. Stops at the first one that is refused. */
export async function upload(
  client: Client,
  place: Place,
  container: Container,
  items: readonly unknown[],
  onProgress: (done: number) => void,
): Promise<void> {
  let [next, done] = [0, 0];
  let isOver = false;
  const work = async (): Promise<void> => {
    while (next < items.length && !isOver) {
      const at = next++;
      const item = items[at];
      try {
        await upsertItem(client, place, partitionKeyOf(item, container.partitionKey), JSON.stringify(item));
      } catch (error) {
        isOver = true;
        throw new Error(`Item ${at + 1} of ${items.length}: ${error instanceof Error ? error.message : String(error)}`);
      }
      onProgress(++done);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}
