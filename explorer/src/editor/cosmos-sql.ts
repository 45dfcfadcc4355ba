// The query language of Cosmos DB: highlighting and completion.

import { autocompletion, type CompletionContext, type CompletionResult, completeFromList } from "@codemirror/autocomplete";
import { LanguageSupport, StreamLanguage, type StringStream } from "@codemirror/language";

const KEYWORDS = `all and array as asc between by cross desc distinct escape exists false from group having in inner join let like limit
  not null offset on or order rank select top true undefined value where`.split(/\s+/);

const FUNCTIONS = `ABS ACOS ARRAY_AVG ARRAY_CONCAT ARRAY_CONTAINS ARRAY_CONTAINS_ALL ARRAY_CONTAINS_ANY ARRAY_LENGTH ARRAY_MAX ARRAY_MEDIAN
  ARRAY_MIN ARRAY_SLICE ARRAY_SUM ASIN ATAN ATN2 AVG CEILING CHOOSE CONCAT CONTAINS COS COT COUNT COUNTIF DateTimeAdd DateTimeBin DateTimeDiff
  DateTimeFromParts DateTimePart DateTimeToTicks DateTimeToTimestamp DEGREES DOCUMENTID ENDSWITH EXP FLOOR FullTextContains FullTextContainsAll
  FullTextContainsAny FullTextScore GetCurrentDateTime GetCurrentDateTimeStatic GetCurrentTicks GetCurrentTicksStatic GetCurrentTimestamp
  GetCurrentTimestampStatic IIF INDEX_OF IntAdd IntBitAnd IntBitLeftShift IntBitNot IntBitOr IntBitRightShift IntBitXor IntDiv IntMod IntMul IntSub
  IS_ARRAY IS_BOOL IS_DATETIME IS_DEFINED IS_FINITE_NUMBER IS_INTEGER IS_NULL IS_NUMBER IS_OBJECT IS_PRIMITIVE IS_STRING LAST_INDEX_OF LEFT LENGTH
  LOG LOG10 LOWER LTRIM MAX MIN NumberBin ObjectToArray PI POWER RADIANS RAND RegexExtract RegexExtractAll RegexMatch REPLACE REPLICATE REVERSE RIGHT
  ROUND RRF RTRIM SetDifference SetEqual SetIntersect SetUnion SIGN SIN SQRT SQUARE STARTSWITH StringEquals StringJoin StringSplit StringToArray
  StringToBoolean StringToNull StringToNumber StringToObject ST_AREA ST_DISTANCE ST_INTERSECTS ST_ISVALID ST_ISVALIDDETAILED ST_WITHIN SUBSTRING SUM
  TAN TicksToDateTime TimestampToDateTime ToString TRIM TRUNC UPPER VectorDistance`.split(/\s+/);

const IS_KEYWORD = new Set(KEYWORDS);
const IS_FUNCTION = new Set(FUNCTIONS.map((name) => name.toLowerCase()));

function token(stream: StringStream): string | null {
  if (stream.eatSpace()) return null;
  if (stream.match("--")) {
    stream.skipToEnd();
    return "comment";
  }
  if (stream.match(/^"(?:[^"\\]|\\.)*"?/) || stream.match(/^'(?:[^'\\]|\\.)*'?/)) return "string";
  if (stream.match(/^(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?/i)) return "number";
  if (stream.match(/^@\w+/)) return "propertyName";
  const word = stream.match(/^[\p{L}_][\p{L}\p{N}_]*/u) as RegExpMatchArray | null;
  if (word === null) {
    stream.next();
    return null;
  }
  const text = word[0].toLowerCase();
  const isMember = stream.string.charAt(stream.start - 1) === ".";
  if (!isMember && ["true", "false", "null", "undefined"].includes(text)) return "atom";
  if (!isMember && IS_KEYWORD.has(text)) return "keyword";
  if (IS_FUNCTION.has(text) && /^\s*\(/.test(stream.string.slice(stream.pos))) return "variableName.function";
  return "variableName";
}

const LANGUAGE = StreamLanguage.define({
  name: "cosmos-sql",
  token,
  languageData: { commentTokens: { line: "--" }, closeBrackets: { brackets: ["(", "[", "{", "'", '"'] } },
});

/** `names`: the properties that items are known to have. */
export function cosmosSql(names: () => readonly string[]): LanguageSupport {
  const words = completeFromList([
    ...KEYWORDS.map((word) => ({ label: word.toUpperCase(), type: "keyword" })),
    ...FUNCTIONS.map((word) => ({ label: word, type: "function", apply: `${word}(` })),
  ]);
  const complete = (context: CompletionContext): CompletionResult | null | Promise<CompletionResult | null> => {
    const member = context.matchBefore(/\.\w*$/);
    if (member === null) return words(context);
    const options = names().map((name) =>
      /^[A-Za-z_]\w*$/.test(name)
        ? { label: name, type: "property" }
        : { label: name, type: "property", apply: `["${name.replace(/["\\]/g, "\\$&")}"]` },
    );
    return { from: member.from + 1, options, validFor: /^\w*$/ };
  };
  return new LanguageSupport(LANGUAGE, autocompletion({ override: [complete] }));
}
