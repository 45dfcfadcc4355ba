// Values of MongoDB with their types: from Extended JSON, to it, and as text in the syntax of MongoDB's shell.
//
// A document is a map, because the order of its fields counts: objects put names such as "1" first.

/** A value of a type that JSON does not have; its members are those of canonical Extended JSON, as text. */
export class Typed {
  constructor(
    readonly type: TypeName,
    /** The digits of a number; of others as `print` shows it. */
    readonly text: string,
    /** A second part: of a timestamp the increment, of binary data the subtype, of a regular expression its options, of a pointer the id. */
    readonly more: string | Document = "",
  ) {}
}

export type TypeName =
  | "binary"
  | "code"
  | "date"
  | "dbPointer"
  | "decimal"
  | "double"
  | "int"
  | "long"
  | "maxKey"
  | "minKey"
  | "objectId"
  | "regex"
  | "symbol"
  | "timestamp"
  | "undefined";

export type Document = Map<string, Value>;
export type Value = null | boolean | string | Typed | Value[] | Document;

/** A document in which a name is there more than once. It is shown, but what is shown is not the document. */
export class Repeated extends Map<string, Value> {}

/** Whether the text of a value is that value, so that it may be edited. */
export function isFaithful(value: Value): boolean {
  if (Array.isArray(value)) return value.every(isFaithful);
  return !(value instanceof Map) || (!(value instanceof Repeated) && [...value.values()].every(isFaithful));
}

/** How many levels of documents and arrays a value has. */
export function depthOf(value: Value): number {
  const within = Array.isArray(value) ? value : value instanceof Map ? [...value.values()] : null;
  return within === null ? 0 : 1 + within.reduce<number>((most, one) => Math.max(most, depthOf(one)), 0);
}

/** The name of a value's type, as `$type` knows it. */
export function typeOf(value: Value): string {
  if (value === null) return "null";
  if (value instanceof Typed) return value.type === "binary" ? "binData" : value.type;
  if (value instanceof Map) return "object";
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : "string";
}

export const int = (number: number): Typed => new Typed("int", String(number));

/** A date, from milliseconds since 1970. */
export const date = (ms: number): Typed => new Typed("date", String(ms));

/** A document, from its fields. */
export const doc = (...fields: [name: string, value: Value][]): Document => new Map(fields);

/** A text member of a document; "" if it is not there. */
export function textAt(document: Document | undefined, name: string): string {
  const value = document?.get(name);
  return typeof value === "string" ? value : "";
}

/** A number in a document; `null` if it is not there. */
export function numberAt(document: Document | undefined, name: string): number | null {
  const value = document?.get(name);
  return value instanceof Typed && ["double", "int", "long"].includes(value.type) ? Number(value.text) : null;
}

export function documentAt(document: Document | undefined, name: string): Document | undefined {
  const value = document?.get(name);
  return value instanceof Map ? value : undefined;
}

export function documentsAt(document: Document | undefined, name: string): Document[] {
  const value = document?.get(name);
  return Array.isArray(value) ? value.filter((one) => one instanceof Map) : [];
}

const textOf = (value: Value | undefined): string | null => (typeof value === "string" ? value : null);

/** Documents that stand for values of a type become these; all others stay. */
export function fromExtended(value: Value): Value {
  if (Array.isArray(value)) return value.map(fromExtended);
  if (!(value instanceof Map)) return value;
  const members = [...value].map(([name, member]): [string, Value] => [name, fromExtended(member)]);
  return typed(value) ?? (value instanceof Repeated ? new Repeated(members) : new Map(members));
}

const SIMPLE: Record<string, TypeName> = {
  $numberInt: "int",
  $numberLong: "long",
  $numberDouble: "double",
  $numberDecimal: "decimal",
  $oid: "objectId",
  $symbol: "symbol",
};

function typed(document: Document): Typed | null {
  const [first] = document;
  if (first === undefined || !first[0].startsWith("$") || document.size > 2) return null;
  const [name, inner] = first;
  const text = textOf(inner);
  const simple = Object.hasOwn(SIMPLE, name) ? SIMPLE[name] : undefined;
  if (name === "$code" && text !== null) {
    const scope = documentAt(document, "$scope");
    return new Typed("code", text, scope === undefined ? "" : (fromExtended(scope) as Document));
  }
  if (document.size > 1) return null;
  if (simple !== undefined && text !== null) return new Typed(simple, text);
  const within = inner instanceof Map ? inner : undefined;
  switch (name) {
    case "$date": {
      const ms = textOf(within?.get("$numberLong"));
      return ms === null ? null : new Typed("date", ms);
    }
    case "$timestamp": {
      const [seconds, increment] = [numberAt(within, "t"), numberAt(within, "i")];
      return seconds === null || increment === null ? null : new Typed("timestamp", String(seconds), String(increment));
    }
    case "$binary":
      return within === undefined ? null : new Typed("binary", textAt(within, "base64"), textAt(within, "subType"));
    case "$regularExpression":
      return within === undefined ? null : new Typed("regex", textAt(within, "pattern"), textAt(within, "options"));
    case "$dbPointer":
      return within === undefined ? null : new Typed("dbPointer", textAt(within, "$ref"), textAt(documentAt(within, "$id"), "$oid"));
    case "$undefined":
      return new Typed("undefined", "");
    case "$minKey":
      return new Typed("minKey", "");
    case "$maxKey":
      return new Typed("maxKey", "");
    default:
      return null;
  }
}

/** A value as canonical Extended JSON. */
export function toExtended(value: Value): string {
  if (Array.isArray(value)) return `[${value.map(toExtended).join(",")}]`;
  if (value instanceof Map) return `{${[...value].map(([name, member]) => `${JSON.stringify(name)}:${toExtended(member)}`).join(",")}}`;
  return value instanceof Typed ? extended(value) : JSON.stringify(value);
}

function extended({ type, text, more }: Typed): string {
  const quoted = JSON.stringify(text);
  switch (type) {
    case "int":
      return `{"$numberInt":${quoted}}`;
    case "long":
      return `{"$numberLong":${quoted}}`;
    case "double":
      return `{"$numberDouble":${quoted}}`;
    case "decimal":
      return `{"$numberDecimal":${quoted}}`;
    case "objectId":
      return `{"$oid":${quoted}}`;
    case "symbol":
      return `{"$symbol":${quoted}}`;
    case "date":
      return `{"$date":{"$numberLong":${quoted}}}`;
    case "timestamp":
      return `{"$timestamp":{"t":${text},"i":${String(more)}}}`;
    case "binary":
      return `{"$binary":{"base64":${quoted},"subType":${JSON.stringify(more)}}}`;
    case "regex":
      return `{"$regularExpression":{"pattern":${quoted},"options":${JSON.stringify(more)}}}`;
    case "dbPointer":
      return `{"$dbPointer":{"$ref":${quoted},"$id":{"$oid":${JSON.stringify(more)}}}}`;
    case "code":
      return more instanceof Map ? `{"$code":${quoted},"$scope":${toExtended(more)}}` : `{"$code":${quoted}}`;
    case "undefined":
      return '{"$undefined":true}';
    case "minKey":
      return '{"$minKey":1}';
    case "maxKey":
      return '{"$maxKey":1}';
  }
}

/** A value in the syntax of the shell, over several lines. What `parse` makes of it is the same value. */
export function print(value: Value, indent = ""): string {
  const within = `${indent}  `;
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]";
    const isShort = value.every((one) => !Array.isArray(one) && !(one instanceof Map)) && value.length <= 8;
    if (isShort) return `[${value.map((one) => print(one)).join(", ")}]`;
    return `[\n${value.map((one) => within + print(one, within)).join(",\n")}\n${indent}]`;
  }
  if (value instanceof Map) {
    if (value.size === 0) return "{}";
    return `{\n${[...value].map(([name, member]) => `${within}${printName(name)}: ${print(member, within)}`).join(",\n")}\n${indent}}`;
  }
  return value instanceof Typed ? printTyped(value) : JSON.stringify(value);
}

/** The same in one line of about so many characters. */
export function printShort(value: Value, room = 200): string {
  const parts: string[] = [];
  let left = room;
  const put = (text: string): void => {
    parts.push(text);
    left -= text.length;
  };
  const write = (value: Value): void => {
    if (left <= 0) return;
    if (Array.isArray(value)) list("[", value, write, "]");
    else if (value instanceof Map) {
      list("{", [...value], ([name, member]) => {
        put(`${printName(name)}: `);
        write(member);
      }, "}");
    } else put(value instanceof Typed ? printTyped(value) : JSON.stringify(typeof value === "string" ? value.slice(0, left) : value));
  };
  const list = <T>(open: string, of: T[], each: (one: T) => void, close: string): void => {
    put(open);
    for (const [at, one] of of.entries()) {
      if (left <= 0) break;
      if (at > 0) put(", ");
      each(one);
    }
    put(left <= 0 ? "…" : close);
  };
  write(value);
  return parts.join("");
}

const printName = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));

/** Dates that have four digits for their year. */
const [FIRST_DATE, LAST_DATE] = [-62_167_219_200_000, 253_402_300_799_999];

function printTyped({ type, text, more }: Typed): string {
  const quoted = JSON.stringify(text);
  switch (type) {
    case "int":
      return text;
    case "long":
      return `NumberLong(${quoted})`;
    case "double":
      return /^-?\d+$/.test(text) ? `${text}.0` : text;
    case "decimal":
      return `NumberDecimal(${quoted})`;
    case "objectId":
      return `ObjectId(${quoted})`;
    case "symbol":
      return `BSONSymbol(${quoted})`;
    case "date": {
      const ms = Number(text);
      return ms >= FIRST_DATE && ms <= LAST_DATE ? `ISODate(${JSON.stringify(new Date(ms).toISOString())})` : `ISODate(NumberLong(${quoted}))`;
    }
    case "timestamp":
      return `Timestamp(${text}, ${String(more)})`;
    case "binary":
      return uuidOf(text, String(more)) ?? `BinData(${Number.parseInt(String(more), 16)}, ${quoted})`;
    case "regex":
      return `RegExp(${quoted}, ${JSON.stringify(more)})`;
    case "dbPointer":
      return `DBPointer(${quoted}, ObjectId(${JSON.stringify(more)}))`;
    case "code":
      return more instanceof Map ? `Code(${quoted}, ${print(more)})` : `Code(${quoted})`;
    case "undefined":
      return "undefined";
    case "minKey":
      return "MinKey()";
    case "maxKey":
      return "MaxKey()";
  }
}

function uuidOf(base64: string, subType: string): string | null {
  if (subType !== "04") return null;
  const hex = [...atob(base64)].map((one) => one.charCodeAt(0).toString(16).padStart(2, "0")).join("");
  if (hex.length !== 32) return null;
  return `UUID("${hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")}")`;
}
