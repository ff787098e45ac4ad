// A list of any length of which only what is seen is in the page. Rows may have any height;
// what one looks at stays where it is when others are measured, added or loaded.
import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual';
import { useEffect, useImperativeHandle, useRef, type KeyboardEvent, type ReactNode, type Ref } from 'react';
import { classes } from './classes.ts';
import './VirtualList.css';

export interface VirtualListHandle {
  /** Brings a row into view. */
  show: (index: number, align?: 'start' | 'center' | 'end' | 'auto') => void;
  /** Brings the end into view, also when rows turn out to be higher than they were taken for. */
  end: () => void;
  /** The element that scrolls. */
  element: HTMLDivElement | null;
}

export interface VirtualListProps {
  label: string;
  /** log: what grows at its end, as a conversation does. Screen readers are told of it elsewhere. */
  role?: 'region' | 'log';
  count: number;
  keyOf: (index: number) => string | number;
  children: (index: number) => ReactNode;
  /** How high a row probably is, in pixels. */
  estimate?: number;
  /** Rows beyond what is seen. */
  overscan?: number;
  /** Whether the end stays in view when rows are added, as long as one is there. */
  follow?: boolean;
  /** Called when one comes to the end, or leaves it. */
  onAtEnd?: (atEnd: boolean) => void;
  /** The row that the keyboard is at. With it, the arrow keys, Home and End move it. */
  active?: number;
  onActive?: (index: number) => void;
  onOpen?: (index: number) => void;
  /** Loads what is before the first row, when one comes near it. */
  onStart?: () => void;
  className?: string;
  handle?: Ref<VirtualListHandle>;
}

const nearEnd = 24;

/** The row that a key leads to, or undefined if the key means nothing here. */
function target(key: string, at: number, count: number, page: number): number | undefined {
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: count - 1 }[key];
  return to === undefined ? undefined : Math.max(0, Math.min(count - 1, to));
}

export function VirtualList(props: VirtualListProps) {
  const { label, role = 'region', count, keyOf, children, estimate = 28, overscan = 10, follow = false, active, onActive, onOpen, className, handle } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const focusWanted = useRef(false);
  const ends = useEnds(props);
  const list = useVirtualizer({
    count, overscan,
    getScrollElement: () => scroller.current,
    estimateSize: () => estimate,
    getItemKey: keyOf,
    anchorTo: follow ? 'end' : 'start',
    followOnAppend: follow,
    scrollEndThreshold: nearEnd,
    onChange: ends,
  });
  useImperativeHandle(handle, () => ({ show: (index, align = 'auto') => list.scrollToIndex(index, { align }), end: () => list.scrollToEnd(), element: scroller.current }), [list]);
  useEffect(() => {
    if (active === undefined || active >= count) return;
    list.scrollToIndex(active, { align: 'auto' });
    if (!focusWanted.current) return;
    focusWanted.current = false;
    scroller.current?.querySelector<HTMLElement>(`[data-index="${active}"]`)?.focus();
    // Rows that come or go move nobody; a row that was not there yet is gone to when it is.
  }, [active, active !== undefined && active < count, list]);
  const onKeyDown = (e: KeyboardEvent<HTMLDivElement>) => {
    if (!onActive || count === 0 || e.ctrlKey || e.metaKey || e.altKey || e.target !== e.currentTarget && !(e.target as Element).matches('[data-index]')) return;
    const at = active ?? -1;
    const to = target(e.key, at, count, Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / estimate) - 1));
    if (to !== undefined) {
      focusWanted.current = true;
      onActive(to);
    } else if (e.key === 'Enter' && at >= 0) {
      onOpen?.(at);
    } else {
      return;
    }
    e.preventDefault();
  };
  const rows = list.getVirtualItems();
  return (
    <div ref={scroller} className={classes('virtual', className)} role={role} aria-live={role === 'log' ? 'off' : undefined} aria-label={label} tabIndex={0} onKeyDown={onKeyDown}>
      <div className="virtual-rows" role="list" style={{ height: list.getTotalSize() }}>
        {rows.map((row) => (
          <div
            key={row.key} ref={list.measureElement} data-index={row.index} role="listitem" aria-setsize={count} aria-posinset={row.index + 1}
            className="virtual-row" data-active={row.index === active || undefined} aria-current={row.index === active ? 'true' : undefined} tabIndex={onActive ? -1 : undefined}
            style={{ transform: `translateY(${row.start}px)` }} onClick={onActive ? () => onActive(row.index) : undefined} onDoubleClick={onOpen ? () => onOpen(row.index) : undefined}
          >
            {children(row.index)}
          </div>
        ))}
      </div>
    </div>
  );
}

/** Tells when the list comes to one of its ends. */
function useEnds({ count, follow, onAtEnd, onStart }: VirtualListProps): (list: Virtualizer<HTMLDivElement, Element>) => void {
  // A reader who follows from the beginning has left no end yet, however far the list's is.
  const atEnd = useRef<boolean | null>(follow || null);
  const startOf = useRef(-1);
  const top = useRef(0);
  return (list) => {
    const element = list.scrollElement;
    if (!element) return;
    const back = element.scrollTop < top.current;
    top.current = element.scrollTop;
    const now = element.scrollHeight - element.scrollTop - element.clientHeight <= nearEnd;
    // The end has moved away, by rows that came or by a smaller list: nobody has left it.
    if (follow && atEnd.current && !now && !back) return list.scrollToEnd();
    if (now !== atEnd.current) {
      atEnd.current = now;
      onAtEnd?.(now);
    }
    const first = list.range?.startIndex ?? 0;
    if (onStart && first === 0 && startOf.current !== count) {
      startOf.current = count;
      onStart();
    }
  };
}
