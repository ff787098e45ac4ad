// A thread: what was said, what was done, and what one can say next.
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import * as actions from '../api/actions.ts';
import type { Choices, UserMessage } from '../api/actions.ts';
import { threadsKey } from '../api/queries.ts';
import { useCommands, usePlace, usePreferences, useStudio } from '../app/context.tsx';
import { useConfig, useCopyCurl, useQueries, useThreadId } from '../app/data.tsx';
import { useSides } from '../app/sides.tsx';
import { useSnapshot, useStanding, useThread } from '../log/hooks.tsx';
import type { Snapshot } from '../log/store.ts';
import type { CallItem, Item } from '../log/view.ts';
import { ErrorCard, failureOf } from '../ui/ErrorCard.tsx';
import { EmptyState } from '../ui/EmptyState.tsx';
import { Skeleton } from '../ui/Spinner.tsx';
import { acceptsOf, partsOf } from './attachments.ts';
import { Ask } from './Ask.tsx';
import { Composer, type ComposerHandle } from './Composer.tsx';
import { RowsContext, type Rows } from './context.ts';
import './Conversation.css';
import { useDraft, type Drafting } from './drafts.ts';
import { AgentChoice, Examples, useAgent } from './NewThread.tsx';
import { Refused } from './Refused.tsx';
import { AtPosition, UnderConversation } from './slots.tsx';
import { Standing } from './Standing.tsx';
import { ThreadHeader } from './ThreadHeader.tsx';
import { Transcript } from './Transcript.tsx';
import { useAnnouncements } from './useAnnouncements.ts';
import { useShown } from './useShown.ts';
import { useSwitch, versionsAt } from './useVersions.ts';

/** The refused message, to be sent again in another way. */
interface Refusal {
  readonly error: unknown;
  readonly content: UserMessage['content'];
}

const threadOf = (snapshot: Snapshot): Snapshot['thread'] => snapshot.thread;
const refusedOf = (snapshot: Snapshot): Snapshot['refused'] => snapshot.refused;
const earlierOf = (snapshot: Snapshot): number => snapshot.earlier.length;

/** Sends, stops, resumes, and knows what was refused. */
function useSending(agent: string) {
  const store = useThread();
  const { router, toasts } = useStudio();
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const late = useSnapshot(refusedOf);
  const settle = () => {
    setRefusal(null);
    store.forget();
  };
  const [stopping, setStopping] = useState(false);
  const failed = useCallback((error: unknown) => void toasts.show({ text: failureOf(error).message, tone: 'bad' }), [toasts]);
  const send = async (content: UserMessage['content'], choices: Choices = {}) => {
    settle();
    const place = router.get();
    if (place.page === 'thread' && !place.thread) router.go({ page: 'thread', thread: store.thread });
    if (place.at !== undefined || place.more?.['checkpoint'] !== undefined) router.change({ at: undefined, more: undefined });
    try {
      await store.send(content, choices, agent);
    } catch (error) {
      setRefusal({ error, content });
      throw error;
    }
  };
  const stop = () => {
    setStopping(true);
    store.stop().catch(failed).finally(() => setStopping(false));
  };
  return { store, send, stop, stopping, refusal: refusal ?? late, late, settle, resume: () => void store.resume().catch(failed), failed };
}

/** The actions of the rows; the same object until something of it changes. */
function useRowsValue(readOnly: boolean, busy: boolean, shown: ReturnType<typeof useShown>, failed: (error: unknown) => void, say: (words: string) => void): Rows {
  const store = useThread();
  const { router } = useStudio();
  const { show } = useSides();
  const [opened] = useState(() => new Map<string, boolean>());
  const [drawn, redraw] = useState(0);
  const switchTo = useSwitch();
  const latest = useRef({ switchTo, show, say });
  useEffect(() => {
    latest.current = { switchTo, show, say };
  });
  const { branches } = shown.view;
  const lastAnswer = shown.items.findLast((i) => i.kind === 'text' && i.role === 'assistant' && !i.open)?.key ?? '';
  return useMemo<Rows>(() => ({
    readOnly, busy, thread: store.thread, lastAnswer,
    versionsOf: (key) => versionsAt(branches, key),
    edit: (item, text) => store.edit(item.id, text),
    regenerate: (item) => {
      const { items } = store.get().view;
      const asked = items.slice(0, items.findIndex((i) => i.key === item.key)).findLast((i) => i.kind === 'text' && i.role === 'user');
      if (asked) store.regenerate(asked.id).catch(failed);
    },
    say: (words) => latest.current.say(words),
    switchTo: (branch, version) => latest.current.switchTo(branch, version),
    showRecords: (item) => {
      latest.current.show('inspector');
      const record = store.get().log.at(store.get().log.positionOf(item.first) - 1);
      router.change({ tab: 'events', ...(item.runId && { run: item.runId }), more: { ...router.get().more, record: record?.cursor ?? '' } });
    },
    isOpen: (key) => opened.get(key),
    setOpen: (key, open) => {
      if (opened.get(key) === open || (!open && !opened.has(key))) return;
      opened.set(key, open);
      redraw((n) => n + 1);
    },
  }), [readOnly, busy, store, lastAnswer, branches, failed, opened, drawn, router]);
}

const isCall = (item: Item): item is CallItem => item.kind === 'call';

export function Conversation() {
  const place = usePlace();
  const id = useThreadId();
  const begun = place.thread !== undefined;
  const shown = useShown();
  const { standing, error, sending } = useStanding();
  const thread = useSnapshot(threadOf);
  const { view, items, past } = shown;
  const busy = sending || (standing !== 'gone' && view.status === 'running');
  const agent = useAgent(thread?.agent);
  const sent = useSending(agent.chosen);
  const draft = useDraft(begun ? id : '');
  const { text } = draft;
  useLate(sent.late?.content, draft);
  const composer = useRef<ComposerHandle>(null);
  const config = useConfig();
  const copy = useCopyCurl();
  const [{ keys: letters }] = usePreferences();
  const readOnly = past || place.user !== undefined;
  const rows = useRowsValue(readOnly, busy, shown, sent.failed, (words) => draft.write((text && `${text}\n`) + words));
  useAnnouncements(view, standing, past);
  useCommands([
    { id: 'conversation.write', title: 'Write a message', group: 'Conversation', keys: 'c', words: 'composer focus', run: () => composer.current?.focus() },
    { id: 'conversation.curl', title: 'Copy as curl: send this message', group: 'Copy as curl', words: 'post run', when: () => !readOnly, run: () => copy(actions.run(actions.runInput(id, 'run-1', { messages: [{ id: 'message-1', role: 'user', content: text.trim() || 'hello' }] }), agent.chosen)) },
    { id: 'conversation.stop', title: 'Stop the run', group: 'Conversation', keys: 'Escape', words: 'cancel', when: () => busy && !past, run: sent.stop },
  ]);
  const loadEarlier = useEarlier();
  useFreshLists(`${thread?.etag ?? ''} ${view.status} ${String(sending)}`);
  const asks = !past && view.status === 'waiting' && view.interrupts.length > 0;
  const tools = agent.tools;
  return (
    <RowsContext value={rows}>
      <ThreadHeader thread={thread} items={items} status={view.status} busy={busy} begun={begun} />
      {thread !== undefined && <AtPosition />}
      {!begun || (items.length === 0 && standing === 'ended' && !busy)
        ? <Beginning begun={begun} exists={thread !== undefined} readOnly={readOnly} onExample={(example) => void sent.send(example).catch(() => composer.current?.write(example))} demo={config.demo === true} />
        : <Body standing={standing} error={error} items={items} busy={busy && !past} asking={asks} wanted={place.more?.['item']} onStart={loadEarlier} onRetry={() => sent.store.refresh()} />}
      {begun && thread !== undefined && <UnderConversation thread={id} />}
      {!readOnly && (
        <div className="conversation-foot" data-letters={letters}>
          <div className="conversation-foot-inner">
            {asks && <div className="conversation-asks"><Ask key={view.interrupts.map((i) => i.id).join()} interrupts={view.interrupts} calls={items.filter(isCall)} parametersOf={(tool) => tools.get(tool)} onAnswer={(answers) => sent.store.answer(answers)} onCurl={(resume) => copy(actions.run(actions.runInput(id, 'answer-1', { resume }), agent.chosen))} busy={sending} /></div>}
            {sent.refusal && <Refused error={sent.refusal.error} onSend={(choices) => { if (sent.refusal) { draft.write(''); draft.attach([]); void sent.send(sent.refusal.content, choices).catch(() => {}); } }} onResume={sent.resume} onDismiss={sent.settle} />}
            {begun && !asks && !sent.refusal && <Standing view={view} thread={thread} busy={busy} onResume={sent.resume} />}
            {standing !== 'gone' && (
              <Composer
                handle={composer} text={text} onText={draft.write} files={draft.files} onFiles={draft.attach} busy={busy} stopping={sent.stopping} onStop={sent.stop} autoFocus={!begun} accepts={acceptsOf(agent.capabilities)} limits={{ body: config.maxBody, media: config.maxMediaBody }}
                placeholder={asks ? 'Answer above, or write to decline' : begun ? 'Write a message' : 'What should it do?'}
                onSend={(content) => sent.send(content, asks ? { onInterrupted: 'decline' } : {})}
              >
                {begun ? <span className="truncate">{asks && text.trim() !== '' ? 'Sending declines the question.' : ''}</span> : <AgentChoice agent={agent} />}
              </Composer>
            )}
          </div>
        </div>
      )}
    </RowsContext>
  );
}

/** A message that an earlier visit of the page has sent and that was refused is written again, unless somebody has begun another message. */
function useLate(content: UserMessage['content'] | undefined, draft: Drafting): void {
  const latest = useRef(draft);
  useEffect(() => {
    latest.current = draft;
  });
  useEffect(() => {
    const { text, files, write, attach } = latest.current;
    if (content === undefined || text !== '' || files.length > 0) return;
    const parts = partsOf(content);
    write(parts.text);
    attach(parts.files);
  }, [content]);
}

/** The entries of this thread in lists change with it. */
function useFreshLists(of: string): void {
  const client = useQueryClient();
  const first = useRef(true);
  useEffect(() => {
    if (first.current) first.current = false;
    else for (const queryKey of [threadsKey, ['questions']]) void client.invalidateQueries({ queryKey });
  }, [client, of]);
}

/** Loads one earlier run at a time, when somebody comes to the beginning of what is shown. */
function useEarlier(): (() => void) | undefined {
  const store = useThread();
  const earlier = useSnapshot(earlierOf);
  const loading = useRef(false);
  return useMemo(() => (earlier === 0 ? undefined : () => {
    if (loading.current) return;
    loading.current = true;
    void store.loadEarlier().catch(() => {}).finally(() => {
      loading.current = false;
    });
  }), [store, earlier]);
}

function Beginning({ begun, exists, readOnly, demo, onExample }: { begun: boolean; exists: boolean; readOnly: boolean; demo: boolean; onExample: (text: string) => void }) {
  const queries = useQueries();
  const { data } = useQuery(queries.agents());
  const invite = readOnly ? '' : ' Your message begins it.';
  if (exists) return <EmptyState title="Nothing is said here">This thread has no messages.{invite}</EmptyState>;
  if (begun) return <EmptyState title="Nothing is here">This thread does not exist yet, was deleted, or is somebody else’s.{invite}</EmptyState>;
  return (
    <div className="conversation-begin">
      <h2>What should it hold on to?</h2>
      <p className="soft">Every step of a run is stored before you see it. Close the page, kill the server: the run goes on where it was.</p>
      {demo && <Examples onExample={onExample} />}
      {!demo && data?.agents.length === 1 && data.agents[0]?.description && <p className="small faint">{data.agents[0].description}</p>}
    </div>
  );
}

function Body({ standing, error, items, busy, asking, wanted, onStart, onRetry }: { standing: Snapshot['standing']; error: Snapshot['error']; items: readonly Item[]; busy: boolean; asking: boolean; wanted?: string; onStart?: () => void; onRetry: () => void }) {
  if (standing === 'gone' && error) return <div className="conversation-failed"><ErrorCard title="This thread cannot be shown" error={failureOf(error)} onRetry={onRetry} alert /></div>;
  if (items.length === 0 && standing === 'reconnecting' && error) return <div className="conversation-failed"><ErrorCard title="The server cannot be reached" error={{ ...failureOf(error), hint: 'The page tries again by itself. Runs on the server continue.' }} onRetry={onRetry} alert /></div>;
  if (items.length === 0 && !busy) return <div className="conversation-loading" aria-busy="true"><Skeleton lines={5} /></div>;
  const last = items.at(-1);
  const thinking = busy && !(last?.open && last.kind !== 'text') && !(last?.kind === 'text' && last.role === 'assistant' && last.open && last.text !== '') && !(last?.kind === 'call' && last.status === 'running');
  return <Transcript items={items} busy={busy} thinking={thinking} asking={asking} wanted={wanted} onStart={onStart} />;
}
