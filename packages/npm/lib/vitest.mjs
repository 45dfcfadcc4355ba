/**
 * The global setup for Vitest: a server for the whole run, in memory and with a virtual clock.
 *
 *   globalSetup: "bolide-db/vitest"
 *
 * With options, in a file of one's own that is the global setup: `export default globalSetup({ args: ["--enforce-throughput"] })`.
 */
import { startGlobal } from "./global.cjs";

/** Returns a global setup that starts a server with these options. */
export function globalSetup(options) {
  return async () => {
    const started = await startGlobal(options);
    return () => started.stop();
  };
}

export default globalSetup();
