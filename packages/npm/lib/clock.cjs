"use strict";

const MILLISECONDS = {
  weeks: 7 * 24 * 60 * 60 * 1000,
  days: 24 * 60 * 60 * 1000,
  hours: 60 * 60 * 1000,
  minutes: 60 * 1000,
  seconds: 1000,
  milliseconds: 1,
};

/** Reads and moves the clock of a server; see index.d.cts. */
class Clock {
  #admin;

  constructor(admin) {
    this.#admin = admin;
  }

  async now() {
    return new Date((await this.#admin.request("GET", "clock")).nowMs);
  }

  async advance(by) {
    const answer = await this.#admin.request("PUT", "clock", { advanceMs: millisecondsOf(by) });
    return new Date(answer.nowMs);
  }

  async set(instant) {
    // A Date of another realm, such as a test environment's, is no instance of ours.
    const ms = Object.prototype.toString.call(instant) === "[object Date]" ? instant.getTime() : NaN;
    if (Number.isNaN(ms)) throw new TypeError(`set: not a valid Date. value=\`${instant}\``);
    return new Date((await this.#admin.request("PUT", "clock", { setMs: ms })).nowMs);
  }
}

function millisecondsOf(by) {
  const parts = Object.entries(by ?? {});
  if (parts.length === 0) throw new TypeError("advance: by how much? for example { days: 30 }");
  let total = 0;
  for (const [unit, count] of parts) {
    if (!Object.hasOwn(MILLISECONDS, unit)) {
      throw new TypeError(`advance: unknown unit; there are ${Object.keys(MILLISECONDS).join(", ")}. value=\`${unit}\``);
    }
    if (typeof count !== "number" || !Number.isFinite(count)) throw new TypeError(`advance: ${unit} is not a number. value=\`${count}\``);
    total += count * MILLISECONDS[unit];
  }
  if (total < 0) throw new RangeError(`advance: a negative time; \`set\` also moves the clock back. value=\`${total} ms\``);
  if (!Number.isSafeInteger(total)) throw new RangeError(`advance: the clock counts whole milliseconds. value=\`${total} ms\``);
  return total;
}

module.exports = { Clock };
