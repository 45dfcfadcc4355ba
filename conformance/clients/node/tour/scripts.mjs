/** Stored procedures, triggers and user-defined functions. */
import { equal, refused } from "../checks.mjs";

const COPIES = `function (id, count) {
  var context = getContext(), items = context.getCollection(), made = 0;
  for (var n = 0; n < count; n++) {
    var accepted = items.createDocument(items.getSelfLink(), { id: id + n, pk: "p" }, function (error) {
      if (error) throw error;
      context.getResponse().setBody(++made);
    });
    if (!accepted) return;
  }
}`;

export function declareScripts(tour) {
  tour.check("scripts can be created, read, listed, replaced and deleted", async (world) => {
    const { scripts } = await world.container("scripts");
    const { resource: created } = await scripts.storedProcedures.create({ id: "s", body: "function () {}" });
    const procedure = scripts.storedProcedure("s");
    equal((await procedure.read()).resource._rid, created._rid);
    await procedure.replace({ id: "s", body: "function () { return 1; }" });
    const { resources: listed } = await scripts.storedProcedures.readAll().fetchAll();
    equal(listed.map(({ id, body }) => [id, body]), [["s", "function () { return 1; }"]], "listed");
    await procedure.delete();
    await refused(404, () => procedure.read());
  });

  tour.check("procedure writes all or nothing", async (world) => {
    const container = await world.container("procedures");
    await container.scripts.storedProcedures.create({ id: "copies", body: COPIES });
    const execute = (...parts) => container.scripts.storedProcedure("copies").execute("p", parts);
    equal((await execute("a", 3)).resource, 3);
    await container.items.create({ id: "b2", pk: "p" });
    await refused(400, () => execute("b", 3));
    const { resources } = await container.items.query("SELECT VALUE c.id FROM c", { partitionKey: "p" }).fetchAll();
    equal(resources.sort(), ["a0", "a1", "a2", "b2"], "after a procedure that failed at its last item");
  });

  tour.check("procedure's log comes back when it is asked for", async (world) => {
    const { scripts } = await world.container("logs");
    const body = "function (name) { console.log('Hello %s', name); }";
    await scripts.storedProcedures.create({ id: "s", body });
    const { headers } = await scripts.storedProcedure("s").execute("p", ["you"], { enableScriptLogging: true });
    equal(decodeURIComponent(headers["x-ms-documentdb-script-log-results"]), "Hello you");
  });

  tour.check("triggers change an item and take a write back", async (world) => {
    const container = await world.container("triggers");
    const rename = "function () { var q = getContext().getRequest(), d = q.getBody(); d.id = d.id.toUpperCase(); q.setBody(d); }";
    const trigger = (id, triggerType, body) => container.scripts.triggers.create({ id, body, triggerType, triggerOperation: "All" });
    await trigger("rename", "Pre", rename);
    await trigger("fail", "Post", "function () { throw new Error('no'); }");
    const { resource } = await container.items.create({ id: "a", pk: "p" }, { preTriggerInclude: "rename" });
    equal(resource.id, "A");
    await refused(400, () => container.items.create({ id: "b", pk: "p" }, { postTriggerInclude: "fail" }));
    equal((await container.item("b", "p").read()).statusCode, 404, "status");
  });

  tour.check("functions are called by queries", async (world) => {
    const container = await world.container("functions");
    await container.items.create({ id: "a", pk: "p", n: 4 });
    await container.scripts.userDefinedFunctions.create({ id: "square", body: "function (n) { return n * n; }" });
    const { resources } = await container.items.query("SELECT VALUE udf.square(c.n) FROM c", { partitionKey: "p" }).fetchAll();
    equal(resources, [16]);
  });
}
