// How programs connect; what is shown first.

import { server } from "../state/session";

export function Connect() {
  const known = server.value;
  if (known === null) return null;
  const endpoint = `${known.endpoint}/`;
  const key = known.key ?? "<your key>";
  const ways: [name: string, text: string][] = [
    ["Endpoint", endpoint],
    ["Key", key],
    ["Connection string", `AccountEndpoint=${endpoint};AccountKey=${key};`],
    ["Python", `CosmosClient("${endpoint}", "${key}")`],
    ["JavaScript", `new CosmosClient({ endpoint: "${endpoint}", key: "${key}" })`],
  ];
  return (
    <section class="page">
      <h1>Bolide {known.version}</h1>
      <p>A document database that speaks Azure Cosmos DB for NoSQL and MongoDB. Programs connect to it with the official SDKs:</p>
      <dl class="ways">
        {ways.map(([name, text]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <code>{text}</code>
              <button class="quiet" onClick={() => void navigator.clipboard?.writeText(text)} aria-label={`Copy: ${name}`}>
                Copy
              </button>
            </dd>
          </div>
        ))}
        <div>
          <dt>.NET, Java</dt>
          <dd>The same with their default, direct mode, or in gateway mode. Trust the certificate: <code>bolide trust</code></dd>
        </div>
        <div>
          <dt>Certificate for HTTPS</dt>
          <dd>
            <a href="/_explorer/emulator.pem">/_explorer/emulator.pem</a>
          </dd>
        </div>
      </dl>
      <p>
        <a href="/_explorer/licences.md">Licences of what this page is made of</a>
      </p>
    </section>
  );
}
