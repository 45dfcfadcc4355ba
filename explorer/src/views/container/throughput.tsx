// The throughput of a container.

import { useEffect, useState } from "preact/hooks";
import type { Container } from "../../api/account";
import type { Client } from "../../api/client";
import { type Offer, offerOf, replaceOffer, throughputOf } from "../../api/offers";
import { useAttempt } from "../../ui/attempt";
import { Problem } from "../../ui/notice";

export function ThroughputForm({ client, container }: { client: Client; container: Container }) {
  /** `undefined`: not read yet. */
  const [offer, setOffer] = useState<Offer | null | undefined>(undefined);
  const [problem, attempt] = useAttempt();
  const [isSaved, setSaved] = useState(false);
  useEffect(() => void attempt(async () => setOffer(await offerOf(client, container))), []);
  const save = (of: Offer, form: HTMLFormElement): Promise<void> =>
    attempt(async () => {
      setSaved(false);
      const fields = new FormData(form);
      const kind = fields.get("isAutoscale") === null ? "manual" : "autoscale";
      setOffer(await replaceOffer(client, of, { kind, units: Number(fields.get("units")) }));
      setSaved(true);
    });
  if (offer === null) return <p class="muted">The container has no throughput of its own.</p>;
  const known = offer === undefined ? null : throughputOf(offer);
  return (
    <>
      {offer !== undefined && known !== null && (
        <form
          key={offer._etag}
          class="tools"
          aria-label="Throughput"
          onSubmit={(event) => {
            event.preventDefault();
            void save(offer, event.currentTarget);
          }}
        >
          <label>
            Request units per second
            <input name="units" type="number" min="1" required defaultValue={String(known.units)} onInput={() => setSaved(false)} />
          </label>
          <label class="check">
            <input name="isAutoscale" type="checkbox" defaultChecked={known.kind === "autoscale"} onInput={() => setSaved(false)} />
            At most so many (autoscale)
          </label>
          <button type="submit">Set throughput</button>
          {isSaved && <span role="status">Throughput is set.</span>}
        </form>
      )}
      <Problem text={problem} />
    </>
  );
}
