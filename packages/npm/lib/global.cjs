"use strict";

/**
 * A server for a whole test run, which its global setup starts and whose test files find it.
 *
 * Test files run in other processes or threads, so it is described in an environment variable, which these inherit.
 */

const { BolideError } = require("./errors.cjs");
const { Connection, start } = require("./server.cjs");

const VARIABLE = "BOLIDE_TEST_SERVER";

/** Starts the server of the run. */
async function startGlobal(options) {
  const started = await start(options);
  process.env[VARIABLE] = JSON.stringify(started.describe());
  return started;
}

function server() {
  const description = process.env[VARIABLE];
  if (!description) throw new BolideError('no global setup has started a server: add globalSetup "bolide-db/vitest" or "bolide-db/jest"');
  return new Connection(JSON.parse(description));
}

module.exports = { server, startGlobal };
