// Something that may fail, and why it did.

import { useEffect, useRef, useState } from "preact/hooks";
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

export interface Stoppable {
  /** The problem of the last attempt that was not stopped. */
  problem: string | null;
  isBusy: boolean;
  /** Stops the attempt before. */
  attempt: (what: (signal: AbortSignal) => Promise<void>) => Promise<void>;
  stop: () => void;
}

/** The same, one at a time, and only as long as somebody waits for it. */
export function useStoppable(): Stoppable {
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const current = useRef<AbortController | null>(null);
  const stop = (): void => current.current?.abort();
  const attempt = async (what: (signal: AbortSignal) => Promise<void>): Promise<void> => {
    stop();
    const mine = new AbortController();
    current.current = mine;
    setBusy(true);
    try {
      await what(mine.signal);
      if (!mine.signal.aborted) setProblem(null);
    } catch (error) {
      if (!mine.signal.aborted) setProblem(wordsOf(error));
    } finally {
      if (current.current === mine) setBusy(false);
    }
  };
  useEffect(() => stop, []);
  return { problem, isBusy, attempt, stop };
}
