// A run in time: who was waited for when. One row for the model, as many for tools as run at
// the same time, one each for people and for takeovers, and the commits over all of them.
import { useEffect, useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import type { Span, SpanKind, Waterfall as Times } from '../log/waterfall.ts';
import { Button, IconButton } from '../ui/Button.tsx';
import { MinusIcon, PlusIcon } from '../ui/icons.tsx';
import { Segments } from '../ui/Segments.tsx';
import { duration, exactTime, plural } from '../ui/time.ts';
import './Waterfall.css';
import { drawn, lanesOf, ticksOf, totalsOf, type Lane } from './lanes.ts';

const high = 24;
const label = 78;
/** Room at the end, so that the last bar can be seen and clicked. */
const end = 12;

export const spanNames: Readonly<Record<SpanKind, string>> = { waiting: 'Waiting for the model', model: 'Model', tool: 'Tool', person: 'Waiting for a person', takeover: 'Takeover' };

/** A span in words. */
export const spanWords = (span: Span, from: number): string => `${span.kind === 'tool' ? `Tool ${span.label}` : span.kind === 'takeover' ? `Takeover: ${span.label.toLowerCase()}` : spanNames[span.kind]}, ${duration(span.end - span.at)}${span.open ? ' so far' : ''}, began after ${duration(span.at - from)}${span.failed ? ', failed' : ''}`;

export interface WaterfallProps {
  times: Times;
  /** The actions with the selected span. */
  about: (span: Span) => ReactNode;
  onOpen: (span: Span) => void;
}

function useWidth(): [React.RefObject<HTMLDivElement | null>, number] {
  const element = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(480);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => { if (element.current) setWidth(element.current.clientWidth); });
    if (element.current) {
      setWidth(element.current.clientWidth);
      observer.observe(element.current);
    }
    return () => observer.disconnect();
  }, []);
  return [element, width];
}

function Bars({ lane, times, scale, seen, current, chosen, onSelect, onOpen }: { lane: Lane; times: Times; scale: number; seen: readonly [number, number]; current: Span | undefined; chosen: string | undefined; onSelect: (span: Span) => void; onOpen: (span: Span) => void }) {
  return (
    <div className="inspector-lane">
      <span className="inspector-lane-name truncate">{lane.name}</span>
      {drawn(lane.spans, times.at, scale, seen, current).map((span) => (
        <button
          key={span.id} type="button" className="inspector-span" data-kind={span.kind} data-failed={span.failed || undefined} data-open={span.open || undefined} data-span={span.id}
          tabIndex={span === current ? 0 : -1} aria-pressed={span.id === chosen} aria-label={spanWords(span, times.at)} title={spanWords(span, times.at)}
          style={{ left: label + (span.at - times.at) * scale, width: Math.max(3, (span.end - span.at) * scale) }} onFocus={() => onSelect(span)} onClick={() => onSelect(span)} onDoubleClick={() => onOpen(span)}
        >
          {span.kind === 'tool' && (span.end - span.at) * scale > 40 && <span className="truncate">{span.label}</span>}
        </button>
      ))}
    </div>
  );
}

export function WaterfallChart({ times, about, onOpen }: WaterfallProps) {
  const [scroller, width] = useWidth();
  const [zoom, setZoom] = useState(1);
  const [left, setLeft] = useState(0);
  const [chosen, setChosen] = useState<string>();
  const lanes = useMemo(() => lanesOf(times.spans), [times]);
  const order = times.spans;
  const current = order.find((span) => span.id === chosen) ?? order[0];
  const room = Math.max(80, width - label - end);
  const scale = (room * zoom) / Math.max(1, times.end - times.at);
  const most = Math.max(8, Math.min(20_000, (times.end - times.at) / 2));
  const anchor = useRef<{ time: number; x: number } | undefined>(undefined);
  const zoomBy = (by: number, around?: number) => {
    const now = scroller.current?.scrollLeft ?? 0;
    // The selected row stays in view.
    const middle = chosen !== undefined && current ? ((current.at + current.end) / 2 - times.at) * scale - now : room / 2;
    const x = around ?? Math.max(20, Math.min(room - 20, middle));
    anchor.current = { time: (now + x) / scale, x };
    setZoom((z) => Math.max(1, Math.min(most, z * by)));
  };
  useLayoutEffect(() => {
    const it = anchor.current;
    anchor.current = undefined;
    if (it && scroller.current) scroller.current.scrollLeft = it.time * scale - it.x;
  }, [scale, scroller]);
  const latest = useRef(zoomBy);
  useEffect(() => {
    latest.current = zoomBy;
  });
  useEffect(() => {
    const element = scroller.current;
    const onWheel = (e: WheelEvent) => {
      if (!e.ctrlKey && !e.metaKey) return;
      e.preventDefault();
      latest.current(Math.exp(-e.deltaY / 200), e.clientX - (element?.getBoundingClientRect().left ?? 0) - label);
    };
    element?.addEventListener('wheel', onWheel, { passive: false });
    return () => element?.removeEventListener('wheel', onWheel);
  }, [scroller]);
  const focus = useRef(false);
  useEffect(() => {
    if (!focus.current || !current) return;
    focus.current = false;
    const element = [...(scroller.current?.querySelectorAll<HTMLElement>('[data-span]') ?? [])].find((each) => each.dataset['span'] === current.id);
    element?.focus({ preventScroll: true });
    const [from, to] = [(current.at - times.at) * scale, (current.end - times.at) * scale];
    const view = scroller.current;
    if (view && (from < view.scrollLeft || to > view.scrollLeft + room)) view.scrollLeft = from - 20;
  }, [current, scale, room, times.at, scroller]);
  const go = (by: number) => {
    const at = current ? order.indexOf(current) : -1;
    focus.current = true;
    setChosen(order[Math.max(0, Math.min(order.length - 1, at + by))]?.id);
  };
  const onKeyDown = (e: KeyboardEvent) => {
    // Beside the bars there are buttons and a link, with keys of their own.
    if (e.ctrlKey || e.metaKey || e.altKey || (e.key === 'Enter' && !(e.target as Element).matches('[data-span]'))) return;
    const keys: Record<string, () => void> = {
      ArrowRight: () => go(1), ArrowLeft: () => go(-1), Home: () => go(-order.length), End: () => go(order.length),
      '+': () => zoomBy(1.6), '=': () => zoomBy(1.6), '-': () => zoomBy(1 / 1.6), 0: () => setZoom(1), Enter: () => current && onOpen(current),
    };
    const act = keys[e.key];
    if (!act) return;
    e.preventDefault();
    act();
  };
  const seen = [times.at + (left - 50) / scale, times.at + (left + room + 50) / scale] as const;
  return (
    <div className="inspector-chart" onKeyDown={onKeyDown} role="group" aria-label="The run in time. Arrow keys go from span to span, plus and minus zoom.">
      <div className="inspector-chart-bar row">
        <Totals times={times} />
        <span className="grow" />
        <IconButton size="small" label="Zoom out" keys="-" disabled={zoom <= 1} onClick={() => zoomBy(1 / 1.6)}><MinusIcon /></IconButton>
        <IconButton size="small" label="Zoom in" keys="+" disabled={zoom >= most} onClick={() => zoomBy(1.6)}><PlusIcon /></IconButton>
        <Button size="small" kind="quiet" disabled={zoom === 1} onClick={() => setZoom(1)}>Fit</Button>
      </div>
      <div ref={scroller} className="inspector-chart-scroll" onScroll={(e) => setLeft(e.currentTarget.scrollLeft)}>
        <div className="inspector-lanes" style={{ width: label + room * zoom + end, minHeight: high * (lanes.length + 1) }}>
          <Axis times={times} scale={scale} seen={seen} />
          {lanes.map((lane) => <Bars key={lane.id} lane={lane} times={times} scale={scale} seen={seen} current={current} chosen={chosen} onSelect={(span) => setChosen(span.id)} onOpen={onOpen} />)}
        </div>
      </div>
      {current && chosen !== undefined
        ? <p className="inspector-span-about row wrap num"><span className="inspector-key" data-kind={current.kind} aria-hidden="true" /><strong className="truncate">{current.label}</strong><span className="soft">{duration(current.end - current.at)}{current.open && ' so far'}, after {duration(current.at - times.at)}</span>{current.failed && <span className="inspector-failed">failed</span>}<span className="grow" />{about(current)}</p>
        : <p className="inspector-span-about row faint">Select a bar to see what it was.</p>}
    </div>
  );
}

function Axis({ times, scale, seen }: { times: Times; scale: number; seen: readonly [number, number] }) {
  const moments = times.moments.filter((moment) => moment.at >= seen[0] && moment.at <= seen[1]);
  // So many marks as can be told apart.
  const apart = moments.filter((moment, i) => i === 0 || Math.floor((moment.at - times.at) * scale / 4) !== Math.floor(((moments[i - 1]?.at ?? 0) - times.at) * scale / 4));
  return (
    <div className="inspector-axis num">
      <span className="inspector-lane-name">Commits</span>
      {ticksOf(times.at, seen, scale).filter((tick) => tick * scale <= (times.end - times.at) * scale - 48).map((tick) => <span key={tick} className="inspector-tick" style={{ left: label + tick * scale }} aria-hidden="true">{duration(tick)}</span>)}
      {apart.map((moment) => <span key={moment.id} className="inspector-moment" style={{ left: label + (moment.at - times.at) * scale }} title={`Commit: ${moment.label}, ${exactTime(moment.at)}`} aria-hidden="true" />)}
      <span className="sr">{plural(times.moments.length, 'commit')}</span>
    </div>
  );
}

function Totals({ times }: { times: Times }) {
  return (
    <ul className="inspector-totals num" aria-label="How long altogether">
      {totalsOf(times).map(({ kind, name, ms }) => <li key={kind}><span className="inspector-key" data-kind={kind} aria-hidden="true" />{name} {duration(ms)}</li>)}
    </ul>
  );
}

/** So many rows of the table are shown at first. */
const page = 100;

/** The same as a table. */
export function WaterfallTable({ times, about }: Pick<WaterfallProps, 'times' | 'about'>) {
  const [shown, setShown] = useState(page);
  return (
    <div className="inspector-table-scroll" tabIndex={0} role="region" aria-label="Spans of the run">
      <table className="inspector-table">
        <thead><tr><th scope="col">What</th><th scope="col" className="num">After</th><th scope="col" className="num">Took</th><th scope="col">Record</th></tr></thead>
        <tbody>
          {times.spans.slice(Math.max(0, shown - page), shown).map((span) => (
            <tr key={span.id}>
              <th scope="row"><span className="inspector-key" data-kind={span.kind} aria-hidden="true" />{span.kind === 'tool' ? <><span className="faint">tool </span>{span.label}</> : span.label}{span.failed && <span className="inspector-failed"> failed</span>}</th>
              <td className="num">{duration(span.at - times.at)}</td>
              <td className="num">{duration(span.end - span.at)}{span.open && '…'}</td>
              <td>{about(span)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {times.spans.length > page && (
        <div className="row inspector-pages">
          <Button size="small" disabled={shown <= page} onClick={() => setShown(shown - page)}>Before</Button>
          <span className="faint small num">{shown - page + 1} to {Math.min(shown, times.spans.length)} of {times.spans.length}</span>
          <Button size="small" disabled={shown >= times.spans.length} onClick={() => setShown(shown + page)}>Next</Button>
        </div>
      )}
    </div>
  );
}

export function Waterfall(props: WaterfallProps) {
  const [as, setAs] = useState<'chart' | 'table'>('chart');
  return (
    <section className="inspector-section" aria-label="Waterfall">
      <div className="row inspector-section-head"><h2 className="grow">Waterfall <span className="faint num">{duration(props.times.end - props.times.at)}</span></h2><Segments label="Shown as" value={as} options={[['chart', 'Chart'], ['table', 'Table']]} onChange={setAs} /></div>
      {as === 'chart' ? <WaterfallChart {...props} /> : <WaterfallTable times={props.times} about={props.about} />}
    </section>
  );
}
