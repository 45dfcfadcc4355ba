// A container: its items, queries, time to live and settings.

import { useEffect, useState } from "preact/hooks";
import { type Container, type Place, readContainer } from "../api/account";
import { type Collection, collections } from "../mongo/commands";
import { linkTo, type View } from "../state/place";
import { type Client, ServerError } from "../api/client";
import { client, wordsOf } from "../state/session";
import { lazily } from "../ui/lazy";
import { Problem } from "../ui/notice";
import { Changes } from "./container/changes";
import { Items } from "./container/items";
import { Query } from "./container/query";
import { Scripts } from "./container/scripts";
import { Settings } from "./container/settings";
import { TimeToLive } from "./container/time-to-live";

const OF_CONTAINER: [View, string][] = [
  ["items", "Items"],
  ["query", "Query"],
  ["ttl", "Time to live"],
  ["changes", "Changes"],
  ["scripts", "Scripts"],
  ["settings", "Settings"],
];
const OF_COLLECTION: [View, string][] = [
  ["items", "Documents"],
  ["aggregate", "Aggregate"],
  ["query", "SQL"],
  ["ttl", "Time to live"],
  ["changes", "Changes"],
  ["settings", "Settings"],
];

const CollectionView = lazily(
  async () => (await import("./collection")).CollectionView,
  () => null,
);

/** What a place is. */
interface Found {
  container: Container;
  /** `null`: it is no collection of MongoDB. */
  collection: Collection | null;
}

export function ContainerView({ place, view }: { place: Place; view: View }) {
  const known = client.value;
  const [found, setFound] = useState<Found | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const load = async (): Promise<void> => {
    if (known === null) return;
    try {
      const [container, collection] = await Promise.all([readContainer(known, place), collectionAt(known, place)]);
      setFound({ container, collection });
      setProblem(null);
    } catch (error) {
      setFound(null);
      setProblem(wordsOf(error));
    }
  };
  // Somebody else may have changed it since the last view was opened.
  useEffect(() => void load(), [view]);
  if (known === null) return null;
  const views = { client: known, place };
  const { container, collection } = found ?? { container: null, collection: null };
  const setContainer = (container: Container): void => setFound((before) => before && { ...before, container });
  const tabs = collection === null ? OF_CONTAINER : OF_COLLECTION;
  return (
    <section class="page">
      <h1>
        <span class="muted">{place.database} /</span> {place.container}
      </h1>
      <div class="tabs" role="navigation" aria-label="Views of the container">
        {found !== null &&
          tabs.map(([one, name]) => (
            <a key={one} href={linkTo(place, one)} aria-current={one === view ? "page" : undefined}>
              {name}
            </a>
          ))}
      </div>
      <Problem text={problem} />
      {container !== null && collection !== null && <CollectionView {...views} container={container} collection={collection} view={view} />}
      {container !== null && collection === null && (
        <>
          {view === "items" && <Items {...views} container={container} />}
          {view === "query" && <Query {...views} container={container} />}
          {view === "ttl" && <TimeToLive {...views} container={container} onChange={setContainer} />}
          {view === "changes" && <Changes {...views} />}
          {view === "scripts" && <Scripts {...views} />}
          {view === "settings" && <Settings {...views} container={container} onChange={setContainer} />}
        </>
      )}
    </section>
  );
}

/** The collection at a place; `null` if there is none, or the server has no front end for MongoDB. */
async function collectionAt(client: Client, place: Place): Promise<Collection | null> {
  try {
    return (await collections(client, place.database, place.container))[0] ?? null;
  } catch (error) {
    // Names that only containers may have, and servers with --no-mongo.
    if (error instanceof ServerError && error.status < 500) return null;
    throw error;
  }
}
