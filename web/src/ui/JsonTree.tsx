// A JSON value as a tree: arrow keys go and open, what is long is folded, everything can be
// copied, and paths that changed are marked.
import { useMemo, useRef, useState, type KeyboardEvent, type MouseEvent } from 'react';
import { Button } from './Button.tsx';
import { classes } from './classes.ts';
import { CopyButton } from './CopyButton.tsx';
import { ChevronRightIcon } from './icons.tsx';
import { isContainer, longText, pageOfMembers, preview, pretty, rowsOf, type JsonRow, type Path } from './json.ts';
import './JsonTree.css';

export interface JsonTreeProps {
  value: unknown;
  label: string;
  /** How deep it is open at first. */
  depth?: number;
  /** Whether a path has changed, and is marked. */
  marked?: (path: Path) => boolean;
}

function Text({ value }: { value: string }) {
  const [whole, setWhole] = useState(false);
  if (value.length <= longText || whole) return <span className="json-string">{JSON.stringify(value)}</span>;
  return (
    <span className="json-string">
      {JSON.stringify(value.slice(0, longText)).slice(0, -1)}…
      <Button size="small" kind="quiet" tabIndex={-1} onClick={(e) => { e.stopPropagation(); setWhole(true); }}>all {value.length.toLocaleString('en')} characters</Button>
    </span>
  );
}

function Leaf({ value }: { value: unknown }) {
  if (typeof value === 'string') return <Text value={value} />;
  if (typeof value === 'number') return <span className="json-number">{String(value)}</span>;
  if (isContainer(value)) return <span className="json-punctuation">{Array.isArray(value) ? '[]' : Object.keys(value).length ? preview(value) : '{}'}</span>;
  return <span className="json-word">{String(value)}</span>;
}

function Row({ row, current, marked, onPress, onFocus }: { row: JsonRow; current: boolean; marked: boolean; onPress: (e: MouseEvent) => void; onFocus: () => void }) {
  const container = row.kind === 'open' || row.kind === 'closed';
  return (
    <div
      role="treeitem" className={classes('json-row', marked && 'json-marked')} data-path={row.path} aria-level={row.depth + 1} aria-posinset={row.position} aria-setsize={row.siblings}
      aria-expanded={container ? row.kind === 'open' : undefined} aria-selected={current} tabIndex={current ? 0 : -1} onClick={onPress} onFocus={onFocus} style={{ paddingInlineStart: row.depth * 14 + 4 }}
    >
      <span className="json-chevron" data-open={row.kind === 'open' || undefined}>{container && <ChevronRightIcon />}</span>
      {row.name !== undefined && <span className="json-name">{row.name}<span className="json-punctuation">: </span></span>}
      {row.kind === 'more' && <span className="json-more">{row.rest?.toLocaleString('en')} more</span>}
      {row.kind === 'leaf' && <Leaf value={row.value} />}
      {container && <span className="json-punctuation">{row.kind === 'open' ? (Array.isArray(row.value) ? '[' : '{') : preview(row.value as object)}</span>}
    </div>
  );
}

/** Which paths are open and how much of them is listed. */
function useOpened(depth: number) {
  const [toggled, setToggled] = useState<ReadonlyMap<Path, boolean>>(new Map());
  const [listed, setListed] = useState<ReadonlyMap<Path, number>>(new Map());
  return {
    opened: { isOpen: (path: Path, at: number) => toggled.get(path) ?? at < depth, listed: (path: Path) => listed.get(path) ?? pageOfMembers },
    key: [toggled, listed, depth] as const,
    set: (path: Path, open: boolean) => setToggled((now) => new Map(now).set(path, open)),
    more: (path: Path) => setListed((now) => new Map(now).set(path, (now.get(path) ?? pageOfMembers) * 5)),
  };
}

export function JsonTree({ value, label, depth = 1, marked }: JsonTreeProps) {
  const { opened, key: [toggled, listed], set, more } = useOpened(depth);
  // opened is made again each time; what it depends on is listed.
  const rows = useMemo(() => rowsOf(value, opened), [value, toggled, listed, depth]);
  const [current, setCurrent] = useState<Path>('');
  const tree = useRef<HTMLDivElement>(null);
  const at = Math.max(0, rows.findIndex((r) => r.path === current));
  const go = (path: Path | undefined) => {
    if (path === undefined) return;
    setCurrent(path);
    [...(tree.current?.querySelectorAll<HTMLElement>('[role=treeitem]') ?? [])].find((e) => e.dataset.path === path)?.focus();
  };
  const press = (row: JsonRow) => {
    if (row.kind === 'more') more(row.value as Path);
    else if (row.kind !== 'leaf') set(row.path, row.kind === 'closed');
  };
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const row = rows[at];
    const parent = () => rows.slice(0, at).findLast((r) => r.depth < row.depth)?.path;
    const keys: Record<string, () => void> = {
      ArrowDown: () => go(rows[at + 1]?.path),
      ArrowUp: () => go(rows[at - 1]?.path),
      Home: () => go(rows[0].path),
      End: () => go(rows.at(-1)?.path),
      ArrowRight: () => (row.kind === 'closed' ? set(row.path, true) : row.kind === 'open' ? go(rows[at + 1]?.path) : undefined),
      ArrowLeft: () => (row.kind === 'open' ? set(row.path, false) : go(parent())),
      Enter: () => press(row),
      ' ': () => press(row),
    };
    const act = keys[e.key];
    if (!act || (e.target as Element).closest('button')) return;
    e.preventDefault();
    act();
  };
  return (
    <div className="json">
      <div className="json-copy"><CopyButton text={() => pretty(value)} label="Copy as JSON" /></div>
      <div className="json-tree" role="tree" aria-label={label} ref={tree} onKeyDown={onKeyDown}>
        {rows.map((row, i) => (
          <Row key={row.path} row={row} current={i === at} marked={marked?.(row.path) ?? false} onFocus={() => setCurrent(row.path)} onPress={() => { go(row.path); if (!window.getSelection()?.toString()) press(row); }} />
        ))}
      </div>
    </div>
  );
}
