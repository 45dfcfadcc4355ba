/**
 * A list of named checks and their helpers.
 *
 * A check is an async function of the tour's world that throws when its claim does not hold.
 */
import { deepStrictEqual } from "node:assert";

export class Tour {
  #checks = [];

  /** Declares a check; the name is the claim that the report shows. */
  check(name, body) {
    this.#checks.push({ name, body });
  }

  /** Runs every check, prints `ok name` or `FAIL name: reason`, and returns how many failed. */
  async run(world) {
    let failed = 0;
    for (const { name, body } of this.#checks) {
      try {
        await body(world);
        console.log(`ok ${name}`);
      } catch (error) {
        failed += 1;
        console.log(`FAIL ${name}: ${reason(error)}`);
      }
    }
    console.log(`${this.#checks.length - failed} passed, ${failed} failed`);
    return failed;
  }
}

/** Says in one line what went wrong and where in the tour. */
function reason(error) {
  const place = /tour\/[\w.]+:\d+|tour\.mjs:\d+/.exec(error.stack ?? "")?.[0] ?? "?";
  const text = `${error.code ?? error.name}: ${error.message ?? error}`.replace(/\s+/g, " ").slice(0, 400);
  return `${text} (${place})`;
}

/** Fails unless both values are deeply equal; the message shows both. */
export function equal(actual, expected, what = "value") {
  try {
    deepStrictEqual(plain(actual), plain(expected));
  } catch {
    throw new Error(`${what}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`);
  }
}

/** Drops what JSON cannot carry, such as `undefined` members of the SDK's objects. */
function plain(value) {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

/** Expects the server to refuse `call` with `status`. */
export async function refused(status, call) {
  let answer;
  try {
    answer = await call();
  } catch (error) {
    equal(error.code, status, `status (${error.message?.slice(0, 200)})`);
    return;
  }
  // The SDK resolves with the status when a resource to read is not there.
  equal(answer?.statusCode, status, "status");
}

/** Sorts a copy of rows of any shape, to compare results without an order. */
export function sorted(rows) {
  return [...rows].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}
