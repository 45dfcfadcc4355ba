// Asking the server again and again while a view is open.

import { useEffect, useState } from "preact/hooks";
import { wordsOf } from "../state/session";

/**
 * Asks at once, and again so many milliseconds after each answer, while the page is looked at; from the beginning when one of `inputs` changes.
 * `begin` returns what asks, and what takes over an answer: it is not called with one that comes late; and what is done when nobody
 * looks any more. Returns why the last question failed.
 */
export function usePolling<T>(
  everyMs: number,
  begin: () => { ask: () => Promise<T | null>; take: (found: T) => void; end?: () => void },
  inputs: readonly unknown[],
): string | null {
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let isOver = false;
    let timer = 0;
    const { ask, take, end } = begin();
    const follow = async (): Promise<void> => {
      if (!document.hidden) {
        try {
          const found = await ask();
          if (isOver) return;
          if (found !== null) {
            setProblem(null);
            take(found);
          }
        } catch (error) {
          if (isOver) return;
          setProblem(wordsOf(error));
        }
      }
      timer = window.setTimeout(() => void follow(), everyMs);
    };
    void follow();
    return () => {
      isOver = true;
      clearTimeout(timer);
      end?.();
    };
  }, inputs);
  return problem;
}
