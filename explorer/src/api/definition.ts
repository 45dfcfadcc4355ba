// The definition of a new container, out of what a form has.

/** As somebody has typed it. */
export interface Fields {
  id: string;
  /** Up to three paths, with commas between them. */
  key: string;
  /** Seconds; empty: off. */
  ttl: string;
  /** A constraint in each line: paths, with commas between them. */
  uniqueKeys: string;
  /** Paths with commas between them, and what is below them. */
  notIndexed: string;
  /** A path, its number of dimensions, and how vectors are compared; an empty path: none. */
  vectorPath: string;
  vectorDimensions: string;
  vectorDistance: string;
  vectorIndex: string;
  /** Paths with commas between them. */
  fullText: string;
  fullTextLanguage: string;
}

/** What somebody has typed with commas or line breaks between. */
const listOf = (text: string, between = ","): string[] =>
  text
    .split(between)
    .map((part) => part.trim())
    .filter((part) => part !== "");

export function definitionOf(fields: Fields): Record<string, unknown> {
  const paths = listOf(fields.key);
  const uniqueKeys = listOf(fields.uniqueKeys, "\n").map((line) => ({ paths: listOf(line) }));
  const vectors = fields.vectorPath === "" ? [] : [fields.vectorPath];
  const texts = listOf(fields.fullText);
  const notIndexed = [...listOf(fields.notIndexed), ...vectors].map((path) => ({ path: path.endsWith("/*") || path.endsWith("/?") ? path : `${path}/*` }));
  const hasPolicy = notIndexed.length + texts.length > 0;
  return {
    id: fields.id,
    partitionKey: { paths, kind: paths.length > 1 ? "MultiHash" : "Hash", version: 2 },
    ...(fields.ttl === "" ? {} : { defaultTtl: Number(fields.ttl) }),
    ...(uniqueKeys.length === 0 ? {} : { uniqueKeyPolicy: { uniqueKeys } }),
    ...(hasPolicy && {
      indexingPolicy: {
        indexingMode: "consistent",
        automatic: true,
        includedPaths: [{ path: "/*" }],
        excludedPaths: [{ path: '/"_etag"/?' }, ...notIndexed],
        ...(vectors.length > 0 && { vectorIndexes: vectors.map((path) => ({ path, type: fields.vectorIndex })) }),
        ...(texts.length > 0 && { fullTextIndexes: texts.map((path) => ({ path })) }),
      },
    }),
    ...(vectors.length > 0 && {
      vectorEmbeddingPolicy: {
        vectorEmbeddings: vectors.map((path) => ({
          path,
          dataType: "float32",
          distanceFunction: fields.vectorDistance,
          dimensions: Number(fields.vectorDimensions),
        })),
      },
    }),
    ...(texts.length > 0 && {
      fullTextPolicy: {
        defaultLanguage: fields.fullTextLanguage,
        fullTextPaths: texts.map((path) => ({ path, language: fields.fullTextLanguage })),
      },
    }),
  };
}
