// The server's figures of the last hour, as what plots and tables show.
import type { Overview, Point, Spread } from '../api/types.ts';

export type Value = number | null;

/** The plot of one kind. */
export interface Line {
  readonly name: string;
  /** The custom property of its colour. */
  readonly colour: string;
  /** bars stand on those before them; a dashed line is told from another one without its colour. */
  readonly form: 'line' | 'dashed' | 'bars';
  readonly values: readonly Value[];
}

export interface Figure {
  readonly title: string;
  /** A sentence about what is measured. */
  readonly about: string;
  readonly unit: 'count' | 'duration';
  /** The number beside a line, for the whole window: its sum, or its last value. */
  readonly whole: 'sum' | 'last';
  /** Seconds since 1970, one for each value. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
}

type Told = Pick<Overview, 'series' | 'now'>;

interface Steps {
  readonly seconds: number;
  readonly times: readonly number[];
  /** The figures of each step; none where nothing is known. */
  readonly points: readonly (readonly Point[])[];
}

/** The last minutes in steps of at least so many seconds: also those of which there is nothing to tell. */
export function stepsOf({ series, now }: Told, minutes: number, atLeast = 0): Steps {
  const own = series.stepSeconds > 0 ? series.stepSeconds : 10;
  const seconds = own * Math.max(1, Math.round(atLeast / own));
  const at = (time: string) => Math.floor(Date.parse(time) / 1000 / seconds) * seconds;
  const known = new Map<number, Point[]>();
  for (const p of series.points) known.set(at(p.at), [...(known.get(at(p.at)) ?? []), p]);
  const end = at(now);
  const many = Math.round((minutes * 60) / seconds);
  const times = Array.from({ length: many }, (_, i) => end - (many - 1 - i) * seconds);
  return { seconds, times, points: times.map((t) => known.get(t) ?? []) };
}

/** How far back there is something to look at, of the choices: the whole life of a young server. */
export function minutesOf({ startedAt, now }: Pick<Overview, 'startedAt' | 'now'>, choices: readonly number[]): number {
  const lived = (Date.parse(now) - Date.parse(startedAt)) / 60_000;
  return choices.find((minutes) => lived <= minutes) ?? choices.at(-1) ?? 60;
}

type Look = readonly [name: string, colour: string, form: Line['form']];

/** A line of counts: what the steps within one of its own have together. */
const total = ({ points }: Steps, [name, colour, form]: Look, value: (p: Point) => number): Line => ({
  name, colour, form, values: points.map((some) => (some.length === 0 ? null : some.reduce((n, p) => n + value(p), 0))),
});

const line = ({ points }: Steps, [name, colour, form]: Look, value: (p: Point) => number | undefined): Line => ({
  name, colour, form, values: points.map(([p]) => (p && value(p)) ?? null),
});

const spread = (steps: Steps, of: (p: Point) => Spread | undefined): Line[] => [
  line(steps, ['p50', '--accent', 'line'], (p) => of(p)?.p50),
  line(steps, ['p95', '--think', 'dashed'], (p) => of(p)?.p95),
];

/** The overview of the last minutes. */
export function figuresOf(told: Told, minutes: number): readonly Figure[] {
  const fine = stepsOf(told, minutes);
  // About sixty bars: more of them are too thin to be seen.
  const wide = stepsOf(told, minutes, minutes);
  const per = wide.seconds === 60 ? 'minute' : `${wide.seconds} seconds`;
  const counts = { unit: 'count', whole: 'sum', times: wide.times } as const;
  const times = { unit: 'duration', whole: 'last', times: fine.times } as const;
  return [
    { ...counts, title: 'Runs', about: `How runs ended, per ${per}.`, lines: [
      total(wide, ['finished', '--good', 'bars'], (p) => p.finished),
      total(wide, ['waiting', '--wait', 'bars'], (p) => p.waiting),
      total(wide, ['cancelled', '--ink-faint', 'bars'], (p) => p.cancelled),
      total(wide, ['failed', '--bad', 'bars'], (p) => p.failed),
    ] },
    { ...counts, title: 'Tokens', about: `Tokens that models have read, of that from their cache, and written, per ${per}.`, lines: [
      total(wide, ['in', '--info', 'line'], (p) => p.tokensIn),
      total(wide, ['cached', '--think', 'dashed'], (p) => p.tokensCached),
      total(wide, ['out', '--accent', 'line'], (p) => p.tokensOut),
    ] },
    { ...times, title: 'First token', about: 'From a request to a model to its first words.', lines: spread(fine, (p) => p.firstTokenMs) },
    { ...times, title: 'Run time', about: 'How long runs took in this process.', lines: spread(fine, (p) => p.runMs) },
    { ...times, title: 'Commit', about: 'How long it took to store a step of a run.', lines: spread(fine, (p) => p.commitMs) },
    { ...times, unit: 'count', title: 'Under way', about: 'Runs under way at the end of each step.', lines: [line(fine, ['runs', '--accent', 'line'], (p) => p.running)] },
  ];
}

/** Bars on top of each other: each line with those before it in it. */
export function stacked(lines: readonly Line[]): (readonly Value[])[] {
  const below: number[] = [];
  return lines.map(({ form, values }) => (form !== 'bars' ? values : values.map((v, i) => {
    if (v === null) return null;
    below[i] = (below[i] ?? 0) + v;
    return below[i];
  })));
}

/** Whether there is nothing to see. */
export const isEmpty = (figure: Figure): boolean => figure.lines.every(({ values }) => values.every((v) => v === null || v === 0));

/** The number beside a line's name: of the step that is pointed at, or of the window. */
export function valueAt({ whole }: Figure, { values }: Line, at: number | null): Value {
  if (at !== null) return values[at] ?? null;
  return whole === 'sum' ? values.reduce<number>((n, v) => n + (v ?? 0), 0) : values.findLast((v) => v !== null) ?? null;
}

/** The steps in which anything was measured, for the table: the newest first. */
export const rowsOf = (figure: Figure, most = 60): { readonly time: number; readonly values: readonly Value[] }[] => figure.times
  .map((time, i) => ({ time, values: figure.lines.map((l) => l.values[i] ?? null) }))
  .filter(({ values }) => values.some((v) => v !== null && v !== 0))
  .reverse().slice(0, most);
