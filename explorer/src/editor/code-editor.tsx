// A text editor for JSON and for queries.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { bracketMatching, foldGutter, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { linter } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";
import { cosmosSql } from "./cosmos-sql";

/** The nonce that the page's policy has for styles: the editor makes its own. */
const NONCE = document.querySelector('meta[name="csp-nonce"]')?.getAttribute("content") ?? "";

const HIGHLIGHT = syntaxHighlighting(
  HighlightStyle.define([
    { tag: tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
    { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
    { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
    { tag: [tags.propertyName, tags.function(tags.variableName)], color: "var(--code-name)" },
    { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
    { tag: tags.invalid, color: "var(--bad)" },
  ]),
);

const BASE: Extension[] = [
  EditorView.cspNonce.of(NONCE),
  lineNumbers(),
  foldGutter(),
  history(),
  drawSelection(),
  indentOnInput(),
  bracketMatching(),
  closeBrackets(),
  highlightActiveLine(),
  highlightSelectionMatches(),
  HIGHLIGHT,
];

const KEYS = [...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap];

export interface Properties {
  language: "json" | "sql" | "javascript";
  /** Another text replaces what was typed. */
  text: string;
  label: string;
  isReadOnly?: boolean;
  onChange?: (text: string) => void;
  /** Ctrl or Cmd with Enter. */
  onRun?: () => void;
  /** Names of properties to complete. */
  names?: () => readonly string[];
}

export function CodeEditor(properties: Properties) {
  const { language, text, label, isReadOnly = false } = properties;
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  // What is called is always the newest, without a new editor.
  const latest = useRef(properties);
  latest.current = properties;

  useEffect(() => {
    if (box.current === null) return;
    const run = keymap.of([
      {
        key: "Mod-Enter",
        run: () => {
          latest.current.onRun?.();
          return true;
        },
      },
    ]);
    const speaks = {
      json: () => [json(), linter(jsonParseLinter()), autocompletion()],
      sql: () => [cosmosSql(() => latest.current.names?.() ?? [])],
      javascript: () => [javascript(), autocompletion()],
    }[language]();
    const editor = new EditorView({
      parent: box.current,
      state: EditorState.create({
        doc: latest.current.text,
        extensions: [
          run,
          keymap.of(KEYS),
          BASE,
          speaks,
          EditorState.readOnly.of(isReadOnly),
          EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
          EditorView.updateListener.of((update) => {
            const text = update.state.doc.toString();
            // What was set from outside is known there.
            if (update.docChanged && text !== latest.current.text) latest.current.onChange?.(text);
          }),
        ],
      }),
    });
    view.current = editor;
    return () => editor.destroy();
  }, [language, isReadOnly, label]);

  useEffect(() => {
    const editor = view.current;
    if (editor === null || editor.state.doc.toString() === text) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
  }, [text]);

  return <div class="editor" ref={box} />;
}
