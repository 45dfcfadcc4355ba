// A collection of MongoDB, or a view: its documents, pipelines, time to live, changes and settings.

import type { Container, Place } from "../api/account";
import type { Client } from "../api/client";
import type { Collection } from "../mongo/commands";
import type { View } from "../state/place";
import { Empty } from "../ui/notice";
import { Aggregate } from "./collection/aggregate";
import { Documents } from "./collection/documents";
import { CollectionSettings } from "./collection/settings";
import { ChangeStream } from "./collection/stream";
import { CollectionTimeToLive } from "./collection/time-to-live";
import { Query } from "./container/query";

interface Properties {
  client: Client;
  place: Place;
  container: Container;
  collection: Collection;
  view: View;
}

export function CollectionView({ client, place, container, collection, view }: Properties) {
  const views = { client, place: { ...place, shardKey: shardKeyOf(container) }, collection };
  if (collection.isView && ["query", "ttl", "changes"].includes(view)) {
    return (
      <Empty title="This is a view">
        <p>Its documents are made by its pipeline when they are read. Look at the collection that it reads.</p>
      </Empty>
    );
  }
  switch (view) {
    case "aggregate":
      return <Aggregate {...views} />;
    case "query":
      return <Query client={client} place={place} container={container} />;
    case "ttl":
      return <CollectionTimeToLive {...views} />;
    case "changes":
      return <ChangeStream {...views} />;
    case "settings":
      return <CollectionSettings {...views} container={container} />;
    default:
      return <Documents {...views} />;
  }
}

/** The path of the shard key; `null`: the collection is not sharded, and has a key of the system. */
function shardKeyOf({ partitionKey }: Container): string | null {
  const [path] = partitionKey.paths;
  return path === undefined || path === "/_partitionKey" ? null : path.slice(1).replaceAll("/", ".");
}
