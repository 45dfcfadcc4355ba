"use strict";

/** What the package promises of a server besides the clients' view: its end, its errors, its clock. */

const assert = require("node:assert/strict");
const { spawnSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { test } = require("node:test");
const { setTimeout: pause } = require("node:timers/promises");

const { BolideError, RequestError, StartError, findBinary, server, start } = require("bolide-db");

const START = new Date("2030-01-01T00:00:00Z");

/** Runs `body` with a server that ends with it. */
async function using(options, body) {
  const db = await start(options);
  try {
    return await body(db);
  } finally {
    await db.stop();
  }
}

test("stop ends the process and may be called again", async () => {
  const db = await start();
  assert.ok(isRunning(db.pid));
  await Promise.all([db.stop(), db.stop()]);
  assert.ok(!isRunning(db.pid));
  await db.stop();
});

for (const end of ["process.kill(process.pid, 'SIGKILL')", "process.exit(0)", "undefined"]) {
  test(`the server ends with the process that started it: ${end}`, { skip: process.platform === "win32" }, async () => {
    const program = `require("bolide-db").start().then((db) => { fs.writeSync(1, String(db.pid)); ${end}; })`;
    const done = spawnSync(process.execPath, ["-e", program], { encoding: "utf8", timeout: 60_000, cwd: __dirname });
    const pid = Number(done.stdout);
    assert.ok(pid > 1, done.stderr);
    for (let turn = 0; turn < 1000 && isRunning(pid); turn++) await pause(20);
    assert.ok(!isRunning(pid));
  });
}

test("a refused option is shown with what the server says of it", async () => {
  await assert.rejects(start({ args: ["--no-such-option"] }), (error) => error instanceof StartError && /--no-such-option/.test(error.message));
  await assert.rejects(start({ virtualclock: true }), /unknown option; .* value=`virtualclock`/);
  await assert.rejects(start({ virtualClock: "tomorrow" }), /virtualClock: neither a boolean nor a valid Date/);
});

test("a missing binary is named", async () => {
  await assert.rejects(start({ binary: "/no/such/file" }), /binary: not an executable file. value=`\/no\/such\/file`/);
  process.env.BOLIDE_BIN = "/no/such/file";
  try {
    assert.throws(() => findBinary(), /BOLIDE_BIN: not an executable file/);
  } finally {
    delete process.env.BOLIDE_BIN;
  }
});

test("a server that does not get ready is ended in time", { skip: process.platform === "win32" }, async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "slow-"));
  const binary = path.join(folder, "slow");
  fs.writeFileSync(binary, "#!/bin/sh\necho still busy >&2\nexec sleep 600\n", { mode: 0o755 });
  await assert.rejects(start({ binary, startTimeoutMs: 500 }), /not ready within 500 ms\nstill busy/);
  fs.rmSync(folder, { recursive: true });
});

test("options come only from the call", async () => {
  process.env.BOLIDE_NO_MONGO = "1";
  try {
    await using({}, (db) => assert.match(db.mongoUri, /^mongodb:\/\/localhost:/));
  } finally {
    delete process.env.BOLIDE_NO_MONGO;
  }
  await using({ args: ["--no-mongo"] }, (db) => assert.throws(() => db.mongoUri, BolideError));
});

test("a key of one's own is the key", async () => {
  await using({ key: "YSBrZXkgb2Ygb25lJ3Mgb3du" }, async (db) => {
    assert.match(db.connectionString, /AccountKey=YSBrZXkgb2Ygb25lJ3Mgb3du;/);
    await db.clock.advance({ hours: 1 });
  });
});

test("the clock moves by every unit", async () => {
  await using({ virtualClock: START }, async (db) => {
    const now = await db.clock.advance({ weeks: 1, days: 2, hours: 1, minutes: 1, seconds: 1, milliseconds: 5 });
    assert.equal(now.toISOString(), "2030-01-10T01:01:01.005Z");
    assert.deepEqual(await db.clock.now(), now);
    assert.equal((await db.clock.set(new Date("2031-01-01T00:00:00Z"))).getUTCFullYear(), 2031);
  });
});

test("purging a container that does not exist is refused", async () => {
  await using({}, (db) => assert.rejects(db.purge("a b", "c/d"), (error) => error instanceof RequestError && error.status === 404));
});

test("the clock refuses what is unclear", async () => {
  await using({}, async ({ clock }) => {
    await assert.rejects(clock.advance({}), /by how much/);
    await assert.rejects(clock.advance({ day: 1 }), /unknown unit; .* value=`day`/);
    await assert.rejects(clock.advance({ days: -1 }), /negative/);
    await assert.rejects(clock.advance({ milliseconds: 0.5 }), /whole milliseconds/);
    await assert.rejects(clock.set("tomorrow"), /not a valid Date/);
  });
  await using({ virtualClock: false }, async ({ clock }) => {
    await assert.rejects(clock.advance({ days: 1 }), (error) => error instanceof RequestError && error.status === 409);
  });
});

test("without a global setup there is no server of the run", () => {
  assert.throws(() => server(), /no global setup/);
});

test("the command is the binary", () => {
  const command = path.join(path.dirname(require.resolve("bolide-db/package.json")), "bin", "bolide.cjs");
  assert.match(spawnSync(process.execPath, [command, "--version"], { encoding: "utf8" }).stdout, /^bolide /);
  assert.equal(spawnSync(process.execPath, [command, "--no-such-option"]).status, 2);
});

/** Whether a process with this id has not ended; one that only waits to be collected has. */
function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return !fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).startsWith("Z");
  } catch {
    return false;
  }
}
