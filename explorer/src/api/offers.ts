// The throughput of a container, which the protocol calls an offer.

import { all, type Container } from "./account";
import type { Client } from "./client";
import type { Throughput } from "./throughput";

export interface Offer {
  _rid: string;
  _etag: string;
  offerResourceId: string;
  content: { offerThroughput: number; offerAutopilotSettings?: { maxThroughput: number } };
}

/** `null`: it has none of its own. */
export async function offerOf(client: Client, container: Container): Promise<Offer | null> {
  const offers = await all<Offer>(client, "offers", "Offers");
  return offers.find((offer) => offer.offerResourceId === container["_rid"]) ?? null;
}

export function throughputOf({ content }: Offer): Throughput {
  const most = content.offerAutopilotSettings?.maxThroughput;
  return most === undefined ? { kind: "manual", units: content.offerThroughput } : { kind: "autoscale", units: most };
}

/** Sets another throughput, also of the other kind, unless somebody else has changed it meanwhile. */
export async function replaceOffer(client: Client, offer: Offer, throughput: Throughput): Promise<Offer> {
  const { kind, units } = throughput;
  const { offerAutopilotSettings, ...content } = offer.content;
  const changed = {
    ...offer,
    content:
      kind === "manual"
        ? { ...content, offerThroughput: units }
        : { ...content, offerAutopilotSettings: { ...offerAutopilotSettings, maxThroughput: units } },
  };
  const headers: Record<string, string> = { "if-match": offer._etag };
  const migrates = kind !== throughputOf(offer).kind;
  if (migrates) {
    headers[kind === "manual" ? "x-ms-cosmos-migrate-offer-to-manual-throughput" : "x-ms-cosmos-migrate-offer-to-autopilot"] = "true";
  }
  const replaced = (await client.cosmos<Offer>("PUT", `offers/${offer._rid}`, { body: changed, headers })).body;
  // A migration chooses the throughput itself.
  return migrates && throughputOf(replaced).units !== units ? replaceOffer(client, replaced, throughput) : replaced;
}
