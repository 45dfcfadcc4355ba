/**
 * Queries: each one on a container of one range and on one of five, in pages of one, of three and of any size, and once
 * through the SDK's own query pipeline even where the server could answer directly.
 */
import { equal, refused, sorted } from "../checks.mjs";
import { DATA, FIVE_RANGES, add, query } from "./world.mjs";

const VARIANTS = [{ maxItemCount: 1 }, { maxItemCount: 3 }, {}, { maxItemCount: 3, forceQueryPlan: true }];

export function declareQueries(tour) {
  const stores = {};

  tour.check("items are stored on one range and on five", async (world) => {
    stores["one range"] = await world.container("one range");
    stores["five ranges"] = await world.container("five ranges", { throughput: FIVE_RANGES });
    for (const container of Object.values(stores)) await add(container, ...DATA.items);
  });

  for (const where of ["one range", "five ranges"]) {
    for (const { name, text, parameters, ordered, rows } of DATA.queries) {
      tour.check(`query ${name} on ${where}`, async () => {
        const spec = { query: text, parameters: Object.entries(parameters).map(([name, value]) => ({ name, value })) };
        for (const options of VARIANTS) {
          const found = await allPages(stores[where].items.query(spec, options));
          const what = `rows with ${JSON.stringify(options)}`;
          equal(ordered ? found : sorted(found), ordered ? rows : sorted(rows), what);
        }
      });
    }
  }

  tour.check("query with a partition key sees only its items", async () => {
    for (const container of Object.values(stores)) {
      const text = "SELECT VALUE c.n FROM c WHERE c.n > 5 ORDER BY c.n";
      equal(await query(container, text, { partitionKey: "p3" }), [13, 21]);
    }
  });

  tour.check("continuation token resumes with the rest", async () => {
    const text = "SELECT VALUE c.id FROM c";
    const options = { partitionKey: "p1", maxItemCount: 1 };
    const first = await stores["one range"].items.query(text, options).fetchNext();
    const continuationToken = first.continuationToken;
    const rest = await stores["one range"].items.query(text, { ...options, continuationToken }).fetchAll();
    equal(sorted([...first.resources, ...rest.resources]), ["item 01", "item 09", "item 17"]);
    equal(first.resources.length, 1, "rows of the first page");
  });

  tour.check("read all returns every item", async () => {
    for (const container of Object.values(stores)) {
      const { resources } = await container.items.readAll({ maxItemCount: 7 }).fetchAll();
      equal(resources.map(({ id }) => id).sort(), DATA.items.map(({ id }) => id));
    }
  });

  tour.check("malformed query is refused with 400", async () => {
    for (const container of Object.values(stores)) await refused(400, () => query(container, "SELEKT *"));
  });
}

/** Returns the rows of every page, as an application that shows page after page reads them. */
async function allPages(iterator) {
  const rows = [];
  while (iterator.hasMoreResults()) rows.push(...((await iterator.fetchNext()).resources ?? []));
  return rows;
}
