/**
 * Time to live: items expire at their exact second for every kind of request.
 *
 * The server's clock is virtual, so a test of thirty days takes milliseconds. An item's second is `_ts` plus its time to
 * live; it is live at the last millisecond before that second and gone from the second on.
 */
import { equal, refused } from "../checks.mjs";
import { FIVE_RANGES, add, query } from "./world.mjs";

const THIRTY_DAYS = 30 * 24 * 3600;

export function declareTtl(tour) {
  tour.check("item ends at its exact second for every kind of request", async (world) => {
    const container = await world.container("ends", { defaultTtl: 100 });
    const [{ _ts }] = await add(container, { id: "a", pk: "p", n: 1 });
    const item = container.item("a", "p");
    await world.clock.setMs((_ts + 100) * 1000 - 1);
    equal((await item.read()).statusCode, 200, "status before its second");
    equal(await seen(container), [["a"], [1]], "before its second");
    await world.clock.setSeconds(_ts + 100);
    await refused(404, () => item.read());
    await refused(404, () => item.replace({ id: "a", pk: "p" }));
    await refused(404, () => item.patch([{ op: "set", path: "/n", value: 2 }]));
    await refused(404, () => item.delete());
    equal(await seen(container), [[], [0]], "at its second");
  });

  tour.check("own ttl of an item outweighs the default", async (world) => {
    const container = await world.container("own", { defaultTtl: 100 });
    const [{ _ts: born }] = await add(
      container,
      { id: "shorter", pk: "p", ttl: 10 },
      { id: "default", pk: "p" },
      { id: "longer", pk: "p", ttl: THIRTY_DAYS },
      { id: "never", pk: "p", ttl: -1 },
    );
    for (const [age, alive] of [
      [9, ["default", "longer", "never", "shorter"]],
      [10, ["default", "longer", "never"]],
      [100, ["longer", "never"]],
      [THIRTY_DAYS - 1, ["longer", "never"]],
      [THIRTY_DAYS, ["never"]],
    ]) {
      await world.clock.setSeconds(born + age);
      equal((await seen(container))[0], alive, `after ${age} s`);
    }
  });

  tour.check("write renews an item and a read does not", async (world) => {
    const container = await world.container("renew", { defaultTtl: 100 });
    const [{ _ts: born }] = await add(container, { id: "written", pk: "p" }, { id: "read", pk: "p" });
    await world.clock.setSeconds(born + 60);
    await container.item("written", "p").replace({ id: "written", pk: "p" });
    await container.item("read", "p").read();
    await world.clock.setSeconds(born + 100);
    equal((await seen(container))[0], ["written"]);
    await world.clock.setSeconds(born + 160);
    equal((await seen(container))[0], []);
  });

  tour.check("id of an expired item is free", async (world) => {
    const container = await world.container("free", { defaultTtl: 10 });
    const [{ _ts }] = await add(container, { id: "a", pk: "p" }, { id: "b", pk: "p" });
    await world.clock.setSeconds(_ts + 10);
    equal((await container.items.create({ id: "a", pk: "p" })).statusCode, 201, "status of the create");
    equal((await container.items.upsert({ id: "b", pk: "p" })).statusCode, 201, "status of the upsert");
  });

  tour.check("shorter default ends older items at once and switching off revives none", async (world) => {
    const container = await world.container("change", { defaultTtl: 1000 });
    const [{ _ts }] = await add(container, { id: "old", pk: "p" });
    await world.clock.setSeconds(_ts + 50);
    await add(container, { id: "new", pk: "p" });
    const { resource } = await container.read();
    await container.replace({ ...resource, defaultTtl: 50 });
    equal((await seen(container))[0], ["new"], "under the shorter default");
    const { defaultTtl, ...rest } = resource;
    await container.replace(rest);
    equal((await seen(container))[0], ["new"], "without a default");
  });

  tour.check("items end on every range at the same second", async (world) => {
    const container = await world.container("wide end", { defaultTtl: 100, throughput: FIVE_RANGES });
    const bodies = Array.from({ length: 20 }, (_, n) => ({ id: `i${n}`, pk: `p${n}` }));
    const stored = await add(container, ...bodies);
    await world.clock.setMs((stored[0]._ts + 100) * 1000 - 1);
    equal((await seen(container))[1], [20], "count before");
    await world.clock.setSeconds(stored[0]._ts + 100);
    equal(await seen(container), [[], [0]], "at the second");
  });

  tour.check("invalid ttl of an item is refused with 400", async (world) => {
    const container = await world.container("invalid", { defaultTtl: -1 });
    for (const ttl of [0, -2, null, "10", 1.5, true, 2 ** 31]) {
      await refused(400, () => container.items.create({ id: "a", pk: "p", ttl }));
    }
  });
}

/** Returns what a query and a count show: sorted ids, the count's rows. */
async function seen(container) {
  const ids = await query(container, "SELECT VALUE c.id FROM c");
  return [ids.sort(), await query(container, "SELECT VALUE COUNT(1) FROM c")];
}
