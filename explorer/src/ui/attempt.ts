// Something that may fail, and why it did.

import { useState } from "preact/hooks";
import { wordsOf } from "../state/session";

/** The problem of the last attempt, and what makes one. */
export function useAttempt(): [problem: string | null, attempt: (what: () => Promise<void>) => Promise<void>] {
  const [problem, setProblem] = useState<string | null>(null);
  const attempt = async (what: () => Promise<void>): Promise<void> => {
    try {
      await what();
      setProblem(null);
    } catch (error) {
      setProblem(wordsOf(error));
    }
  };
  return [problem, attempt];
}
