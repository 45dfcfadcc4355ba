// Asks for the account's key.

import { useState } from "preact/hooks";
import { server, signIn, wordsOf } from "../state/session";
import { Problem } from "../ui/notice";

export function SignIn() {
  const [key, setKey] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      await signIn(key);
    } catch (error) {
      setProblem(wordsOf(error));
      setBusy(false);
    }
  };
  return (
    <main class="centre">
      <form class="card" onSubmit={(event) => void submit(event)}>
        <h1>Bolide</h1>
        <p>
          The key of <code>{server.value?.endpoint}</code>. It stays in the memory of this page, until the page is closed.
        </p>
        {!isSecureContext && (
          <p class="note">This page is not encrypted: whoever listens on the network can read the key. Use https, or this machine.</p>
        )}
        <label>
          Account key
          <input type="password" autocomplete="off" required value={key} onInput={(event) => setKey(event.currentTarget.value)} />
        </label>
        <Problem text={problem} />
        <button class="primary" type="submit" disabled={isBusy}>
          Sign in
        </button>
      </form>
    </main>
  );
}
