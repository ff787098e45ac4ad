import { render, screen, waitFor } from '@testing-library/react';
import { act } from 'react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type uPlot from 'uplot';
import { Plot } from './Plot.tsx';
import type { Figure } from './series.ts';

const made: FakePlot[] = [];

/** The drawing that a plot is asked for; drawing is the library's. */
class FakePlot {
  static paths = { bars: () => () => null };
  readonly drawn: uPlot.AlignedData[];
  readonly cursor: { idx: number | null } = { idx: null };
  width: number;
  gone = false;
  constructor(readonly options: uPlot.Options, data: uPlot.AlignedData, readonly element: HTMLElement) {
    this.drawn = [data];
    this.width = options.width;
    made.push(this);
  }
  setData(data: uPlot.AlignedData): void { this.drawn.push(data); }
  setSize({ width }: { width: number }): void { this.width = width; }
  destroy(): void { this.gone = true; }
  point(idx: number | null): void {
    this.cursor.idx = idx;
    for (const hear of this.options.hooks?.setCursor ?? []) hear?.(this as unknown as uPlot);
  }
}
vi.mock('uplot', () => ({ default: FakePlot }));
vi.mock('uplot/dist/uPlot.min.css', () => ({}));

beforeEach(() => {
  vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue({} as never);
});
afterEach(() => {
  made.length = 0;
  vi.restoreAllMocks();
});

const bars: Figure = {
  title: 'Runs', about: '', unit: 'count', whole: 'sum', times: [10, 20, 30],
  lines: [{ name: 'Finished', colour: '--good', form: 'bars', values: [1, 2, null] }, { name: 'Failed', colour: '--bad', form: 'bars', values: [3, 0, null] }],
};
const lines: Figure = {
  title: 'First token', about: '', unit: 'duration', whole: 'last', times: [10, 20, 30],
  lines: [{ name: 'p50', colour: '--info', form: 'line', values: [20, null, 30] }, { name: 'p95', colour: '--wait', form: 'dashed', values: [80, 90, null] }],
};

const plot = async (): Promise<FakePlot> => waitFor(() => {
  const last = made.at(-1);
  if (!last) throw new Error('nothing is drawn yet');
  return last;
});

it('stacks bars, the highest behind the others', async () => {
  render(<Plot figure={bars} onPoint={() => {}} theme="light" />);
  const { options, drawn: [data] } = await plot();
  expect(options.series.map(({ label }) => label)).toEqual([undefined, 'Failed', 'Finished']);
  expect(data).toEqual([[10, 20, 30], [4, 2, null], [1, 2, null]]);
});

it('draws lines as they are, one of them dashed, and a dot where no line leads', async () => {
  render(<Plot figure={lines} onPoint={() => {}} theme="light" />);
  const { options, drawn: [data] } = await plot();
  expect(data).toEqual([[10, 20, 30], [20, null, 30], [80, 90, null]]);
  expect(options.series.map(({ dash }) => dash !== undefined)).toEqual([false, false, true]);
  const filter = options.series[1]?.points?.filter as (u: unknown, series: number) => number[];
  expect([filter({ data }, 1), filter({ data }, 2)]).toEqual([[0, 2], []]);
  const texts = options.axes?.[1]?.values as (u: unknown, values: number[]) => string[];
  expect(texts({}, [0, 1500])).toEqual(['0 ms', '1.5 s']);
});

it('says what is pointed at, and is drawn again only when there is something else to draw', async () => {
  const points: (number | null)[] = [];
  const onPoint = (at: number | null) => points.push(at);
  const { rerender } = render(<Plot figure={lines} onPoint={onPoint} theme="light" />);
  const drawn = await plot();
  const before = drawn.drawn.length;
  act(() => drawn.point(1));
  act(() => drawn.point(null));
  expect(points).toEqual([1, null]);
  rerender(<Plot figure={lines} onPoint={(at) => onPoint(at)} theme="light" />);
  expect(drawn.drawn).toHaveLength(before);
  rerender(<Plot figure={{ ...lines, times: [20, 30, 40] }} onPoint={onPoint} theme="light" />);
  expect(drawn.drawn.at(-1)?.[0]).toEqual([20, 30, 40]);
});

it('is made again in other colours, and leaves nothing behind', async () => {
  const { rerender, unmount } = render(<Plot figure={lines} onPoint={() => {}} theme="light" />);
  const first = await plot();
  rerender(<Plot figure={lines} onPoint={() => {}} theme="dark" />);
  expect([first.gone, made.length]).toEqual([true, 2]);
  unmount();
  expect(made.every(({ gone }) => gone)).toBe(true);
});

it('of a browser that cannot draw is empty', () => {
  vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(null);
  render(<><Plot figure={lines} onPoint={() => {}} theme="light" /><p>below</p></>);
  expect(screen.getByText('below')).toBeTruthy();
  expect(made).toEqual([]);
});
