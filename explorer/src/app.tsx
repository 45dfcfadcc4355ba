// The page: a bar, the tree of databases, and what is chosen in it.

import { useEffect } from "preact/hooks";
import { keyOf } from "./api/account";
import { clockProblem, isVirtual, keepTime, now } from "./state/clock";
import { PAGES, type Shown, shown } from "./state/place";
import { broken, client, server, signOut } from "./state/session";
import { theme, toggleTheme } from "./state/theme";
import { Empty, Problem } from "./ui/notice";
import { Connect } from "./views/connect";
import { ContainerView } from "./views/container";
import { Faults } from "./views/faults";
import { Metrics } from "./views/metrics";
import { Requests } from "./views/requests";
import { SignIn } from "./views/sign-in";
import { TimeMachine } from "./views/time-machine";
import { Tree } from "./views/tree";

export function App() {
  if (broken.value !== null) {
    return (
      <main class="centre">
        <Empty title="The server cannot be reached">
          <p role="alert">{broken.value}</p>
          <button onClick={() => location.reload()}>Try again</button>
        </Empty>
      </main>
    );
  }
  if (server.value === null) return <main class="centre" aria-busy="true" />;
  return client.value === null ? <SignIn /> : <SignedIn />;
}

function SignedIn() {
  useEffect(keepTime, []);
  const what = shown.value;
  return (
    <div class="shell">
      <header class="bar">
        <a class="brand" href="#/">
          Bolide
        </a>
        <span class="clock" title={isVirtual.value ? "The server's clock is virtual: it moves when it is told to" : "The server's clock"}>
          <time dateTime={new Date(now.value).toISOString()}>{new Date(now.value).toISOString().replace(/\.\d+Z$/, "Z")}</time>
          {isVirtual.value && <span class="tag">virtual</span>}
        </span>
        {isVirtual.value && <TimeMachine />}
        <Problem text={clockProblem.value} />
        <span class="space" />
        <Link to="requests" of={what} title="Requests" />
        <Link to="metrics" of={what} title="Metrics" />
        <Link to="faults" of={what} title="Faults" />
        <button class="quiet" onClick={toggleTheme} aria-pressed={theme.value === "dark"}>
          Dark
        </button>
        {server.value?.key === null && (
          <button class="quiet" onClick={signOut}>
            Sign out
          </button>
        )}
      </header>
      <nav class="side" aria-label="Databases">
        <Tree />
      </nav>
      <main class="main" tabIndex={0}>
        <Page what={what} />
      </main>
    </div>
  );
}

function Link({ to, of, title }: { to: keyof typeof PAGES; of: Shown; title: string }) {
  return (
    <a href={PAGES[to]} aria-current={of.page === to ? "page" : undefined}>
      {title}
    </a>
  );
}

function Page({ what }: { what: Shown }) {
  switch (what.page) {
    case "container":
      return <ContainerView key={keyOf(what.place)} place={what.place} view={what.view} />;
    case "requests":
      return <Requests />;
    case "metrics":
      return <Metrics />;
    case "faults":
      return <Faults />;
    case "connect":
      return <Connect />;
  }
}
