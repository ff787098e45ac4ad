// The seam: where a process died in the middle of an answer, and another one went on. In a
// text it stands at the word; between items it is a line.
import { useCallback, useMemo, type ReactNode } from 'react';
import { usePlace, usePlaceLink } from '../app/context.tsx';
import { useThread, useView } from '../log/hooks.tsx';
import type { Item, SeamItem, SeamMark, TextItem, View } from '../log/view.ts';
import { span } from '../log/words.ts';
import { BoltIcon } from '../ui/icons.tsx';
import { Markdown } from '../ui/Markdown.tsx';
import { Popover } from '../ui/Popover.tsx';
import { positionIn } from '../ui/position.ts';
import { ProcessTag } from './Process.tsx';
import './Seam.css';
import { seamWords } from './words.ts';

/** The number of its record, which leads to it in the inspector. */
function RecordLink({ seam }: { seam: SeamItem }) {
  const { log } = useThread().get();
  const link = usePlaceLink();
  const { more } = usePlace();
  const cursor = log.at(log.positionOf(seam.first) - 1)?.cursor;
  if (!cursor) return <>{seam.first}</>;
  return <a href={link({ tab: 'events', run: seam.runId || undefined, more: { ...more, record: cursor } })}>{seam.first}</a>;
}

function Facts({ seam }: { seam: SeamItem }) {
  const facts: [string, ReactNode][] = [
    ['Before', seam.from && <ProcessTag name={seam.from} />],
    ['After', seam.process && <ProcessTag name={seam.process} />],
    ['Takeover after the last record', seam.outageMs !== undefined && span(seam.outageMs)],
    ['New text after the last record', seam.gapMs !== undefined && span(seam.gapMs)],
    ['Iteration', seam.iteration],
    ['Agent revision', seam.fromRevision && seam.fromRevision !== seam.toRevision && `${seam.fromRevision} → ${seam.toRevision}`],
    ['Record', seam.first > 0 && <RecordLink seam={seam} />],
  ];
  return (
    <dl className="durable-facts">
      {facts.filter(([, value]) => value !== false && value !== '').map(([name, value]) => [<dt key={name}>{name}</dt>, <dd key={`${name} is`} className="num">{value}</dd>])}
    </dl>
  );
}

export interface SeamProps {
  seam: SeamItem;
  /** It has just happened. */
  fresh?: boolean;
}

/** The mark itself: what happened in a few words, more behind it. */
export function Seam({ seam, fresh = false }: SeamProps) {
  const { short, sentence } = seamWords(seam);
  const trigger = (
    <button type="button" className="durable-seam" data-reason={seam.reason} data-fresh={fresh || undefined}>
      <BoltIcon />
      <span aria-hidden="true">{short}</span>
      <span className="sr">{sentence}</span>
    </button>
  );
  return (
    <Popover trigger={trigger} title={sentence}>
      <p className="durable-about">
        {seam.place === 'inside'
          ? 'Everything before this mark was stored before it was shown. The new process asked the model again, and its answer went on from the same words.'
          : seam.cut
            ? 'Everything that was finished is kept, and is not done again. The new process asked the model for the answer that was cut off.'
            : 'Everything that was finished is kept, and is not done again. The tool’s declared effect decides about a call that was under way.'}
      </p>
      <Facts seam={seam} />
    </Popover>
  );
}

/** A seam between two items: nothing was cut, or the answer took other words. While an answer is not said again yet, what was shown of it stays. */
export function SeamLine(props: SeamProps) {
  const { seam } = props;
  if (seam.place === 'inside' || (seam.place === 'catching_up' && seam.target !== '')) return null;
  if (seam.target === '' && seam.cut?.kind === 'text' && seam.cut.text !== '') {
    return <div className="durable-ghost"><Markdown text={seam.cut.text} marks={[{ key: seam.key, offset: seam.cut.text.length, node: <Seam {...props} fresh /> }]} /></div>;
  }
  return <div className="durable-seam-line"><Seam {...props} /></div>;
}

const isSeam = (item: Item): item is SeamItem => item.kind === 'seam';

const sameItems = (a: readonly SeamItem[], b: readonly SeamItem[]) => a.length === b.length && a.every((item, i) => item === b[i]);

/** The seams of the thread. */
function useSeams(): readonly SeamItem[] {
  return useView(useCallback((view: View) => view.items.filter(isSeam), []), sameItems);
}

/** An answer with the seams in it. The text of a dead process stays until the new one has come to its end. */
function Torn({ item, text }: AnswerTextProps) {
  const seams = useSeams();
  const catching = seams.find((seam) => seam.place === 'catching_up' && seam.target === item.key && seam.cut?.text.startsWith(item.text));
  const cut = catching?.cut?.text;
  const marks = useMemo(() => {
    const all = cut === undefined || catching === undefined ? item.seams : [...item.seams, { seam: catching.key, offset: cut.length }];
    return all.flatMap(({ seam: key, offset }) => {
      const seam = seams.find((each) => each.key === key);
      return seam ? { key, offset, node: <Seam seam={seam} fresh={item.open} /> } : [];
    });
  }, [item.seams, item.open, seams, catching, cut]);
  return <Markdown text={cut ?? text} marks={marks} />;
}

export interface AnswerTextProps {
  item: TextItem;
  /** The visible part of its text. */
  text: string;
}

/** The text of an answer, with the places at which processes died. */
export function AnswerText(props: AnswerTextProps) {
  const { item, text } = props;
  return item.open || item.seams.length > 0 ? <Torn {...props} /> : <Markdown text={text} />;
}

/** A plain text with its seams in it, for what is no Markdown. */
export function SeamedText({ text, marks }: { text: string; marks: readonly SeamMark[] }) {
  const seams = useSeams();
  const parts: ReactNode[] = [];
  let from = 0;
  for (const { seam: key, offset } of marks) {
    const seam = seams.find((each) => each.key === key);
    if (!seam) continue;
    const to = Math.max(from, positionIn(text, text, offset));
    parts.push(text.slice(from, to), <Seam key={key} seam={seam} />);
    from = to;
  }
  return <>{parts}{text.slice(from)}</>;
}
