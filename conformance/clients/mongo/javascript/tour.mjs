/**
 * A list of named checks, for the tours in JavaScript.
 *
 * A check is an async function of the tour's world that throws when its claim does not hold.
 */

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
  const place = /tour\/[\w.]+:\d+/.exec(error.stack ?? "")?.[0] ?? "?";
  const text = `${error.code ?? error.name}: ${error.message ?? error}`.replace(/\s+/g, " ").slice(0, 400);
  return `${text} (${place})`;
}
