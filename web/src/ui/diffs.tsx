// The two views of differences. They are loaded when one is first shown: what finds
// differences is large, and most pages show none.
import { diffLines, diffWordsWithSpace } from 'diff';
import { useMemo } from 'react';
import './diffs.css';
import { diffRows, type DiffRow } from './jsondiff.ts';

const most = 2000;

const compact = (value: unknown): string => {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > most ? `${text.slice(0, most)}… (${text.length.toLocaleString('en')} characters)` : text;
};

const signs: Record<DiffRow['kind'], [string, string]> = {
  added: ['+', 'added'], removed: ['−', 'removed'], changed: ['~', 'changed'], moved: ['↕', 'moved'], inside: ['', ''], same: ['', ''],
};

function Values({ row }: { row: DiffRow }) {
  if (row.kind === 'changed' && typeof row.before === 'string' && typeof row.after === 'string' && row.before.length + row.after.length < most) {
    return <Words before={row.before} after={row.after} />;
  }
  return (
    <>
      {row.before !== undefined && <del className="diff-del">{compact(row.before)}</del>}
      {row.kind === 'changed' && <span className="diff-arrow" aria-hidden="true"> → </span>}
      {row.after !== undefined && row.kind !== 'moved' && <ins className="diff-ins">{compact(row.after)}</ins>}
    </>
  );
}

function Words({ before, after }: { before: string; after: string }) {
  const parts = useMemo(() => diffWordsWithSpace(before, after, { timeout: 200 }) ?? [{ value: before, removed: true, added: false }, { value: after, added: true, removed: false }], [before, after]);
  return parts.map((part, i) => (part.added ? <ins key={i} className="diff-ins">{part.value}</ins> : part.removed ? <del key={i} className="diff-del">{part.value}</del> : <span key={i}>{part.value}</span>));
}

export function JsonDiffView({ before, after, label }: { before: unknown; after: unknown; label: string }) {
  const rows = useMemo(() => diffRows(before, after), [before, after]);
  if (rows.length === 0) return <p className="diff-none">Nothing is different.</p>;
  return (
    <ul className="diff" aria-label={label}>
      {rows.map((row) => (
        <li key={`${row.kind} ${row.path}`} className="diff-row" data-kind={row.kind} style={{ paddingInlineStart: row.depth * 14 + 8 }}>
          <span className="diff-sign" aria-hidden="true">{signs[row.kind][0]}</span>
          {signs[row.kind][1] && <span className="sr">{signs[row.kind][1]}: </span>}
          {row.kind === 'same'
            ? <span className="diff-same">{row.count} unchanged</span>
            : <span>{row.name !== undefined && <span className="diff-name">{row.name}{row.kind === 'inside' ? '' : row.kind === 'moved' ? ' moved' : ': '}</span>}<Values row={row} /></span>}
        </li>
      ))}
    </ul>
  );
}

interface Line {
  kind: 'same' | 'added' | 'removed' | 'left out';
  text: string;
}

/** With a line break at its end, so that the last line is a line like all others. */
const ended = (text: string) => (text === '' || text.endsWith('\n') ? text : `${text}\n`);

/** The lines, with three around each change and the rest left out. */
export function textLines(before: string, after: string): Line[] {
  const parts = diffLines(ended(before), ended(after), { timeout: 500 }) ?? [{ value: before, removed: true, added: false }, { value: after, added: true, removed: false }];
  const lines: Line[] = [];
  parts.forEach((part, at) => {
    const texts = part.value.replace(/\n$/, '').split('\n');
    if (part.added || part.removed) {
      lines.push(...texts.map((text): Line => ({ kind: part.added ? 'added' : 'removed', text })));
      return;
    }
    const head = at === 0 ? 0 : 3;
    const tail = at === parts.length - 1 ? 0 : 3;
    const out = texts.length - head - tail;
    if (out < 2) lines.push(...texts.map((text): Line => ({ kind: 'same', text })));
    else {
      lines.push(...texts.slice(0, head).map((text): Line => ({ kind: 'same', text })), { kind: 'left out', text: `${out} unchanged lines` });
      lines.push(...texts.slice(texts.length - tail).map((text): Line => ({ kind: 'same', text })));
    }
  });
  return lines;
}

export function TextDiffView({ before, after, label }: { before: string; after: string; label: string }) {
  const lines = useMemo(() => textLines(before, after), [before, after]);
  if (!lines.some((l) => l.kind === 'added' || l.kind === 'removed')) return <p className="diff-none">Nothing is different.</p>;
  return (
    <ul className="diff" aria-label={label}>
      {lines.map((line, i) => (
        <li key={i} className="diff-row" data-kind={line.kind === 'left out' ? 'same' : line.kind === 'same' ? 'context' : line.kind}>
          <span className="diff-sign" aria-hidden="true">{line.kind === 'added' ? '+' : line.kind === 'removed' ? '−' : ''}</span>
          {line.kind === 'added' && <span className="sr">added: </span>}
          {line.kind === 'removed' && <span className="sr">removed: </span>}
          <span>{line.text}</span>
        </li>
      ))}
    </ul>
  );
}
