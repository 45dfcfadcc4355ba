// Reads values in the syntax of MongoDB's shell, of which JSON is a part. Nothing is run: the page's policy allows no such thing.

import { type Document, Repeated, Typed, type Value } from "./value";

/** Levels that the server takes, and those that a reply may have: what drivers have stored may be deeper. */
const [DEEPEST, DEEPEST_REPLY] = [100, 400];
const INT = [-2_147_483_648n, 2_147_483_647n] as const;
const LONG = [-9_223_372_036_854_775_808n, 9_223_372_036_854_775_807n] as const;

/** Reads one value. Throws with the place of what is wrong. */
export function parse(text: string): Value {
  const reader = new Reader(text);
  const value = reader.value(0);
  reader.end();
  return value;
}

/** Reads a reply of the server, of which nothing is refused: a document in which a name is there twice becomes a `Repeated`. */
export function parseReply(text: string): Value {
  const reader = new Reader(text, true);
  const value = reader.value(0);
  reader.end();
  return value;
}

/** Reads a document; an empty text is an empty one. */
export function parseDocument(text: string): Document {
  if (text.trim() === "") return new Map();
  const value = parse(text);
  if (!(value instanceof Map)) throw new Error("This must be a document: { name: value, … }.");
  return value;
}

/** Reads documents: an array of them, or one after the other. */
export function parseDocuments(text: string): Document[] {
  const reader = new Reader(text);
  const found: Value[] = [];
  while (!reader.isAtEnd()) found.push(reader.value(0));
  const [only] = found;
  const all = found.length === 1 && Array.isArray(only) ? only : found;
  return all.map((one) => {
    if (!(one instanceof Map)) throw new Error("These must be documents: { name: value, … }.");
    return one;
  });
}

class Reader {
  private at = 0;

  constructor(
    private readonly text: string,
    private readonly isReply = false,
  ) {}

  private fail(what: string): never {
    const before = this.text.slice(0, this.at);
    const line = before.split("\n").length;
    throw new Error(`Line ${line}, column ${this.at - before.lastIndexOf("\n")}: ${what}`);
  }

  /** Passes over blanks and comments. */
  private blanks(): void {
    const blanks = /(?:\s|\/\/[^\n]*|\/\*[^]*?\*\/)*/y;
    blanks.lastIndex = this.at;
    blanks.test(this.text);
    this.at = blanks.lastIndex;
  }

  isAtEnd(): boolean {
    this.blanks();
    return this.at >= this.text.length;
  }

  end(): void {
    if (!this.isAtEnd()) this.fail(`nothing is expected here but "${this.text.slice(this.at, this.at + 10)}"`);
  }

  /** Takes what is next if it fits. */
  private take(pattern: RegExp): string | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) return null;
    this.at = pattern.lastIndex;
    return found[0];
  }

  private has(character: string): boolean {
    this.blanks();
    if (this.text[this.at] !== character) return false;
    this.at += 1;
    return true;
  }

  private expect(character: string): void {
    if (!this.has(character)) this.fail(`"${character}" is missing`);
  }

  value(depth: number): Value {
    this.blanks();
    const deepest = this.isReply ? DEEPEST_REPLY : DEEPEST;
    if (depth > deepest) this.fail(`more than ${deepest} levels`);
    switch (this.text[this.at]) {
      case undefined:
        return this.fail("a value is missing");
      case "{":
        return this.document(depth);
      case "[":
        return this.array(depth);
      case '"':
      case "'":
      case "`":
        return this.string();
      case "/":
        return this.regex();
      default:
        return this.number() ?? this.word(depth);
    }
  }

  private document(depth: number): Document {
    this.expect("{");
    let document: Document = new Map();
    while (!this.has("}")) {
      const start = this.at;
      let name = this.name();
      if (document.has(name)) {
        if (!this.isReply) {
          this.at = start;
          this.fail(`"${name}" is there twice`);
        }
        if (!(document instanceof Repeated)) document = new Repeated(document);
        while (document.has(name)) name += " (again)";
      }
      this.expect(":");
      document.set(name, this.value(depth + 1));
      if (!this.has(",")) {
        this.expect("}");
        break;
      }
    }
    return document;
  }

  private name(): string {
    this.blanks();
    const first = this.text[this.at];
    if (first === '"' || first === "'") return this.string();
    return this.take(/[\p{L}_$][\p{L}\p{N}_$]*|\d+/uy) ?? this.fail("the name of a field is missing");
  }

  private array(depth: number): Value[] {
    this.expect("[");
    const values: Value[] = [];
    while (!this.has("]")) {
      values.push(this.value(depth + 1));
      if (!this.has(",")) {
        this.expect("]");
        break;
      }
    }
    return values;
  }

  private string(): string {
    const quote = this.text[this.at] ?? "";
    let value = "";
    this.at += 1;
    for (;;) {
      const plain = this.take(quote === "`" ? /[^`\\]+/y : quote === "'" ? /[^'\\\n]+/y : /[^"\\\n]+/y);
      if (plain !== null) value += plain;
      const next = this.text[this.at];
      if (next === undefined || next === "\n") return this.fail("the end of the text is missing");
      this.at += 1;
      if (next === quote) return value;
      value += this.escape();
    }
  }

  private escape(): string {
    const code = this.take(/u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}/y);
    if (code !== null) return String.fromCharCode(Number.parseInt(code.slice(1), 16));
    const one = this.text[this.at];
    if (one === undefined || /[ux0-9]/.test(one)) return this.fail("an escape that is not known");
    this.at += 1;
    const known = "nrtbfv".indexOf(one);
    return known < 0 ? one : ("\n\r\t\b\f\v"[known] ?? one);
  }

  private regex(): Typed {
    const found = this.take(/\/(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y) ?? this.fail("a regular expression without its end");
    const end = found.lastIndexOf("/");
    return new Typed("regex", found.slice(1, end).replace(/\\(.)/g, (escape, one: string) => (one === "/" ? "/" : escape)), [...found.slice(end + 1)].sort().join(""));
  }

  private number(): Typed | null {
    const found = this.take(/[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|Infinity\b)/y);
    if (found === null) return null;
    if (/[\p{L}_$]/uy.test(this.text.slice(this.at, this.at + 1))) return this.fail("a number with something behind it");
    const text = found.replace(/^\+/, "");
    return /^-?\d+$/.test(text) ? whole(text) ?? this.fail(`${text} is larger than a whole number can be`) : double(text);
  }

  private word(depth: number): Value {
    const start = this.at;
    const first = this.take(/[\p{L}_$][\p{L}\p{N}_$]*/uy) ?? this.fail(`"${this.text[this.at]}" is not expected here`);
    let name = first;
    if (name === "new") {
      this.blanks();
      name = this.take(/[\p{L}_$][\p{L}\p{N}_$]*/uy) ?? this.fail("the name of a type is missing");
    }
    const constants: Record<string, Value> = {
      true: true,
      false: false,
      null: null,
      undefined: new Typed("undefined", ""),
      NaN: new Typed("double", "NaN"),
    };
    if (first !== "new" && Object.hasOwn(constants, name)) return constants[name] ?? null;
    const made = Object.hasOwn(MAKERS, name) ? MAKERS[name] : undefined;
    if (made === undefined) {
      this.at = start;
      return this.fail(`"${name}" is not known. Texts stand in quotation marks`);
    }
    const given: Value[] = [];
    if (this.has("(")) {
      while (!this.has(")")) {
        given.push(this.value(depth + 1));
        if (!this.has(",")) {
          this.expect(")");
          break;
        }
      }
    } else if (name !== "MinKey" && name !== "MaxKey") {
      return this.fail(`"(" is missing after ${name}`);
    }
    const [most, make] = made;
    const value = given.length > most ? null : make(given);
    if (value === null) {
      this.at = start;
      return this.fail(`${name} cannot be made of this`);
    }
    return value;
  }
}

/** `null`: it has more than 64 bits. */
function whole(text: string): Typed | null {
  const number = BigInt(text);
  // -0 is a double.
  if (number === 0n && text.startsWith("-")) return new Typed("double", "-0.0");
  if (number >= INT[0] && number <= INT[1]) return new Typed("int", String(number));
  return number >= LONG[0] && number <= LONG[1] ? new Typed("long", String(number)) : null;
}

function double(text: string): Typed {
  const number = Number(text);
  if (Object.is(number, -0)) return new Typed("double", "-0.0");
  return new Typed("double", Number.isInteger(number) && Math.abs(number) < 1e21 ? `${number}.0` : String(number));
}

type Maker = (given: Value[]) => Value | null;

const isNumber = (value: Value | undefined): value is Typed => value instanceof Typed && ["int", "long", "double"].includes(value.type);

/** The text of a number, given as a text or as a number. */
function digits(value: Value | undefined, pattern: RegExp): string | null {
  const text = typeof value === "string" ? value : isNumber(value) ? value.text.replace(/\.0$/, "") : null;
  return text !== null && pattern.test(text) ? text : null;
}

const WHOLE = /^-?\d+$/;
const HEX = "0123456789abcdef";

function randomId(): string {
  const seconds = Math.floor(Date.now() / 1_000).toString(16).padStart(8, "0");
  return seconds + Array.from(crypto.getRandomValues(new Uint8Array(16)), (one) => HEX[one % 16]).join("");
}

function ranged(type: "int" | "long", [least, most]: readonly [bigint, bigint]): Maker {
  return ([value = "0"]) => {
    const text = digits(value, WHOLE);
    return text !== null && BigInt(text) >= least && BigInt(text) <= most ? new Typed(type, String(BigInt(text))) : null;
  };
}

const objectId: Maker = ([value]) => {
  if (value === undefined) return new Typed("objectId", randomId());
  return typeof value === "string" && /^[0-9a-fA-F]{24}$/.test(value) ? new Typed("objectId", value.toLowerCase()) : null;
};

const date: Maker = ([value]) => {
  if (value === undefined) return new Typed("date", String(Date.now()));
  if (isNumber(value)) {
    const ms = digits(value, WHOLE);
    return ms === null ? null : new Typed("date", ms);
  }
  // Other forms would be read in the browser's zone.
  const [, day, time = "T00:00", zone = "Z"] = ISO.exec(typeof value === "string" ? value : "") ?? [];
  const ms = day === undefined ? Number.NaN : Date.parse(day + time.replace(" ", "T") + zone.replace(/^([+-]\d\d)(\d\d)$/, "$1:$2"));
  return Number.isNaN(ms) ? null : new Typed("date", String(ms));
};

/** A day, and perhaps a time and a zone; UTC without one, as in the shell's ISODate. */
const ISO = /^(\d{4}-\d\d-\d\d)([T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)?(Z|[+-]\d\d:?\d\d)?$/;

const decimal: Maker = ([value]) => {
  // The digits of a double are not those that were typed.
  if (value instanceof Typed && value.type === "double") return null;
  const text = digits(value, /^(?:[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?Infinity|NaN)$/);
  return text === null ? null : new Typed("decimal", text);
};

const toDouble: Maker = ([value]) => {
  const text = digits(value, /^(?:[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|-?Infinity|NaN)$/);
  return text === null ? null : double(text);
};

const regex: Maker = ([pattern, options = ""]) =>
  typeof pattern === "string" && typeof options === "string" && /^[a-zA-Z]*$/.test(options) ? new Typed("regex", pattern, [...options].sort().join("")) : null;

const binary: Maker = ([subType, base64]) => {
  const number = Number(digits(subType, /^\d{1,3}$/) ?? Number.NaN);
  if (!(number <= 255) || typeof base64 !== "string" || !/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(base64)) return null;
  return new Typed("binary", base64, number.toString(16).padStart(2, "0"));
};

const uuid: Maker = ([value]) => {
  const text = value === undefined ? crypto.randomUUID() : value;
  const hex = typeof text === "string" ? text.replaceAll("-", "") : "";
  if (!/^[0-9a-fA-F]{32}$/.test(hex)) return null;
  const bytes = hex.match(/../g) ?? [];
  return new Typed("binary", btoa(String.fromCharCode(...bytes.map((byte) => Number.parseInt(byte, 16)))), "04");
};

const timestamp: Maker = ([first = new Typed("int", "0"), second = new Typed("int", "0")]) => {
  const [seconds, increment] = first instanceof Map ? [first.get("t"), first.get("i")] : [first, second];
  const [t, i] = [digits(seconds, /^\d+$/), digits(increment, /^\d+$/)];
  return t === null || i === null || Number(t) > 0xffffffff || Number(i) > 0xffffffff ? null : new Typed("timestamp", t, i);
};

const code: Maker = ([text, scope]) => {
  if (typeof text !== "string" || !(scope === undefined || scope instanceof Map)) return null;
  return new Typed("code", text, scope ?? "");
};

/** How many values each takes at most. */
const MAKERS: Record<string, readonly [most: number, make: Maker]> = {
  ObjectId: [1, objectId],
  ISODate: [1, date],
  Date: [1, date],
  NumberInt: [1, ranged("int", INT)],
  Int32: [1, ranged("int", INT)],
  NumberLong: [1, ranged("long", LONG)],
  Long: [1, ranged("long", LONG)],
  NumberDecimal: [1, decimal],
  Decimal128: [1, decimal],
  Double: [1, toDouble],
  RegExp: [2, regex],
  BSONRegExp: [2, regex],
  BinData: [2, binary],
  UUID: [1, uuid],
  Timestamp: [2, timestamp],
  Code: [2, code],
  BSONSymbol: [1, ([text]) => (typeof text === "string" ? new Typed("symbol", text) : null)],
  DBPointer: [2, ([text, id]) => (typeof text === "string" && id instanceof Typed && id.type === "objectId" ? new Typed("dbPointer", text, id.text) : null)],
  MinKey: [0, () => new Typed("minKey", "")],
  MaxKey: [0, () => new Typed("maxKey", "")],
};
