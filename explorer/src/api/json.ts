// JSON whose whole numbers keep all their digits: the server stores 64 bits of them, JavaScript 53.

declare global {
  interface JSON {
    rawJSON?(text: string): object;
    isRawJSON?(value: unknown): boolean;
  }
}

/** As `JSON.parse`, but a whole number that JavaScript would change stays as it is written, where the browser can do that. */
export function parse(text: string): unknown {
  const { rawJSON } = JSON;
  if (rawJSON === undefined || !/\d{16}/.test(text)) return JSON.parse(text);
  const keep = (_: string, value: unknown, context?: { source?: string }): unknown => {
    const source = context?.source;
    const changes = typeof value === "number" && source !== undefined && /^-?\d+$/.test(source) && !Number.isSafeInteger(value);
    return changes ? rawJSON(source) : value;
  };
  return JSON.parse(text, keep as (key: string, value: unknown) => unknown);
}

/** Whether a value is a number that was kept as it is written. */
export const isKept = (value: unknown): boolean => JSON.isRawJSON?.(value) === true;
