// A plot on a canvas. The library is loaded with the first one; what the plot shows is also
// in a table, and the values of the step that is pointed at are beside the names.
import { useEffect, useRef, useState } from 'react';
import type uPlot from 'uplot';
import { duration, short } from '../ui/time.ts';
import type { Figure } from './series.ts';
import { stacked } from './series.ts';

export interface PlotProps {
  figure: Figure;
  /** Called with the step that is pointed at, or null. */
  onPoint: (at: number | null) => void;
  /** Changes when the colours do. */
  theme: string;
}

const height = 132;

/** The colour that a custom property stands for here and now. */
function colourOf(element: HTMLElement, property: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${property})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

const axisText = (unit: Figure['unit']) => (_: uPlot, values: number[]) => values.map((v) => (unit === 'duration' ? duration(v) : Number.isInteger(v) ? short(v) : ''));

function optionsOf(Plot: typeof uPlot, element: HTMLElement, figure: Figure, width: number, onPoint: (at: number | null) => void): uPlot.Options {
  const faint = colourOf(element, '--ink-faint');
  const grid = { stroke: colourOf(element, '--line'), width: 1 };
  const font = `11px ${getComputedStyle(element).fontFamily}`;
  const bars = Plot.paths.bars?.({ size: [0.8, 12], gap: 0 });
  return {
    width, height, legend: { show: false }, padding: [8, 16, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 }, sync: { key: 'operate' } },
    scales: { x: { time: true, range: (u, min, max) => [min - half(u), max + half(u)] }, y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.08 : 1] } },
    axes: [
      { stroke: faint, font, grid: { show: false }, ticks: { show: false }, size: 22, gap: 4, space: 70, values: (_u, splits) => splits.map((t) => new Date(t * 1000).toLocaleTimeString('en', { hour: '2-digit', minute: '2-digit', hour12: false })) },
      { stroke: faint, font, grid, ticks: { show: false }, size: 52, gap: 6, space: 34, values: axisText(figure.unit) },
    ],
    series: [{}, ...figure.lines.map(({ name, colour, form }): uPlot.Series => {
      const stroke = colourOf(element, colour);
      if (form === 'bars') return { label: name, width: 0, fill: stroke, stroke, points: { show: false }, ...(bars && { paths: bars }) };
      return { label: name, stroke, width: 1.5, spanGaps: false, ...(form === 'dashed' && { dash: [5, 4] }), points: { size: 4, fill: stroke, filter: alone } };
    })],
    hooks: { setCursor: [(u) => onPoint(u.cursor.idx ?? null)] },
  };
}

/** Half a step: the bars at both ends are whole. */
const half = ({ data: [times] }: uPlot): number => ((times[1] ?? 0) - (times[0] ?? 0)) / 2;

/** Only points that no line leads to have a dot. */
const alone: uPlot.Series.Points.Filter = (u, series) => {
  const values = u.data[series] ?? [];
  const found: number[] = [];
  for (let i = 0; i < values.length; i++) if (values[i] != null && values[i - 1] == null && values[i + 1] == null) found.push(i);
  return found;
};

/** Bars as heights, from the highest to the lowest: what is on top of others is drawn first, so that it does not cover them. */
function ordered(figure: Figure): Figure {
  if (!figure.lines.some((l) => l.form === 'bars')) return figure;
  const heights = stacked(figure.lines);
  return { ...figure, lines: figure.lines.map((l, i) => ({ ...l, form: 'bars' as const, values: heights[i] ?? [] })).reverse() };
}

const dataOf = (figure: Figure): uPlot.AlignedData => [[...figure.times], ...ordered(figure).lines.map((l) => [...l.values])] as uPlot.AlignedData;

export function Plot({ figure, onPoint, theme }: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(onPoint);
  const [library, setLibrary] = useState<typeof uPlot | null>(null);
  useEffect(() => {
    latest.current = onPoint;
  });
  const drawn = useRef(figure);
  useEffect(() => {
    drawn.current = figure;
    plot.current?.setData(dataOf(figure));
  }, [figure]);
  useEffect(() => {
    // A browser that draws nothing, or that the library does not come to, still has the table.
    if (document.createElement('canvas').getContext('2d') === null) return undefined;
    let here = true;
    void Promise.all([import('uplot'), import('uplot/dist/uPlot.min.css')]).then(([{ default: loaded }]) => here && setLibrary(() => loaded), () => {});
    return () => {
      here = false;
    };
  }, []);
  useEffect(() => {
    const element = box.current;
    if (!library || !element) return undefined;
    const first = drawn.current;
    const made = new library(optionsOf(library, element, ordered(first), element.clientWidth, (i) => latest.current(i)), dataOf(first), element);
    plot.current = made;
    const sized = new ResizeObserver(() => element.clientWidth > 0 && made.setSize({ width: element.clientWidth, height }));
    sized.observe(element);
    return () => {
      sized.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [library, theme]);
  return <div ref={box} className="operate-plot" aria-hidden="true" />;
}
