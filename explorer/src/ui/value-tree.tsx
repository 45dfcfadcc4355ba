// A JSON value as a tree, of which branches are made when they are opened.

import { useState } from "preact/hooks";

/** Members of a branch that are shown at once. */
const SHOWN = 200;

export function ValueTree({ value }: { value: unknown }) {
  return (
    <div class="table code tree-of-value" tabIndex={0} role="region" aria-label="Results">
      <Members value={value as object} />
    </div>
  );
}

function Members({ value }: { value: object }) {
  const [shown, setShown] = useState(SHOWN);
  const members = Object.entries(value);
  return (
    <ul>
      {members.slice(0, shown).map(([name, member]) => (
        <Member key={name} name={name} value={member} />
      ))}
      {members.length > shown && (
        <li>
          <button onClick={() => setShown(shown + SHOWN)}>{members.length - shown} more</button>
        </li>
      )}
    </ul>
  );
}

function Member({ name, value }: { name: string; value: unknown }) {
  const [isOpen, setOpen] = useState(false);
  if (typeof value !== "object" || value === null) {
    return (
      <li>
        <span class="muted">{name}:</span> {JSON.stringify(value)}
      </li>
    );
  }
  const size = Object.keys(value).length;
  return (
    <li>
      <button class="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? "▾" : "▸"} <span class="muted">{name}:</span> {Array.isArray(value) ? `[${size}]` : `{${size}}`}
      </button>
      {isOpen && <Members value={value} />}
    </li>
  );
}
