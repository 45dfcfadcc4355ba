"""Stored procedures, triggers and user-defined functions."""

import inspect

from checks import equal, refused, rows, settle

COPIES = """function (id, count) {
  var context = getContext(), items = context.getCollection(), made = 0;
  for (var n = 0; n < count; n++) {
    var accepted = items.createDocument(items.getSelfLink(), { id: id + n, pk: "p" }, function (error) {
      if (error) throw error;
      context.getResponse().setBody(++made);
    });
    if (!accepted) return;
  }
}"""
RENAME = """function () {
  var request = getContext().getRequest(), item = request.getBody();
  item.id = item.id.toUpperCase();
  request.setBody(item);
}"""


def declare(tour):
    """Adds the checks of this part to the tour."""

    @tour.check
    async def scripts_can_be_created_read_listed_replaced_and_deleted(world):
        scripts = (await world.container("scripts")).scripts
        created = await settle(scripts.create_stored_procedure({"id": "s", "body": "function () {}"}))
        equal((await settle(scripts.get_stored_procedure("s")))["_rid"], created["_rid"])
        await settle(scripts.replace_stored_procedure("s", {"id": "s", "body": "function () { return 1; }"}))
        found = await rows(scripts.list_stored_procedures())
        equal([(entry["id"], entry["body"]) for entry in found], [("s", "function () { return 1; }")], "listed")
        await settle(scripts.delete_stored_procedure("s"))
        await refused(404, lambda: scripts.get_stored_procedure("s"))

    @tour.check
    async def procedure_writes_all_or_nothing(world):
        container = await world.container("procedures")
        await settle(container.scripts.create_stored_procedure({"id": "copies", "body": COPIES}))

        # The flavours of the client differ in the name.
        call = container.scripts.execute_stored_procedure
        keyword = "params" if "params" in inspect.signature(call).parameters else "parameters"

        def execute(*arguments):
            return call("copies", partition_key="p", **{keyword: list(arguments)})

        equal(await settle(execute("a", 3)), 3)
        await settle(container.create_item({"id": "b2", "pk": "p"}))
        await refused(400, lambda: execute("b", 3))
        found = await rows(container.query_items("SELECT VALUE c.id FROM c", partition_key="p"))
        equal(sorted(found), ["a0", "a1", "a2", "b2"], "after a procedure that failed at its last item")

    @tour.check
    async def endless_procedure_ends_with_408(world):
        container = await world.container("endless")
        await settle(container.scripts.create_stored_procedure({"id": "s", "body": "function () { while (true) {} }"}))
        await refused(408, lambda: container.scripts.execute_stored_procedure("s", partition_key="p"))

    @tour.check
    async def triggers_change_an_item_and_take_a_write_back(world):
        container = await world.container("triggers")
        for name, when, body in [("rename", "Pre", RENAME), ("fail", "Post", "function () { throw new Error('no'); }")]:
            await settle(container.scripts.create_trigger(
                {"id": name, "body": body, "triggerType": when, "triggerOperation": "All"}))
        created = await settle(container.create_item({"id": "a", "pk": "p"}, pre_trigger_include="rename"))
        equal(created["id"], "A")
        await refused(400, lambda: container.create_item({"id": "b", "pk": "p"}, post_trigger_include="fail"))
        await refused(404, lambda: container.read_item("b", "p"))

    @tour.check
    async def functions_are_called_by_queries(world):
        container = await world.container("functions")
        await settle(container.create_item({"id": "a", "pk": "p", "n": 4}))
        await settle(container.scripts.create_user_defined_function(
            {"id": "square", "body": "function (n) { return n * n; }"}))
        found = await rows(container.query_items("SELECT VALUE udf.square(c.n) FROM c", partition_key="p"))
        equal(found, [16])
