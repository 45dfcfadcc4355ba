// A list of which only the rows in view are in the page.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/** Pixels. */
const ROW = 32;
/** Rows above and below those in view. */
const MARGIN = 8;

interface Properties<T> {
  rows: readonly T[];
  label: string;
  keyOf: (row: T) => string;
  render: (row: T) => ComponentChildren;
  selected: string | null;
  onSelect: (row: T) => void;
  /** Rows that something will be done with together: marked with Ctrl or Cmd and a click, or with the space bar. */
  marked?: ReadonlySet<string>;
  onMark?: (row: T) => void;
  /** The end is near. */
  onEnd?: () => void;
}

export function VirtualList<T>({ rows, label, keyOf, render, selected, onSelect, marked, onMark, onEnd }: Properties<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });

  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setView({ top: element.scrollTop, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const first = Math.max(0, Math.floor(view.top / ROW) - MARGIN);
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / ROW) + MARGIN);
  const isAtEnd = last >= rows.length;
  useEffect(() => {
    if (isAtEnd) onEnd?.();
  }, [isAtEnd, rows.length, onEnd]);

  const move = (by: number): void => {
    const at = rows.findIndex((row) => keyOf(row) === selected);
    const next = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
    if (next === undefined) return;
    onSelect(next);
    const top = rows.indexOf(next) * ROW;
    const element = box.current;
    if (element === null) return;
    if (top < element.scrollTop) element.scrollTop = top;
    if (top + ROW > element.scrollTop + element.clientHeight) element.scrollTop = top + ROW - element.clientHeight;
  };
  const isChosen = (row: T): boolean => keyOf(row) === selected || marked?.has(keyOf(row)) === true;
  const onKeyDown = (event: KeyboardEvent): void => {
    const current = rows.find((row) => keyOf(row) === selected);
    if (event.key === " " && current !== undefined && onMark !== undefined) {
      event.preventDefault();
      onMark(current);
      return;
    }
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -rows.length, End: rows.length }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    move(by);
  };

  return (
    <div
      class="virtual-list"
      ref={box}
      role="listbox"
      aria-label={label}
      aria-multiselectable={onMark !== undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onScroll={(event) => setView({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })}
    >
      <div role="presentation" style={{ height: `${rows.length * ROW}px`, position: "relative" }}>
        {rows.slice(first, last).map((row, at) => (
          <div
            key={keyOf(row)}
            role="option"
            aria-selected={isChosen(row)}
            aria-setsize={rows.length}
            aria-posinset={first + at + 1}
            class={marked?.has(keyOf(row)) === true ? "row marked" : "row"}
            style={{ top: `${(first + at) * ROW}px`, height: `${ROW}px` }}
            onClick={(event) => (event.ctrlKey || event.metaKey) && onMark !== undefined ? onMark(row) : onSelect(row)}
          >
            {render(row)}
          </div>
        ))}
      </div>
    </div>
  );
}
