// The strip under a conversation: every checkpoint of the thread, oldest first, and now. One
// can go to each; what was left by going back lies on lanes above the way.
import { useEffect, useRef, type KeyboardEvent, type ReactNode } from 'react';
import type { Checkpoint } from '../api/types.ts';
import { Tooltip } from '../ui/Tooltip.tsx';
import { exactTime } from '../ui/time.ts';
import { wayOf, type Dot, type Graph } from './graph.ts';
import './Strip.css';
import { messages, numberOf, titleOf } from './words.ts';

const step = 28;
const lane = 20;
const pad = 22;
/** A label lies between its dot and the next one. */
const labelled = 124;
/** More lanes are not drawn, but put on the last one. */
const mostLanes = 3;

export type DotKind = 'input' | 'loop' | 'end' | 'wait' | 'stopped' | 'mark' | 'fork';

/** How a checkpoint is drawn. */
export function kindOf({ metadata, status }: Checkpoint): DotKind {
  if (metadata.source === 'input') return 'input';
  if (metadata.source === 'update') return 'mark';
  if (metadata.source === 'fork') return 'fork';
  if (status === 'interrupted') return 'wait';
  if (status === 'stopped') return 'stopped';
  return status === 'idle' ? 'end' : 'loop';
}

interface Spot {
  readonly dot: Dot;
  readonly x: number;
  readonly y: number;
}

/** Where everything is, in pixels. */
export function layOut(graph: Graph): { spots: readonly Spot[]; width: number; height: number; base: number } {
  const lanes = Math.min(graph.lanes, mostLanes);
  const base = 18 + (lanes - 1) * lane;
  let x = pad;
  const spots = graph.dots.map((dot) => {
    const spot = { dot, x, y: base - Math.min(dot.lane, mostLanes - 1) * lane };
    x += step + (dot.checkpoint.metadata.label ? labelled - 8 : 0);
    return spot;
  });
  return { spots, width: x, height: base + 18, base };
}

/** The lines between checkpoints: from each to the one that it follows. */
function Lines({ spots, base, end, live }: { spots: readonly Spot[]; base: number; end: number; live: boolean }) {
  const newest = spots.findLast(({ dot }) => dot.current);
  return (
    <svg className="durable-strip-lines" aria-hidden="true">
      {spots.slice(1).map(({ dot, x }) => dot.begins && dot.current && <path key={`run ${dot.index}`} className="run" d={`M${x - step / 2} ${base - 9}v18`} />)}
      {spots.map(({ dot, x, y }) => {
        const from = spots[dot.parent];
        if (!from) return null;
        const bend = y === from.y ? `H${x}` : `C${from.x + 14} ${y} ${from.x + 6} ${y} ${from.x + step} ${y}H${x}`;
        return <path key={dot.index} className={dot.current ? undefined : 'left'} d={`M${from.x} ${from.y}${bend}`} />;
      })}
      {newest && <path className={live ? 'live' : undefined} d={`M${newest.x} ${newest.y}H${end}`} />}
    </svg>
  );
}

/** The meaning of a dot, in words. */
export function dotWords({ checkpoint, current }: Dot, count: number, place: number): string {
  const parts = [titleOf(checkpoint), messages(checkpoint.messageCount), current ? (place > 0 ? `step ${place} of ${count}` : '') : 'left by going back'];
  return parts.filter(Boolean).join(', ');
}

export interface StripProps {
  graph: Graph;
  /** The checkpoint that is looked at; without it, now. */
  at?: string;
  /** A run is under way: more will come. */
  live?: boolean;
  hrefOf: (id: string) => string;
  nowHref: string;
  onLook: (id: string | undefined) => void;
  /** At the end: what one can do. */
  children?: ReactNode;
}

/** Which key moves where. */
function wanted(key: string, index: number, last: number): number | undefined {
  return { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: last }[key];
}

export function Strip({ graph, at, live = false, hrefOf, nowHref, onLook, children }: StripProps) {
  const track = useRef<HTMLDivElement>(null);
  const { spots, width, height, base } = layOut(graph);
  const way = wayOf(graph);
  const active = at === undefined ? spots.length : Math.max(0, spots.findIndex(({ dot }) => dot.checkpoint.id === at));
  // The newest is in view, or what one looks at.
  useEffect(() => {
    track.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    if (at === undefined && track.current) track.current.scrollLeft = track.current.scrollWidth;
  }, [at, spots.length]);
  const move = (e: KeyboardEvent) => {
    const links = [...(track.current?.querySelectorAll<HTMLElement>('a') ?? [])];
    const index = links.indexOf(e.target as HTMLElement);
    const to = index < 0 || e.ctrlKey || e.metaKey || e.altKey ? undefined : wanted(e.key, index, links.length - 1);
    if (to === undefined) return;
    e.preventDefault();
    links[Math.max(0, Math.min(links.length - 1, to))]?.focus();
  };
  return (
    <section className="durable-strip" aria-label="Checkpoints">
      <div className="durable-strip-track" ref={track} onKeyDown={move}>
        <div className="durable-strip-inner" style={{ width: width + 70, height }}>
          <Lines spots={spots} base={base} end={width} live={live} />
          <ol>
            {spots.map(({ dot, x, y }, index) => (
              <li key={dot.checkpoint.id}>
                <DotLink dot={dot} x={x} y={y} words={dotWords(dot, way.length, way.indexOf(dot) + 1)} href={hrefOf(dot.checkpoint.id)} current={dot.checkpoint.id === at} tabbable={index === active} onLook={onLook} />
              </li>
            ))}
            <li>
              <a className="durable-now" href={nowHref} style={{ left: width, top: base }} aria-current={at === undefined ? 'step' : undefined} tabIndex={active === spots.length ? 0 : -1} onClick={(e) => plain(e, () => onLook(undefined))}>Now</a>
            </li>
          </ol>
        </div>
      </div>
      {children && <div className="durable-strip-end">{children}</div>}
    </section>
  );
}

/** A click that the page takes care of; with a modifier it is the browser's. */
function plain(e: React.MouseEvent, act: () => void): void {
  if (e.ctrlKey || e.metaKey || e.shiftKey || e.button !== 0) return;
  e.preventDefault();
  act();
}

function DotLink({ dot, x, y, words, href, current, tabbable, onLook }: { dot: Dot; x: number; y: number; words: string; href: string; current: boolean; tabbable: boolean; onLook: (id: string) => void }) {
  const { checkpoint } = dot;
  const { label } = checkpoint.metadata;
  return (
    <>
      <Tooltip text={`${words} · ${exactTime(Date.parse(checkpoint.createdAt))}`}>
        <a
          className="durable-dot" href={href} style={{ left: x, top: y }} data-kind={kindOf(checkpoint)} data-left={dot.current ? undefined : true}
          aria-current={current ? 'step' : undefined} aria-label={`Checkpoint ${numberOf(checkpoint.id)}: ${words}`} tabIndex={tabbable ? 0 : -1} onClick={(e) => plain(e, () => onLook(checkpoint.id))}
        />
      </Tooltip>
      {label && <span className="durable-dot-label" aria-hidden="true" style={{ left: x + 16, top: y - 9 }}>{label}</span>}
    </>
  );
}
