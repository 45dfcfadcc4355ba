"use strict";

/** The requests of the Cosmos DB API that this package needs itself. */

const crypto = require("node:crypto");

const { send } = require("./admin.cjs");

const VERSION = "2020-07-15";

/** Deletes every database of the account, one after the other. */
async function deleteAllDatabases(endpoint, key) {
  for (;;) {
    // A list has at most a page of databases.
    const { Databases: databases } = await request(endpoint, key, "GET", "");
    if (databases.length === 0) return;
    for (const { id } of databases) await request(endpoint, key, "DELETE", id);
  }
}

/** A request for a database, or for the list of databases. Source: "Access control on Azure Cosmos DB resources", REST reference. */
function request(endpoint, key, method, database) {
  const date = new Date().toUTCString();
  const link = database ? `dbs/${database}` : "";
  const signed = `${method.toLowerCase()}\ndbs\n${link}\n${date.toLowerCase()}\n\n`;
  const signature = crypto.createHmac("sha256", Buffer.from(key, "base64")).update(signed).digest("base64");
  const authorization = encodeURIComponent(`type=master&ver=1.0&sig=${signature}`);
  const path = database ? `/dbs/${encodeURIComponent(database)}` : "/dbs";
  return send(`${endpoint}${path}`, method, { authorization, "x-ms-date": date, "x-ms-version": VERSION }, "");
}

module.exports = { deleteAllDatabases };
