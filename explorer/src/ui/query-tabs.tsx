// Queries in tabs, which are kept in this browser, and shared by its windows.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Place } from "../api/account";
import { keepTabs, type Kind, MOST_TABS, readTabs, storedAs, type Tabs, without, withNew, withShown } from "../state/queries";

interface Properties {
  place: Place;
  kind: Kind;
  render: (text: string, onChange: (text: string) => void) => ComponentChildren;
}

export function QueryTabs({ place, kind, render }: Properties) {
  const [tabs, setTabs] = useState(() => readTabs(place, kind));
  const change = (next: (before: Tabs) => Tabs): void =>
    setTabs((before) => {
      const after = next(before);
      keepTabs(place, kind, after);
      return after;
    });
  useEffect(() => {
    // Another window has changed them: what is shown here stays the one that is shown.
    const take = (event: StorageEvent): void => {
      if (event.key === storedAs(place, kind)) setTabs((before) => withShown(readTabs(place, kind), before.shown));
    };
    addEventListener("storage", take);
    return () => removeEventListener("storage", take);
  }, []);
  const retype = (id: number, text: string): void =>
    change((before) => ({ ...before, list: before.list.map((tab) => (tab.id === id ? { id, text } : tab)) }));
  return (
    <div class="query">
      <div class="tools" role="group" aria-label="Queries">
        {tabs.list.map(({ id }) => (
          <button key={id} aria-pressed={id === tabs.shown} onClick={() => change((before) => ({ ...before, shown: id }))}>
            Query {id}
          </button>
        ))}
        {tabs.list.length < MOST_TABS && (
          <button class="quiet" aria-label="New query" onClick={() => change((before) => withNew(before, kind))}>
            +
          </button>
        )}
        {tabs.list.length > 1 && (
          <button class="quiet" onClick={() => change((before) => without(before, before.shown))}>
            Close
          </button>
        )}
      </div>
      {tabs.list.map(({ id, text }) => (
        // Those that are not shown keep their results.
        <div class="query-tab" key={id} hidden={id !== tabs.shown}>
          {render(text, (typed) => retype(id, typed))}
        </div>
      ))}
    </div>
  );
}
