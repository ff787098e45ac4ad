// The rows of a waterfall, and what of them is drawn.
import type { Span, SpanKind, Waterfall } from '../log/waterfall.ts';

export interface Lane {
  readonly id: string;
  readonly name: string;
  readonly spans: readonly Span[];
}

/** Waiting for the model, and its answer, take turns: they are one row. */
const rowOf = (kind: SpanKind): SpanKind => (kind === 'waiting' ? 'model' : kind);

const rows: readonly (readonly [kind: SpanKind, name: string])[] = [['model', 'Model'], ['tool', 'Tools'], ['person', 'People'], ['takeover', 'Takeovers']];

/** More tools at once than this share rows: nobody counts them. */
const most = 12;

export function lanesOf(spans: readonly Span[]): readonly Lane[] {
  const lanes = new Map<string, Span[]>();
  for (const span of spans) {
    const id = `${rowOf(span.kind)} ${span.kind === 'tool' ? span.lane % most : 0}`;
    const lane = lanes.get(id);
    if (lane) lane.push(span);
    else lanes.set(id, [span]);
  }
  return rows.flatMap(([kind, name]) => Array.from({ length: kind === 'tool' ? most : 1 }, (_, i): Lane[] => {
    const found = lanes.get(`${kind} ${i}`);
    return found ? [{ id: `${kind} ${i}`, name: i === 0 ? name : '', spans: found }] : [];
  }).flat());
}

/** The drawn part of a lane: what is in view, and of what is too small to be told apart, one. */
export function drawn(spans: readonly Span[], from: number, scale: number, [begin, end]: readonly [number, number], always: Span | undefined): readonly Span[] {
  let right = -Infinity;
  return spans.filter((span) => {
    if (span === always) return true;
    if (span.end < begin || span.at > end) return false;
    const to = Math.max((span.at - from) * scale + 3, (span.end - from) * scale);
    if (to - right < 2) return false;
    right = to;
    return true;
  });
}

const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000];

/** How far ticks are from each other, in pixels, at least. */
const apart = 72;

/** Where the axis says the time, in milliseconds after the beginning. */
export function ticksOf(from: number, [begin, end]: readonly [number, number], scale: number): readonly number[] {
  const step = steps.find((each) => each * scale >= apart) ?? Math.ceil(apart / scale);
  const first = Math.max(0, Math.floor((begin - from) / step)) * step;
  const ticks: number[] = [];
  for (let at = first; at <= end - from && ticks.length < 60; at += step) ticks.push(at);
  return ticks;
}

export interface Total {
  readonly kind: SpanKind;
  readonly name: string;
  readonly ms: number;
}

const names: readonly (readonly [SpanKind, string])[] = [['waiting', 'Waiting'], ['model', 'Model'], ['tool', 'Tools'], ['person', 'People'], ['takeover', 'Takeovers']];

/** How long each kind took; of what ran at the same time, once. */
export function totalsOf({ spans }: Pick<Waterfall, 'spans'>): readonly Total[] {
  return names.flatMap(([kind, name]) => {
    let [ms, until] = [0, -Infinity];
    for (const span of spans) {
      if (span.kind !== kind) continue;
      ms += Math.max(0, span.end - Math.max(span.at, until));
      until = Math.max(until, span.end);
    }
    return until === -Infinity ? [] : [{ kind, name, ms }];
  });
}
