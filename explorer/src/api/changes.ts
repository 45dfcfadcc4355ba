// The change feed of a container: what has changed in each of its ranges since a position.

import { type Item, pathOf, type Place } from "./account";
import type { Client } from "./client";

/** `latest`: the newest version of each item. `all`: every version, and deletes. */
export type Mode = "latest" | "all";

export interface Change {
  kind: "write" | "create" | "replace" | "delete" | "expired";
  id: string;
  lsn: number;
  /** Seconds. */
  at: number;
  /** `null` for a delete. */
  item: Item | null;
}

interface Version {
  current: Item;
  metadata: { operationType: "create" | "replace" | "delete"; lsn: number; crts: number; timeToLiveExpired?: boolean; id?: string };
}

/** Follows the feed of a container. */
export class Feed {
  /** Positions by range; `null`: where the feed begins. */
  private positions = new Map<string, string | null>();

  /** `start`: from the beginning, which only `latest` can do, or from now on. */
  constructor(
    private readonly client: Client,
    private readonly place: Place,
    private readonly mode: Mode,
    private readonly start: "beginning" | "now",
  ) {}

  /** What has changed since the last call: one page of each range. */
  async next(): Promise<Change[]> {
    const changes: Change[] = [];
    for (const range of await this.ranges()) changes.push(...(await this.page(range)));
    return changes;
  }

  /** A range that was split is followed on in its children, which a feed reads from the parent's position. */
  private async ranges(): Promise<string[]> {
    const path = `${pathOf(this.place)}/pkranges`;
    const { body } = await this.client.cosmos<{ PartitionKeyRanges: { id: string; parents?: string[] }[] }>("GET", path);
    const ranges = body.PartitionKeyRanges;
    for (const { id, parents } of ranges) {
      if (this.positions.has(id)) continue;
      const parent = parents?.findLast((parent) => this.positions.has(parent));
      this.positions.set(id, parent === undefined ? null : (this.positions.get(parent) ?? null));
    }
    return ranges.map((range) => range.id);
  }

  private async page(range: string): Promise<Change[]> {
    const position = this.positions.get(range) ?? (this.start === "now" ? "*" : null);
    const path = `${pathOf(this.place)}/docs`;
    const headers: Record<string, string> = {
      "a-im": this.mode === "all" ? "Full-Fidelity Feed" : "Incremental Feed",
      "x-ms-documentdb-partitionkeyrangeid": range,
      "x-ms-max-item-count": "100",
      ...(this.mode === "all" ? { "x-ms-cosmos-changefeed-wire-format-version": "2021-09-15" } : {}),
      ...(position === null ? {} : { "if-none-match": position }),
    };
    const answer = await this.client.cosmos<{ Documents: unknown[] } | null>("GET", path, { headers });
    const etag = answer.headers.get("etag");
    if (etag !== null) this.positions.set(range, etag);
    return (answer.body?.Documents ?? []).map((row) => (this.mode === "all" ? changeOf(row as Version) : latest(row as Item)));
  }
}

function latest(item: Item): Change {
  return { kind: "write", id: item.id, lsn: Number(item["_lsn"] ?? 0), at: item._ts, item };
}

function changeOf({ current, metadata }: Version): Change {
  const isDelete = metadata.operationType === "delete";
  const kind = metadata.timeToLiveExpired === true ? "expired" : metadata.operationType;
  const id = metadata.id ?? current.id;
  return { kind, id, lsn: metadata.lsn, at: metadata.crts, item: isDelete ? null : current };
}
