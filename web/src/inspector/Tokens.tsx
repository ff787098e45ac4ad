// Tokens by model, how much of the input came from the provider's cache, and what it costs.
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { PricedUsage, RunInfo } from '../api/types.ts';
import { useQueries, useThreadId } from '../app/data.tsx';
import type { RunView } from '../log/view.ts';
import { ErrorCard, failureOf } from '../ui/ErrorCard.tsx';
import { Segments } from '../ui/Segments.tsx';
import { Skeleton } from '../ui/Spinner.tsx';
import { count, plural } from '../ui/time.ts';

/** An amount of money: of small ones, what can be told apart. */
export const money = (cost: number): string => cost.toLocaleString('en', cost !== 0 && Math.abs(cost) < 1 ? { maximumSignificantDigits: 3 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** The share of the input that came from the cache, in words; '' if there was no input. */
export const cached = ({ inputTokens = 0, cachedInputTokens = 0 }: PricedUsage): string => (inputTokens === 0 ? '' : `${Math.round(Math.min(1, cachedInputTokens / inputTokens) * 100)}%`);

const sum = (usage: readonly PricedUsage[], name: 'inputTokens' | 'outputTokens' | 'cachedInputTokens' | 'reasoningTokens'): number => usage.reduce((n, each) => n + (each[name] ?? 0), 0);

export function TokenTable({ usage, cost, label }: { usage: readonly PricedUsage[]; cost?: number; label: string }) {
  const priced = cost !== undefined || usage.some((each) => each.cost !== undefined);
  const row = (each: PricedUsage, name: string, price: number | undefined) => (
    <tr key={name}>
      <th scope="row" title={name}>{name}</th>
      <td className="num">{count(each.inputTokens ?? 0)}</td>
      <td className="num">{cached(each) || '–'}</td>
      <td className="num">{count(each.outputTokens ?? 0)}{(each.reasoningTokens ?? 0) > 0 && <span className="faint" title="of it reasoning"> ({count(each.reasoningTokens ?? 0)})</span>}</td>
      {priced && <td className="num">{price === undefined ? <span title="This model has no price">–</span> : money(price)}</td>}
    </tr>
  );
  const all: PricedUsage = { inputTokens: sum(usage, 'inputTokens'), outputTokens: sum(usage, 'outputTokens'), cachedInputTokens: sum(usage, 'cachedInputTokens'), reasoningTokens: sum(usage, 'reasoningTokens') };
  return (
    <div className="inspector-table-scroll" tabIndex={0} role="region" aria-label={label}>
      <table className="inspector-table">
        <thead><tr><th scope="col">Model</th><th scope="col" className="num">Input</th><th scope="col" className="num">Cached</th><th scope="col" className="num">Output</th>{priced && <th scope="col" className="num">Cost</th>}</tr></thead>
        <tbody>{usage.map((each) => row(each, [each.provider, each.model].filter(Boolean).join(' / ') || 'unnamed model', each.cost))}</tbody>
        {usage.length > 1 && <tfoot>{row(all, 'Together', cost)}</tfoot>}
      </table>
    </div>
  );
}

/** The usage of a run, or of the whole thread. */
export function Tokens({ info, run }: { info: RunInfo | undefined; run: RunView | undefined }) {
  const [of, setOf] = useState<'run' | 'thread'>('run');
  const thread = useThreadId();
  const all = useQuery({ ...useQueries().usage(thread), enabled: of === 'thread' });
  // The log says it at the end of the run, the server also before.
  const usage = info?.usage ?? run?.usage ?? [];
  return (
    <section className="inspector-section" aria-label="Tokens">
      <div className="row inspector-section-head"><h2 className="grow">Tokens and cost</h2><Segments label="Of what" value={of} options={[['run', 'This run'], ['thread', 'Thread']]} onChange={setOf} /></div>
      {of === 'run' && (usage.length === 0 ? <p className="soft small">{info?.endedAt ? 'The model reported none.' : 'They are known when the model has reported them.'}</p> : <TokenTable usage={usage} cost={info?.cost} label="Tokens of the run" />)}
      {of === 'thread' && all.error !== null && <ErrorCard title="The usage of the thread cannot be read" error={failureOf(all.error)} onRetry={() => void all.refetch()} />}
      {of === 'thread' && !all.data && !all.error && <Skeleton lines={3} />}
      {of === 'thread' && all.data && (
        <>
          {all.data.usage.length === 0 ? <p className="soft small">No run has used any tokens.</p> : <TokenTable usage={all.data.usage} cost={all.data.cost} label="Tokens of the thread" />}
          <p className="faint small inspector-note-after">{plural(all.data.runs, 'run')}, with those that were taken back: they were paid for. {all.data.incomplete && 'The usage of some runs is not known.'}</p>
        </>
      )}
    </section>
  );
}
