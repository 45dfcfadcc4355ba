"use strict";

/**
 * The global setup for Jest: a server for the whole run, in memory and with a virtual clock.
 *
 *   globalSetup: "bolide-db/jest", globalTeardown: "bolide-db/jest-teardown"
 *
 * With options, in a file of one's own that is the global setup: `module.exports = globalSetup({ args: ["--enforce-throughput"] })`.
 */

const { startGlobal } = require("./global.cjs");

/** Where the teardown finds the server: Jest loads it as another module of the same process. */
const STARTED = Symbol.for("bolide-db.jest.server");

/** Returns a global setup that starts a server with these options. */
function globalSetup(options) {
  return async () => {
    globalThis[STARTED] = await startGlobal(options);
  };
}

module.exports = globalSetup();
module.exports.globalSetup = globalSetup;
