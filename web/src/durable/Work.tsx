// The work that is under way and in no checkpoint yet: calls that are planned or started, results that
// are saved ahead of their checkpoint, and calls of which nobody knows whether they happened.
import type { Work as WorkOf, WorkCall } from '../api/types.ts';
import { CopyButton } from '../ui/CopyButton.tsx';
import { EffectBadge, effectOf } from '../ui/effect.tsx';
import { EmptyState } from '../ui/EmptyState.tsx';
import { CheckIcon } from '../ui/icons.tsx';
import { StatusDot, type Tone } from '../ui/StatusDot.tsx';
import { Duration } from '../ui/Time.tsx';
import { plural } from '../ui/time.ts';
import { ProcessTag } from './Process.tsx';
import './Work.css';

type State = WorkCall['state'];

/** The meaning of each state, in words: what is stored, and what a crash would do. */
export const workWords: Readonly<Record<State, { name: string; tone: Tone; about: string }>> = {
  planned: { name: 'Planned', tone: 'neutral', about: 'The model has asked for it, and it has not started. After a crash it starts then.' },
  started: { name: 'Started', tone: 'active', about: 'Its intent was saved before it started, so after a crash it is known that it may have happened.' },
  recorded: { name: 'Result saved', tone: 'good', about: 'A pending write: the result is saved ahead of the next checkpoint. No crash makes it run again.' },
  in_doubt: { name: 'In doubt', tone: 'wait', about: 'The process that started it is gone, and left no result. It may have happened. The tool’s policy decides what comes next.' },
  waiting: { name: 'Waiting', tone: 'wait', about: 'It waits for a person, or for the browser. Nothing runs meanwhile.' },
  outside: { name: 'Outside', tone: 'info', about: 'It was handed out, and its result is delivered from outside. Nothing runs meanwhile.' },
};

/** The effect of a crash on a started call, by what its tool declares. */
function aboutOf({ state, effect }: WorkCall): string {
  return state === 'started' ? effectOf(effect).crash ?? workWords.started.about : workWords[state].about;
}

function Call({ call }: { call: WorkCall }) {
  const { name, tone } = workWords[call.state];
  const { attempts = 0, startedAt, endedAt, key } = call;
  return (
    <li className="durable-work-row" data-state={call.state}>
      <StatusDot tone={call.failed ? 'bad' : tone} />
      <span className="row wrap"><span className="durable-work-name">{call.toolName}</span><EffectBadge effect={call.effect} /></span>
      <span className="row small soft">
        {startedAt && !endedAt && call.state === 'started' && <Duration since={startedAt} />}
        <span>{call.failed ? 'Failure saved' : name}</span>
      </span>
      <p className="durable-work-about">{aboutOf(call)}{attempts > 1 && ` It was started ${plural(attempts, 'time')}.`}</p>
      {key && <p className="durable-work-key"><span>key</span><code title={key}>{key}</code><CopyButton text={key} label="Copy the idempotency key" /></p>}
    </li>
  );
}

/** In a line: "2 running · 1 result saved". Empty if there is nothing. */
export function workLine(work: WorkOf | undefined): string {
  const counted = new Map<State, number>();
  for (const { state } of work?.calls ?? []) counted.set(state, (counted.get(state) ?? 0) + 1);
  const said: Readonly<Record<State, (n: number) => string>> = {
    started: (n) => `${n} running`,
    planned: (n) => `${n} planned`,
    recorded: (n) => `${plural(n, 'result')} saved`,
    in_doubt: (n) => `${n} in doubt`,
    waiting: (n) => `${n} waiting`,
    outside: (n) => `${n} outside`,
  };
  return (Object.keys(said) as State[]).filter((state) => counted.has(state)).map((state) => said[state](counted.get(state) ?? 0)).join(' · ');
}

/** The calls that are in no checkpoint yet. */
export function Work({ work }: { work: WorkOf }) {
  if (work.calls.length === 0) {
    return <EmptyState icon={<CheckIcon />} title="Everything is in a checkpoint">While tools run, their intents and their results are here before the next checkpoint has them.</EmptyState>;
  }
  return (
    <div className="stack">
      <p className="row wrap small soft">Iteration {work.iteration}{work.process ? <>, run by <ProcessTag name={work.process} /></> : ', run by nobody at the moment'}</p>
      <ul className="durable-work" aria-label="Calls that are in no checkpoint yet">{work.calls.map((call) => <Call key={call.toolCallId} call={call} />)}</ul>
    </div>
  );
}
