// A line over time.

const WIDTH = 320;
const HEIGHT = 64;

interface Properties {
  title: string;
  /** The newest last. */
  values: readonly number[];
  unit: string;
  /** Values that fit beside each other. */
  capacity: number;
}

export function Chart({ title, values, unit, capacity }: Properties) {
  const most = Math.max(1, ...values);
  const step = WIDTH / (capacity - 1);
  const first = capacity - values.length;
  const points = values.map((value, at) => `${((first + at) * step).toFixed(1)},${(HEIGHT - (value / most) * (HEIGHT - 4) - 2).toFixed(1)}`);
  const newest = values.at(-1) ?? 0;
  return (
    <figure class="chart">
      <figcaption>
        {title} <strong>{short(newest)}</strong> <span class="muted">{unit}</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${title}: ${short(newest)} ${unit}, at most ${short(most)}`}>
        <polyline points={points.join(" ")} />
      </svg>
    </figure>
  );
}

function short(value: number): string {
  return value.toLocaleString(undefined, { maximumFractionDigits: value < 10 ? 2 : 0 });
}
