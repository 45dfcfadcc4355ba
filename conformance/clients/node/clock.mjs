/** The server's virtual clock, moved through the admin API. */
export class Clock {
  #url;
  #key;

  constructor(endpoint, key) {
    this.#url = new URL("/_bolide/clock", endpoint);
    this.#key = key;
  }

  /** Moves the clock to an instant in epoch milliseconds. */
  async setMs(instant) {
    const answer = await fetch(this.#url, {
      method: "PUT",
      headers: { authorization: `Bearer ${this.#key}`, "content-type": "application/json" },
      body: JSON.stringify({ setMs: instant }),
    });
    if (!answer.ok) throw new Error(`moving the clock: ${answer.status} ${await answer.text()}`);
  }

  /** Moves the clock to the first millisecond of a second. */
  async setSeconds(instant) {
    await this.setMs(instant * 1000);
  }
}
