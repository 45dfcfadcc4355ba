// Documents as a table and as a tree, with the types of their values.

import { useState } from "preact/hooks";
import { type Document, printShort, typeOf, type Value } from "../mongo/value";

/** Columns of a table, and members of a branch that are shown at once. */
const [COLUMNS, SHOWN] = [50, 200];

export function DocumentTable({ documents }: { documents: readonly Document[] }) {
  const columns = new Set<string>();
  for (const document of documents.slice(0, 100)) [...document.keys()].forEach((name) => columns.add(name));
  const names = [...columns].slice(0, COLUMNS);
  return (
    <div class="table" tabIndex={0} role="region" aria-label="Results">
      <table>
        <thead>
          <tr>
            {names.map((name) => (
              <th key={name}>{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {documents.map((document, at) => (
            <tr key={at}>
              {names.map((name) => {
                const value = document.get(name);
                return value === undefined ? <td key={name} /> : <td key={name} title={typeOf(value)}>{printShort(value, 80)}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function DocumentTree({ documents }: { documents: readonly Document[] }) {
  return (
    <div class="table code tree-of-value" tabIndex={0} role="region" aria-label="Results">
      <Members of={documents.map((document, at) => [String(at), document])} />
    </div>
  );
}

function Members({ of }: { of: readonly (readonly [name: string, value: Value])[] }) {
  const [shown, setShown] = useState(SHOWN);
  return (
    <ul>
      {of.slice(0, shown).map(([name, value], at) => (
        <Member key={at} name={name} value={value} />
      ))}
      {of.length > shown && (
        <li>
          <button onClick={() => setShown(shown + SHOWN)}>{of.length - shown} more</button>
        </li>
      )}
    </ul>
  );
}

function Member({ name, value }: { name: string; value: Value }) {
  const [isOpen, setOpen] = useState(false);
  const within = value instanceof Map ? [...value] : Array.isArray(value) ? value.map((one, at) => [String(at), one] as const) : null;
  if (within === null) {
    return (
      <li>
        <span class="muted">{name}:</span> {printShort(value)} <span class="tag">{typeOf(value)}</span>
      </li>
    );
  }
  return (
    <li>
      <button class="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? "▾" : "▸"} <span class="muted">{name}:</span> {Array.isArray(value) ? `[${within.length}]` : `{${within.length}}`}
      </button>
      {isOpen && <Members of={within} />}
    </li>
  );
}
