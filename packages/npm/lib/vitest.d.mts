import type { StartOptions } from "./index.mjs";

/** Returns a global setup that starts a server with these options; its result is the teardown. */
export function globalSetup(options?: StartOptions): () => Promise<() => Promise<void>>;

/** The global setup with the default options. */
declare const setup: () => Promise<() => Promise<void>>;
export default setup;
