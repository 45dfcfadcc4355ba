// Signatures of requests: an HMAC-SHA-256 of verb, resource type, resource link and date, with the account's key.
// https://learn.microsoft.com/rest/api/cosmos-db/access-control-on-cosmosdb-resources

import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";

/** Signs texts with an account key. */
export type Signer = (text: string) => Promise<string>;

/** Resolves to `null` if the key is not base64. */
export async function signerOf(key: string): Promise<Signer | null> {
  const bytes = bytesOfBase64(key);
  if (bytes === null) return null;
  // Browsers have it on https and on localhost only; the server may be on another machine without TLS.
  const subtle: SubtleCrypto | undefined = globalThis.crypto?.subtle;
  if (subtle === undefined) {
    return async (text) => base64(hmac(sha256, bytes, new TextEncoder().encode(text)));
  }
  const imported = await subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return async (text) => base64(new Uint8Array(await subtle.sign("HMAC", imported, new TextEncoder().encode(text))));
}

/** The value of `authorization` for a request. `path`: encoded, without a slash at its beginning. */
export async function authorization(sign: Signer, verb: string, path: string, date: string): Promise<string> {
  const { type, link } = signedPart(path);
  const text = `${verb.toLowerCase()}\n${type}\n${link}\n${date.toLowerCase()}\n\n`;
  return encodeURIComponent(`type=master&ver=1.0&sig=${await sign(text)}`);
}

/** What the signature says of a path: the kind of resource, and the link of the resource, or of its parent if the path is that of a list. */
export function signedPart(path: string): { type: string; link: string } {
  const segments = path.split("/").filter((segment) => segment !== "");
  const isList = segments.length % 2 === 1;
  const type = segments.at(isList ? -1 : -2) ?? "";
  // An offer is named by its resource id, in lower case.
  const isOffer = type === "offers" && !isList;
  const link = isOffer ? (segments.at(-1) ?? "").toLowerCase() : (isList ? segments.slice(0, -1) : segments).join("/");
  return { type, link };
}

function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    const binary = atob(text.trim());
    return binary === "" ? null : Uint8Array.from(binary, (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}

function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}
