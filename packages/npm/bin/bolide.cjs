#!/usr/bin/env node
"use strict";

/** The command `bolide`: runs the binary of this platform with the same arguments, and ends as it does. */

const { spawn } = require("node:child_process");
const os = require("node:os");

const { findBinary } = require("../lib/binary.cjs");

function main() {
  let binary;
  try {
    binary = findBinary();
  } catch (error) {
    process.stderr.write(`bolide: ${error.message}\n`);
    process.exitCode = 1;
    return;
  }
  const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    process.stderr.write(`bolide: cannot start ${binary}: ${error.message}\n`);
    process.exitCode = 1;
  });
  child.on("exit", (status, signal) => {
    // As a shell reports a signal.
    process.exitCode = status ?? 128 + os.constants.signals[signal];
    process.removeAllListeners("SIGINT").removeAllListeners("SIGTERM").removeAllListeners("SIGHUP");
  });
}

main();
