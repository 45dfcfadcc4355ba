import type { StartOptions } from "./index.cjs";

/** The global setup with the default options. */
declare function setup(): Promise<void>;
declare namespace setup {
  /** Returns a global setup that starts a server with these options. */
  function globalSetup(options?: StartOptions): () => Promise<void>;
}
export = setup;
