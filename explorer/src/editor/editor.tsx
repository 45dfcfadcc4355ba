// The editor of code, loaded when the first one is shown: it is most of what the page consists of, and a list of items does not need it.

import { lazily } from "../ui/lazy";
import type { Properties } from "./code-editor";

export const Editor = lazily<Properties>(
  async () => (await import("./code-editor")).CodeEditor,
  ({ text }) => <pre class="editor">{text}</pre>,
);
