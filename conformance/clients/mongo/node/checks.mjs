/** Helpers of checks. */
import { BSON } from "mongodb";

const { EJSON } = BSON;

/** Fails unless both values are equal with their fields in the same order; numbers are equal by value. */
export function equal(actual, expected, what = "value") {
  const [left, right] = [actual, expected].map((value) => EJSON.stringify({ value }, { relaxed: true }));
  if (left !== right) throw new Error(`${what}: expected ${right}, got ${left}`);
}

/** Fails unless a condition holds. */
export function holds(condition, what) {
  if (!condition) throw new Error(what);
}

/** Expects the server to refuse `call` with an error code; returns the error. */
export async function refused(code, call) {
  try {
    await call();
  } catch (error) {
    const codes = [error.code, ...(error.writeErrors ?? []).map((one) => one.code)];
    holds(codes.includes(code), `expected code ${code}, got ${error.code}: ${error.message}`);
    return error;
  }
  throw new Error(`expected code ${code}, but the call succeeded`);
}
