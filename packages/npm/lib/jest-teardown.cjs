"use strict";

/** The global teardown for Jest: stops the server of the global setup. */
module.exports = async () => {
  await globalThis[Symbol.for("bolide-db.jest.server")]?.stop();
};
