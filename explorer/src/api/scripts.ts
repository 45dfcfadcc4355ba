// Stored procedures, triggers and user-defined functions.

import { pathOf, type Place } from "./account";
import { type Answer, type Client, segment } from "./client";

export type Kind = "sprocs" | "triggers" | "udfs";

export interface Script {
  id: string;
  body: string;
  triggerType?: string;
  triggerOperation?: string;
}

const MEMBERS: Record<Kind, string> = { sprocs: "StoredProcedures", triggers: "Triggers", udfs: "UserDefinedFunctions" };

export async function scripts(client: Client, place: Place, kind: Kind): Promise<Script[]> {
  const { body } = await client.cosmos<Record<string, Script[]>>("GET", `${pathOf(place)}/${kind}`);
  return body[MEMBERS[kind]] ?? [];
}

export async function saveScript(client: Client, place: Place, kind: Kind, script: Script, isNew: boolean): Promise<Script> {
  const path = `${pathOf(place)}/${kind}`;
  const { triggerType, triggerOperation, id, body } = script;
  const wanted = kind === "triggers" ? { id, body, triggerType, triggerOperation } : { id, body };
  const answer = isNew
    ? await client.cosmos<Script>("POST", path, { body: wanted })
    : await client.cosmos<Script>("PUT", `${path}/${segment(id)}`, { body: wanted });
  return answer.body;
}

export async function deleteScript(client: Client, place: Place, kind: Kind, id: string): Promise<void> {
  await client.cosmos("DELETE", `${pathOf(place)}/${kind}/${segment(id)}`);
}

/** Runs a stored procedure on the items of a partition key. */
export async function runProcedure(
  client: Client,
  place: Place,
  id: string,
  key: string,
  parameters: string,
): Promise<Answer<unknown>> {
  return client.cosmos("POST", `${pathOf(place)}/sprocs/${segment(id)}`, {
    body: parameters,
    headers: { "x-ms-documentdb-partitionkey": key, "x-ms-documentdb-script-enable-logging": "true" },
  });
}
