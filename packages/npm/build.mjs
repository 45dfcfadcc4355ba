/**
 * Builds the packages from binaries: `node build.mjs --out DIR --binary PLATFORM=PATH [--binary …]`.
 *
 * PLATFORM is `linux-x64`, `darwin-arm64` and so on, as Node.js names them. Each binary becomes a package of its own, `@bolide-db/PLATFORM`;
 * `bolide-db` has all of them as optional dependencies, of which npm installs the one that fits. So nothing is fetched or run at the
 * installation, and what is published depends on no platform that has no binary.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";

const HERE = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);
const LICENCES = ["LICENSE-MIT", "LICENSE-APACHE"];
const PLATFORM = /^(linux|darwin|win32)-(x64|arm64)$/;

const { values } = parseArgs({ options: { out: { type: "string" }, binary: { type: "string", multiple: true } } });
if (!values.out || !values.binary) throw new Error("both --out and --binary are needed");

const main = JSON.parse(fs.readFileSync(path.join(HERE, "package.json"), "utf8"));
const staging = fs.mkdtempSync(path.join(os.tmpdir(), "bolide-npm-"));
try {
  fs.mkdirSync(values.out, { recursive: true });
  const built = values.binary.map(platformPackage);
  main.optionalDependencies = Object.fromEntries(built.map((name) => [name, main.version]));
  mainPackage();
} finally {
  fs.rmSync(staging, { recursive: true });
}

/** Packs `@bolide-db/PLATFORM` and returns its name. */
function platformPackage(option) {
  const [platform, binary] = [option.slice(0, option.indexOf("=")), option.slice(option.indexOf("=") + 1)];
  if (!PLATFORM.test(platform)) throw new Error(`--binary: expected a platform such as linux-x64, and =PATH. value=\`${option}\``);
  const [system, cpu] = platform.split("-");
  const name = `@bolide-db/${platform}`;
  const folder = path.join(staging, platform);
  const file = `bin/bolide${system === "win32" ? ".exe" : ""}`;
  fs.mkdirSync(path.join(folder, "bin"), { recursive: true });
  fs.copyFileSync(binary, path.join(folder, file));
  fs.chmodSync(path.join(folder, file), 0o755);
  for (const licence of LICENCES) fs.copyFileSync(path.join(HERE, licence), path.join(folder, licence));
  const description = `The binary of bolide-db for ${platform}`;
  fs.writeFileSync(path.join(folder, "README.md"), `# ${name}\n\n${description}. Install \`bolide-db\`, which depends on it.\n`);
  write(folder, {
    name,
    version: main.version,
    description,
    license: main.license,
    os: [system],
    cpu: [cpu],
    ...libcOf(binary),
    // A binary cannot be run inside an archive.
    preferUnplugged: true,
    files: [file, ...LICENCES],
  });
  pack(folder);
  return name;
}

/** The C library that a binary needs, as package managers name it: a static one needs none. */
function libcOf(binary) {
  const file = fs.openSync(binary);
  const head = Buffer.alloc(4096);
  fs.readSync(file, head);
  fs.closeSync(file);
  if (head.includes("/ld-linux")) return { libc: ["glibc"] };
  return head.includes("/ld-musl") ? { libc: ["musl"] } : {};
}

function mainPackage() {
  const folder = path.join(staging, "main");
  fs.mkdirSync(folder);
  for (const name of ["README.md", ...main.files]) fs.cpSync(path.join(HERE, name), path.join(folder, name), { recursive: true });
  write(folder, main);
  pack(folder);
}

function write(folder, manifest) {
  fs.writeFileSync(path.join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

function pack(folder) {
  const options = { stdio: ["ignore", "inherit", "inherit"], shell: process.platform === "win32" };
  execFileSync("npm", ["pack", "--silent", folder, "--pack-destination", path.resolve(values.out)], options);
}
