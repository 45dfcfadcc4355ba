/** Items: writes, reads, conditions, patches, ids, hierarchical keys, sessions, the change feed. */
import { ChangeFeedStartFrom } from "@azure/cosmos";

import { equal, refused, sorted } from "../checks.mjs";
import { DATA, FIVE_RANGES, add, query, unique } from "./world.mjs";

const ifMatch = (etag) => ({ accessCondition: { type: "IfMatch", condition: etag } });
const ifNoneMatch = (etag) => ({ accessCondition: { type: "IfNoneMatch", condition: etag } });

export function declareItems(tour) {
  tour.check("created item is read back with its system properties", async (world) => {
    const container = await world.container("items");
    const body = { id: "a", pk: "p", text: "grüße", whole: 7, part: 0.5, none: null, nested: { list: [1, "x"] } };
    const { resource: created, statusCode } = await container.items.create(body);
    equal(statusCode, 201, "status");
    const { resource: read } = await container.item("a", "p").read();
    equal(read, created);
    const { _rid, _self, _etag, _ts, _attachments, ...user } = read;
    equal(user, body);
    equal([_rid, _self, _etag].every((value) => typeof value === "string") && Number.isInteger(_ts), true, "system");
  });

  tour.check("second item of the same id is refused with 409", async (world) => {
    const container = await world.container("items");
    await add(container, { id: "a", pk: "p" });
    await refused(409, () => container.items.create({ id: "a", pk: "p" }));
    await add(container, { id: "a", pk: "another partition" });
  });

  tour.check("item without an id is refused with 400", async (world) => {
    const container = await world.container("items");
    await refused(400, () => container.items.create({ pk: "p" }, { disableAutomaticIdGeneration: true }));
  });

  tour.check("upsert creates with 201 and then replaces with 200", async (world) => {
    const container = await world.container("items");
    equal((await container.items.upsert({ id: "a", pk: "p", v: 1 })).statusCode, 201, "first status");
    equal((await container.items.upsert({ id: "a", pk: "p", v: 2 })).statusCode, 200, "second status");
    equal((await container.item("a", "p").read()).resource.v, 2);
  });

  tour.check("replaced item has a new etag and the new body", async (world) => {
    const container = await world.container("items");
    const [created] = await add(container, { id: "a", pk: "p", old: true });
    const { resource } = await container.item("a", "p").replace({ id: "a", pk: "p", fresh: true });
    equal([resource.fresh, "old" in resource, resource._etag === created._etag], [true, false, false]);
    await refused(404, () => container.item("b", "p").replace({ id: "b", pk: "p" }));
  });

  tour.check("stale etag is refused with 412 and changes nothing", async (world) => {
    const container = await world.container("items");
    const [{ _etag: stale }] = await add(container, { id: "a", pk: "p", v: 1 });
    const item = container.item("a", "p");
    await item.replace({ id: "a", pk: "p", v: 2 }, ifMatch(stale));
    await refused(412, () => item.replace({ id: "a", pk: "p", v: 3 }, ifMatch(stale)));
    await refused(412, () => container.items.upsert({ id: "a", pk: "p", v: 3 }, ifMatch(stale)));
    await refused(412, () => item.delete(ifMatch(stale)));
    equal((await item.read()).resource.v, 2);
  });

  tour.check("read of an unchanged item answers 304", async (world) => {
    const container = await world.container("items");
    const [{ _etag }] = await add(container, { id: "a", pk: "p" });
    const item = container.item("a", "p");
    equal((await item.read(ifNoneMatch(_etag))).statusCode, 304, "status");
    equal((await item.read(ifNoneMatch('"another"'))).statusCode, 200, "status");
  });

  tour.check("patch applies every operation in order", async (world) => {
    const container = await world.container("items");
    await add(container, { id: "a", pk: "p", keep: 1, gone: 1, n: 3, list: ["x"], from: "here" });
    const { resource } = await container.item("a", "p").patch([
      { op: "add", path: "/list/-", value: "y" },
      { op: "set", path: "/fresh", value: { deep: true } },
      { op: "replace", path: "/keep", value: 2 },
      { op: "remove", path: "/gone" },
      { op: "incr", path: "/n", value: 4 },
      { op: "move", from: "/from", path: "/to" },
    ]);
    const { _rid, _self, _etag, _ts, _attachments, ...user } = resource;
    equal(user, { id: "a", pk: "p", keep: 2, n: 7, list: ["x", "y"], fresh: { deep: true }, to: "here" });
  });

  tour.check("patch condition decides whether anything changes", async (world) => {
    const container = await world.container("items");
    await add(container, { id: "a", pk: "p", n: 1 });
    const operations = [{ op: "incr", path: "/n", value: 1 }];
    const item = container.item("a", "p");
    await refused(412, () => item.patch({ condition: "FROM c WHERE c.n = 5", operations }));
    equal((await item.patch({ condition: "FROM c WHERE c.n = 1", operations })).resource.n, 2);
  });

  tour.check("deleted item is 404 and its id is free", async (world) => {
    const container = await world.container("items");
    await add(container, { id: "a", pk: "p" });
    equal((await container.item("a", "p").delete()).statusCode, 204, "status");
    await refused(404, () => container.item("a", "p").read());
    await refused(404, () => container.item("a", "p").delete());
    await add(container, { id: "a", pk: "p" });
  });

  tour.check("unusual ids and partition keys are kept exactly", async (world) => {
    const container = await world.container("unusual ids");
    for (const id of DATA.unusualIds) {
      await add(container, { id, pk: id });
      equal((await container.item(id, id).read()).resource.id, id);
      await container.item(id, id).replace({ id, pk: id, again: true });
      await container.item(id, id).delete();
      await refused(404, () => container.item(id, id).read());
    }
  });

  tour.check("partition keys of every type are kept apart", async (world) => {
    const container = await world.container("key types", { throughput: FIVE_RANGES });
    const values = ["1", 1, 1.5, true, false, null];
    await add(container, ...values.map((pk) => ({ id: "same", pk })));
    for (const value of values) equal((await container.item("same", value).read()).resource.pk, value);
  });

  tour.check("hierarchical key finds items by the full key and queries by a prefix", async (world) => {
    const container = await world.container("tree", { throughput: FIVE_RANGES }, ["/tenant", "/user", "/session"]);
    for (const tenant of ["t1", "t2"])
      for (const user of ["u1", "u2"])
        for (const session of ["s1", "s2"]) await add(container, { id: tenant + user + session, tenant, user, session });
    equal((await container.item("t1u2s1", ["t1", "u2", "s1"]).read()).resource.user, "u2");
    await refused(404, () => container.item("t1u2s1", ["t1", "u1", "s1"]).read());
    for (const [prefix, count] of [[["t1"], 4], [["t1", "u2"], 2], [["t1", "u2", "s2"], 1]]) {
      equal((await query(container, "SELECT * FROM c", { partitionKey: prefix })).length, count, `under ${prefix}`);
    }
  });

  tour.check("read right after a write carries the same session token", async (world) => {
    const container = await world.container("sessions");
    const token = (answer) => answer.headers["x-ms-session-token"];
    const first = await container.items.create({ id: "a", pk: "p" });
    equal(token(await container.item("a", "p").read()), token(first));
    const second = await container.items.upsert({ id: "a", pk: "p", v: 2 });
    equal(token(second) === token(first), false, "token stays after a write");
    equal((await container.item("a", "p").read({ sessionToken: token(second) })).resource.v, 2);
  });

  tour.check("change feed shows the latest version of each item in order", async (world) => {
    const container = await world.container("feed");
    await add(container, ...["a", "b", "c"].map((id) => ({ id, pk: "p", v: 1 })));
    await container.items.upsert({ id: "a", pk: "p", v: 2 });
    await container.item("c", "p").delete();
    const changes = await changeFeed(container, ChangeFeedStartFrom.Beginning("p"));
    equal(changes.map(({ id, v }) => [id, v]), [["b", 1], ["a", 2]]);
  });

  tour.check("change feed covers every range", async (world) => {
    const container = await world.container("wide feed", { throughput: FIVE_RANGES });
    const ids = Array.from({ length: 20 }, (_, n) => `i${n}`);
    await add(container, ...ids.map((id) => ({ id, pk: id })));
    const changes = await changeFeed(container, ChangeFeedStartFrom.Beginning());
    equal(sorted(changes.map(({ id }) => id)), sorted(ids));
  });

  tour.check("missing container refuses items with 404", async ({ database }) => {
    await refused(404, () => database.container(unique("nowhere")).items.create({ id: "a", pk: "p" }));
  });
}

/** Reads the change feed in pages of three until the server says that nothing is new. */
async function changeFeed(container, changeFeedStartFrom) {
  const iterator = container.items.getChangeFeedIterator({ changeFeedStartFrom, maxItemCount: 3 });
  const changes = [];
  while (iterator.hasMoreResults) {
    const page = await iterator.readNext();
    if (page.statusCode === 304) break;
    changes.push(...page.result);
  }
  return changes;
}
