/** The server's virtual clock and its purge, through the admin API. */
export class Clock {
  #endpoint;
  #headers;

  constructor(endpoint, key) {
    this.#endpoint = `${endpoint.replace(/\/$/, "")}/_bolide`;
    this.#headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  }

  /** Returns the server's time in epoch milliseconds. */
  async nowMs() {
    return (await this.#call("GET", "clock")).nowMs;
  }

  /** Moves the clock to an instant in epoch milliseconds. */
  async setMs(instant) {
    await this.#call("PUT", "clock", { setMs: instant });
  }

  /** Moves the clock to the beginning of the next second and returns it in epoch milliseconds. */
  async nextSecond() {
    const instant = (Math.floor((await this.nowMs()) / 1000) + 1) * 1000;
    await this.setMs(instant);
    return instant;
  }

  /** Removes everything in a collection that has expired. */
  async purge(database, collection) {
    await this.#call("POST", `dbs/${database}/colls/${collection}/purge`, { mode: "force" });
  }

  async #call(method, path, body) {
    const answer = await fetch(`${this.#endpoint}/${path}`, { method, headers: this.#headers, body: body && JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }
}
