"use strict";

const fs = require("node:fs");
const path = require("node:path");

const { StartError } = require("./errors.cjs");

const NAME = process.platform === "win32" ? "bolide.exe" : "bolide";

/**
 * Returns the path of the binary. In this order: `named`, the environment variable `BOLIDE_BIN`, the package of this platform, `bolide` on
 * the `PATH`.
 */
function findBinary(named) {
  for (const [source, value] of [["binary", named], ["BOLIDE_BIN", process.env.BOLIDE_BIN]]) {
    if (!value) continue;
    if (!isExecutable(value)) throw new StartError(`${source}: not an executable file. value=\`${value}\``);
    return path.resolve(value);
  }
  const found = packaged() ?? onPath();
  if (found) return found;
  throw new StartError(
    `there is no bolide binary: the package ${platformPackage()} is not installed (were optional dependencies left out?), BOLIDE_BIN is not ` +
      "set, and PATH has none",
  );
}

function platformPackage() {
  return `@bolide-db/${process.platform}-${process.arch}`;
}

function packaged() {
  try {
    return require.resolve(`${platformPackage()}/bin/${NAME}`);
  } catch {
    return undefined;
  }
}

function onPath() {
  const folders = (process.env.PATH ?? "").split(path.delimiter).filter(Boolean);
  // npm puts this package's own command there, which would ask here again.
  const places = folders.map((folder) => path.join(folder, NAME)).filter((place) => !leadsHere(place));
  return places.find(isExecutable);
}

function leadsHere(place) {
  try {
    return fs.realpathSync(place) === fs.realpathSync(path.join(__dirname, "..", "bin", "bolide.cjs"));
  } catch {
    return false;
  }
}

function isExecutable(place) {
  try {
    fs.accessSync(place, fs.constants.X_OK);
    return fs.statSync(place).isFile();
  } catch {
    return false;
  }
}

module.exports = { findBinary };
