// Parts of the page that are loaded when they are first shown.

import { signal } from "@preact/signals";
import type { ComponentChildren, FunctionComponent } from "preact";
import { useEffect } from "preact/hooks";
import { Problem } from "./notice";

/** A component that is loaded when it is first shown; until then `meanwhile` is. */
export function lazily<P extends object>(load: () => Promise<FunctionComponent<P>>, meanwhile: (properties: P) => ComponentChildren): FunctionComponent<P> {
  const loaded = signal<{ component: FunctionComponent<P> } | null>(null);
  const failed = signal(false);
  const begin = async (): Promise<void> => {
    try {
      loaded.value = { component: await load() };
    } catch {
      // A browser does not try again what has failed once.
      failed.value = true;
    }
  };
  return function Lazy(properties: P) {
    useEffect(() => {
      if (loaded.peek() === null) void begin();
    }, []);
    if (loaded.value !== null) {
      const { component: Loaded } = loaded.value;
      return <Loaded {...properties} />;
    }
    return failed.value ? (
      <Problem text="A part of the page could not be loaded. Is the server still running? Then load the page again." />
    ) : (
      <>{meanwhile(properties)}</>
    );
  };
}
