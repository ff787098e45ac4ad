// The questions that wait for an answer, of all threads: it can be answered here too.
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { useMemo } from 'react';
import * as actions from '../api/actions.ts';
import { threadKey, threadsKey } from '../api/queries.ts';
import { MainHeader } from '../app/MainHeader.tsx';
import { useCopyCurl, useQueries, useServer } from '../app/data.tsx';
import { formatPlace } from '../app/place.ts';
import { Ask } from '../conversation/Ask.tsx';
import { fields, list, text } from '../log/json.ts';
import { uuid } from '../log/page.ts';
import type { Interrupt } from '../log/view.ts';
import { useToast } from '../app/context.tsx';
import type { Question, QuestionList } from '../api/types.ts';
import { Badge } from '../ui/Badge.tsx';
import { Button } from '../ui/Button.tsx';
import { EmptyState } from '../ui/EmptyState.tsx';
import { ErrorCard, failureOf } from '../ui/ErrorCard.tsx';
import { QuestionIcon } from '../ui/icons.tsx';
import { Skeleton } from '../ui/Spinner.tsx';
import { Time } from '../ui/Time.tsx';
import { nameOf } from './standing.ts';

/** A thread that waits, with all that it asks. */
export interface Asking {
  readonly thread: Question['thread'];
  readonly interrupts: readonly Interrupt[];
  readonly askedAt: string;
}

/** Puts the questions of each thread together: they are answered together. */
export function askingOf(pages: readonly QuestionList[]): readonly Asking[] {
  const threads = new Map<string, { thread: Asking['thread']; interrupts: Interrupt[]; askedAt: string }>();
  for (const { thread, interrupt, askedAt } of pages.flatMap((p) => p.questions)) {
    const known = threads.get(thread.id) ?? { thread, interrupts: [], askedAt };
    if (!known.interrupts.some((i) => i.id === interrupt.id)) known.interrupts.push(interrupt);
    threads.set(thread.id, known);
  }
  return [...threads.values()];
}

/** A number of questions; with a plus if older threads were not looked at. */
const counted = (count: number, more: boolean): string => (count === 0 ? '' : `${count}${more ? '+' : ''}`);

/** How many questions are open, in digits: "3", "50+", or '' if none is known. */
export function useOpenQuestions(): string {
  const { data, hasNextPage } = useInfiniteQuery(useQueries().questions());
  return counted(data?.pages.reduce((n, p) => n + p.questions.length, 0) ?? 0, hasNextPage);
}

function useAnswer(asking: Asking): (answers: readonly actions.Answer[]) => Promise<void> {
  const server = useServer();
  const client = useQueryClient();
  const toast = useToast();
  return async (answers) => {
    const { id, agent } = asking.thread;
    const reply = await server.send(actions.run(actions.runInput(id, uuid(window.crypto), { resume: answers }), agent));
    // The run goes on without anybody who watches it.
    await reply.body?.cancel().catch(() => {});
    toast({ text: `Answered: ${nameOf(asking.thread)} goes on`, tone: 'good', action: { label: 'Show', run: () => { window.location.hash = formatPlace({ page: 'thread', thread: id }); } } });
    await Promise.all([client.invalidateQueries({ queryKey: ['questions'] }), client.invalidateQueries({ queryKey: threadsKey }), client.invalidateQueries({ queryKey: threadKey(id) })]);
  };
}

function OneThread({ asking, tools }: { asking: Asking; tools: ReadonlyMap<string, unknown> }) {
  const answer = useAnswer(asking);
  const copy = useCopyCurl();
  return (
    <section role="group" aria-label={nameOf(asking.thread)}>
      <header className="questions-head">
        <h2><a href={formatPlace({ page: 'thread', thread: asking.thread.id })}>{nameOf(asking.thread)}</a></h2>
        <Badge>{asking.thread.agent}</Badge>
        {asking.askedAt && <span className="faint"><Time at={asking.askedAt} /></span>}
      </header>
      <Ask interrupts={asking.interrupts} calls={[]} parametersOf={(tool) => tools.get(tool)} onAnswer={answer} onCurl={(resume) => copy(actions.run(actions.runInput(asking.thread.id, 'answer-1', { resume }), asking.thread.agent))} heading={3} />
    </section>
  );
}

/** The schemas of all agents' tools. */
function useTools(): (agent: string) => ReadonlyMap<string, unknown> {
  const { data } = useQuery(useQueries().agents());
  return useMemo(() => {
    const all = new Map((data?.agents ?? []).map((a) => [a.name, new Map(list(fields(fields(a.capabilities)['tools'])['items']).map(fields).map((t) => [text(t['name']), t['parameters']]))]));
    return (agent) => all.get(agent) ?? new Map();
  }, [data]);
}

export function Questions() {
  const { data, isPending, isError, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(useQueries().questions());
  const tools = useTools();
  const asking = useMemo(() => askingOf(data?.pages ?? []), [data]);
  const count = counted(asking.reduce((n, a) => n + a.interrupts.length, 0), hasNextPage);
  const older = hasNextPage && <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>Older questions</Button>;
  return (
    <>
      <MainHeader title="Questions">{count && <Badge tone="wait">{count} open</Badge>}</MainHeader>
      {isError && data === undefined ? <div className="questions"><div className="questions-list"><ErrorCard title="The questions cannot be listed" error={failureOf(error)} onRetry={() => void refetch()} /></div></div>
        : isPending ? <div className="questions" aria-busy="true"><div className="questions-list"><Skeleton lines={5} /></div></div>
          : asking.length === 0 ? <EmptyState icon={<QuestionIcon />} title={hasNextPage ? 'The newest threads ask nothing' : 'Nothing waits for you'} actions={older}>When an agent asks before it goes on, its question is here, whichever thread it is in.</EmptyState>
            : <div className="questions"><div className="questions-list">{asking.map((a) => <OneThread key={`${a.thread.id} ${a.interrupts.map((i) => i.id).join()}`} asking={a} tools={tools(a.thread.agent)} />)}{older}</div></div>}
    </>
  );
}
