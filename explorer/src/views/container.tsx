// A container: its items, queries, time to live and settings.

import { useEffect, useState } from "preact/hooks";
import { type Container, type Place, readContainer } from "../api/account";
import { linkTo, type View, VIEWS } from "../state/place";
import { client, wordsOf } from "../state/session";
import { Problem } from "../ui/notice";
import { Changes } from "./container/changes";
import { Items } from "./container/items";
import { Query } from "./container/query";
import { Scripts } from "./container/scripts";
import { Settings } from "./container/settings";
import { TimeToLive } from "./container/time-to-live";

const NAMES: Record<View, string> = {
  items: "Items",
  query: "Query",
  ttl: "Time to live",
  changes: "Changes",
  scripts: "Scripts",
  settings: "Settings",
};

export function ContainerView({ place, view }: { place: Place; view: View }) {
  const known = client.value;
  const [container, setContainer] = useState<Container | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const load = async (): Promise<void> => {
    if (known === null) return;
    try {
      setContainer(await readContainer(known, place));
      setProblem(null);
    } catch (error) {
      setContainer(null);
      setProblem(wordsOf(error));
    }
  };
  // Somebody else may have changed it since the last view was opened.
  useEffect(() => void load(), [view]);
  if (known === null) return null;
  const views = { client: known, place };
  return (
    <section class="page">
      <h1>
        <span class="muted">{place.database} /</span> {place.container}
      </h1>
      <div class="tabs" role="navigation" aria-label="Views of the container">
        {VIEWS.map((one) => (
          <a key={one} href={linkTo(place, one)} aria-current={one === view ? "page" : undefined}>
            {NAMES[one]}
          </a>
        ))}
      </div>
      <Problem text={problem} />
      {container !== null && view === "items" && <Items {...views} container={container} />}
      {container !== null && view === "query" && <Query {...views} container={container} />}
      {container !== null && view === "ttl" && <TimeToLive {...views} container={container} onChange={setContainer} />}
      {container !== null && view === "changes" && <Changes {...views} />}
      {container !== null && view === "scripts" && <Scripts {...views} />}
      {container !== null && view === "settings" && <Settings {...views} container={container} onChange={setContainer} />}
    </section>
  );
}
