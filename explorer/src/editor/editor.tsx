// The editor of code, loaded when the first one is shown: it is most of what the page consists of, and a list of items does not need it.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Problem } from "../ui/notice";
import type { CodeEditor, Properties } from "./code-editor";

const loaded = signal<{ component: typeof CodeEditor } | null>(null);
const failed = signal(false);

async function load(): Promise<void> {
  try {
    const { CodeEditor } = await import("./code-editor");
    loaded.value = { component: CodeEditor };
  } catch {
    // A browser does not try again what has failed once.
    failed.value = true;
  }
}

export function Editor(properties: Properties) {
  useEffect(() => {
    if (loaded.peek() === null) void load();
  }, []);
  if (loaded.value !== null) {
    const { component: Loaded } = loaded.value;
    return <Loaded {...properties} />;
  }
  return failed.value ? (
    <Problem text="The editor could not be loaded. Is the server still running? Then load the page again." />
  ) : (
    <pre class="editor">{properties.text}</pre>
  );
}
