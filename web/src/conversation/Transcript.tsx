// The conversation itself: any number of rows, of which only those near what is seen are in
// the page. A reader at the end stays there while it grows; who has scrolled up is left alone.
import { useVirtualizer } from '@tanstack/react-virtual';
import { useCallback, useEffect, useMemo, useRef, useState, type KeyboardEvent, type RefObject } from 'react';
import { useCommands } from '../app/context.tsx';
import type { Item } from '../log/view.ts';
import { Button } from '../ui/Button.tsx';
import { ChevronDownIcon } from '../ui/icons.tsx';
import { Row } from './rows/Row.tsx';
import { hasRow } from './slots.tsx';

/** As many rows are in the page whole, so that the browser's own search finds everything in most conversations. */
const wholeUpTo = 150;
const nearEnd = 60;

const estimates: Partial<Record<Item['kind'], number>> = { call: 46, reasoning: 36, note: 40, step: 32, agent: 44, question: 48, seam: 40 };

/** The items that have a row. The others are shown inside of one, over the composer, or have nothing to show. */
export function rowsOf(items: readonly Item[], asking = false): readonly Item[] {
  return items.filter((item) => {
    if (item.kind === 'question' && item.open && asking) return false;
    if (item.kind === 'seam') return hasRow(item);
    return item.kind !== 'text' || item.open || item.text !== '' || item.parts.length > 0;
  });
}

/** Whether an answer is only what is said on the way: a call follows it. */
const passing = (item: Item, next: Item | undefined): boolean => item.kind === 'text' && item.role === 'assistant' && next !== undefined && (next.kind === 'call' || next.kind === 'reasoning');

export interface TranscriptProps {
  items: readonly Item[];
  /** The assistant is at work. */
  busy: boolean;
  /** Nothing of what it does is shown yet. */
  thinking: boolean;
  /** The open questions are shown as forms elsewhere. */
  asking?: boolean;
  /** The key of the row that somebody wants to see. */
  wanted?: string;
  /** Loads what was before the first row. */
  onStart?: () => void;
}

/** The list, and whether its end is held: until somebody scrolls up, and again when he comes back. */
function useEnd(rows: readonly Item[], scroller: RefObject<HTMLDivElement | null>) {
  const [atEnd, setAtEnd] = useState(true);
  const held = useRef(true);
  const last = useRef({ top: 0, height: 0 });
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => estimates[rows[index]?.kind ?? 'text'] ?? 90,
    getItemKey: (index) => rows[index]?.key ?? index,
    overscan: rows.length <= wholeUpTo ? wholeUpTo : 16,
    anchorTo: 'end',
    scrollEndThreshold: nearEnd,
    paddingStart: 20,
    paddingEnd: 40,
  });
  const looked = useCallback(() => {
    const s = scroller.current;
    if (!s) return;
    const near = s.scrollHeight - s.scrollTop - s.clientHeight < nearEnd;
    // Rows that grow or are measured move the end away; only a person goes up in what stays as long.
    if (near) held.current = true;
    else if (s.scrollHeight === last.current.height && s.scrollTop < last.current.top - 1) held.current = false;
    last.current = { top: s.scrollTop, height: s.scrollHeight };
    setAtEnd(near || held.current);
  }, [scroller]);
  const toEnd = useCallback(() => {
    held.current = true;
    const s = scroller.current;
    if (s) s.scrollTop = s.scrollHeight;
    looked();
  }, [scroller, looked]);
  const leave = useCallback(() => {
    held.current = false;
  }, []);
  useEffect(() => {
    const s = scroller.current;
    if (!s) return undefined;
    const observer = new ResizeObserver(() => (held.current ? toEnd() : looked()));
    observer.observe(s);
    if (s.firstElementChild) observer.observe(s.firstElementChild);
    return () => observer.disconnect();
  }, [scroller, toEnd, looked]);
  return { list, atEnd, looked, toEnd, leave };
}

export function Transcript({ items, busy, thinking, asking = false, wanted, onStart }: TranscriptProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => rowsOf(items, asking), [items, asking]);
  const { list, atEnd, looked, toEnd, leave } = useEnd(rows, scroller);
  const [active, setActive] = useState(-1);
  useEffect(() => {
    const at = wanted === undefined ? -1 : rows.findIndex((r) => r.key === wanted);
    if (at < 0) return;
    setActive(at);
    leave();
    list.scrollToIndex(at, { align: 'center' });
    // Only when another row is wanted: what comes meanwhile moves nobody.
  }, [wanted, list, leave]);
  const move = (by: number) => {
    const visible = list.getVirtualItemForOffset(scroller.current?.scrollTop ?? 0)?.index ?? 0;
    const to = Math.max(0, Math.min(rows.length - 1, active < 0 ? visible : active + by));
    setActive(to);
    leave();
    list.scrollToIndex(to, { align: 'auto' });
  };
  useCommands([
    { id: 'conversation.next', title: 'Next message', group: 'Conversation', keys: 'j', run: () => move(1) },
    { id: 'conversation.previous', title: 'Previous message', group: 'Conversation', keys: 'k', run: () => move(-1) },
    { id: 'conversation.end', title: 'To the end', group: 'Conversation', keys: 'e', words: 'latest bottom', run: toEnd },
  ]);
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.target !== e.currentTarget || (e.key !== 'End' && e.key !== 'Home')) return;
    e.preventDefault();
    if (e.key === 'End') {
      toEnd();
    } else {
      leave();
      list.scrollToIndex(0);
    }
  };
  const onScroll = () => {
    looked();
    if (onStart && (scroller.current?.scrollTop ?? 1) < 200) onStart();
  };
  return (
    <div className="conversation-frame">
      <div ref={scroller} className="conversation-scroll" role="log" aria-live="off" aria-label="Conversation" aria-busy={busy} tabIndex={0} onScroll={onScroll} onKeyDown={onKeyDown}>
        <ol className="conversation-rows" style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map((row) => {
            const item = rows[row.index];
            return item && (
              <li
                key={row.key} ref={list.measureElement} data-index={row.index} data-kind={item.kind} data-sub={item.subagentRunId !== undefined || undefined} data-active={row.index === active || undefined}
                aria-setsize={rows.length} aria-posinset={row.index + 1} className="conversation-row" style={{ transform: `translateY(${row.start}px)` }}
              >
                <Row item={item} passing={passing(item, rows[row.index + 1])} />
              </li>
            );
          })}
          {thinking && <li className="conversation-thinking" aria-hidden="true"><span /><span /><span /></li>}
        </ol>
      </div>
      {!atEnd && rows.length > 0 && <Button size="small" className="conversation-latest" icon={<ChevronDownIcon />} onClick={toEnd}>Latest</Button>}
    </div>
  );
}
