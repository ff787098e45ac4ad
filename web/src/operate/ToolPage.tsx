// One tool: what it takes and does, and a call of it by hand.
import { useId, useState, type FormEvent } from 'react';
import * as actions from '../api/actions.ts';
import { ApiError } from '../api/request.ts';
import type { AgentTool, ToolOutcome } from '../api/types.ts';
import { useAnnounce, useCommands } from '../app/context.tsx';
import { useConfig, useCopyCurl, useServer } from '../app/data.tsx';
import { formatPlace } from '../app/place.ts';
import { Badge } from '../ui/Badge.tsx';
import { Button, IconButton } from '../ui/Button.tsx';
import { CopyButton } from '../ui/CopyButton.tsx';
import { AlertDialog } from '../ui/Dialog.tsx';
import { EffectBadge, effectOf } from '../ui/effect.tsx';
import { ErrorCard, failureOf } from '../ui/ErrorCard.tsx';
import { TextField } from '../ui/Field.tsx';
import { ChevronRightIcon, InfoIcon, PlayIcon, RetryIcon, TerminalIcon, WarningIcon } from '../ui/icons.tsx';
import { JsonTree } from '../ui/JsonTree.tsx';
import { SchemaForm, useSchemaForm, type FormState } from '../ui/SchemaForm.tsx';
import { StatusDot } from '../ui/StatusDot.tsx';
import { duration } from '../ui/time.ts';
import { Time } from '../ui/Time.tsx';
import { agentPlace } from './Agents.tsx';
import { Denied } from './Denied.tsx';
import { onlyTenants } from './sections.ts';

/** A call that was made here. */
interface Called {
  readonly id: number;
  readonly at: number;
  readonly arguments: unknown;
  readonly outcome?: ToolOutcome;
  readonly error?: unknown;
}

/** The server's objections to arguments, by the path of the field. */
export function violationsOf(error: unknown): Map<string, string> {
  const found = error instanceof ApiError ? error.details['violations'] : undefined;
  const all = new Map<string, string>();
  for (const each of Array.isArray(found) ? found : []) {
    const [, path = '', what = ''] = /^(\/\S*?|): (.*)$/s.exec(String(each)) ?? [];
    if (what !== '') all.set(path, what);
  }
  return all;
}

function useCall(agent: string, tool: string, form: FormState) {
  const server = useServer();
  const announce = useAnnounce();
  const [calls, setCalls] = useState<readonly Called[]>([]);
  const [busy, setBusy] = useState(false);
  const call = async (args: unknown, idempotencyKey?: string) => {
    setBusy(true);
    const begun = { id: calls.length, at: Date.now(), arguments: args };
    const add = (end: Partial<Called>) => setCalls((now) => [{ ...begun, id: now.length, ...end }, ...now]);
    try {
      const outcome = await server.json<ToolOutcome>(actions.callTool(agent, tool, { arguments: args, ...(idempotencyKey && { idempotencyKey }) }));
      add({ outcome });
      announce(outcome.error === undefined ? `${tool} has returned after ${duration(outcome.durationMs)}.` : `${tool} has failed: ${outcome.error}`);
    } catch (error) {
      const wrong = violationsOf(error);
      if (wrong.size > 0) form.show(wrong);
      add({ error });
      announce(`${tool} was not called: ${failureOf(error).message}`);
    } finally {
      setBusy(false);
    }
  };
  return { calls, busy, call };
}

/** A result as it is best read: JSON as a tree, everything else as text. */
function Result({ value }: { value: unknown }) {
  const shown = parsed(value);
  if (typeof shown === 'string') return <div className="operate-text"><pre tabIndex={0} aria-label="Result">{shown === '' ? ' ' : shown}</pre><CopyButton text={shown} label="Copy the result" /></div>;
  return <div className="operate-json"><JsonTree value={shown} label="Result" depth={2} /></div>;
}

function parsed(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return value ?? '';
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}

function Outcome({ called, newest, onAgain, busy }: { called: Called; newest: boolean; onAgain: (key: string) => void; busy: boolean }) {
  const { outcome, error } = called;
  if (!outcome) return <li className="operate-call"><ErrorCard title="It was not called" error={failureOf(error)} alert={newest} /></li>;
  const failed = outcome.error !== undefined;
  return (
    <li className="operate-call">
      <header className="operate-call-head">
        <StatusDot tone={failed ? 'bad' : 'good'} /><b>{failed ? 'Failed' : 'Returned'}</b>
        <span className="num soft">{duration(outcome.durationMs)}</span>
        <span className="grow" />
        <span className="faint small"><Time at={called.at} /></span>
      </header>
      {failed ? <p className="operate-call-error">{outcome.error}</p> : <Result value={outcome.result} />}
      <footer className="operate-call-foot">
        <span className="faint small">Key</span><code className="truncate" title={outcome.idempotencyKey}>{outcome.idempotencyKey}</code><CopyButton text={outcome.idempotencyKey} label="Copy the idempotency key" />
        <span className="grow" />
        <Button size="small" kind="quiet" icon={<RetryIcon />} disabled={busy} onClick={() => onAgain(outcome.idempotencyKey)}>Again with this key</Button>
      </footer>
      <details className="operate-arguments"><summary>Arguments</summary><div className="operate-json"><JsonTree value={called.arguments} label="Arguments" depth={2} /></div></details>
    </li>
  );
}

function Form({ agent, tool, form, calling, onSend }: { agent: string; tool: AgentTool; form: FormState; calling: boolean; onSend: (args: unknown, key: string) => void }) {
  const copy = useCopyCurl();
  const [key, setKey] = useState('');
  const effect = effectOf(tool.effect);
  const send = (e: FormEvent) => {
    e.preventDefault();
    const { problems, value } = form.read();
    if (!problems && !calling) onSend(value, key.trim());
  };
  const copyCurl = () => {
    const { problems, value } = form.read();
    if (!problems) copy(actions.callTool(agent, tool.name, { arguments: value, ...(key.trim() && { idempotencyKey: key.trim() }) }));
  };
  const bare = form.field.kind === 'object' && form.field.members.length === 0;
  return (
    <form className="operate-form" onSubmit={send} noValidate>
      {effect.again && <p className="operate-warning"><WarningIcon /><span>{effect.again} No permission, budget or question of the agent stands in between.</span></p>}
      {bare ? <p className="soft">It takes no arguments.</p> : <SchemaForm form={form} name="Arguments" />}
      <details className="operate-more"><summary>Idempotency key</summary>
        <TextField label="Key" quiet value={key} onChange={setKey} autoComplete="off" spellCheck={false} className="mono" placeholder="A new one" about="With the key of an earlier call, a service that knows keys does nothing twice." />
      </details>
      <div className="row wrap">
        <Button type="submit" kind="primary" icon={<PlayIcon />} busy={calling}>{calling ? 'Running' : 'Run it'}</Button>
        <Button icon={<TerminalIcon />} onClick={copyCurl}>Copy as curl</Button>
      </div>
    </form>
  );
}

function ByHand({ agent, tool }: { agent: string; tool: AgentTool }) {
  const form = useSchemaForm(tool.parameters ?? { type: 'object', properties: {}, additionalProperties: false });
  const { calls, busy, call } = useCall(agent, tool.name, form);
  const [asked, setAsked] = useState<{ args: unknown; key: string } | null>(null);
  const effect = effectOf(tool.effect);
  const send = (args: unknown, key: string) => (effect.again ? setAsked({ args, key }) : void call(args, key));
  return (
    <div className="operate-hand">
      <section className="operate-card" aria-labelledby="operate-run">
        <h2 id="operate-run">Run it by hand</h2>
        <Form agent={agent} tool={tool} form={form} calling={busy} onSend={send} />
      </section>
      <section aria-labelledby="operate-results" className="operate-results">
        <h2 id="operate-results">Results</h2>
        {calls.length === 0 ? <p className="operate-none">Its result is shown here, with how long it took. It belongs to no thread, and is not kept.</p> : (
          <ol className="operate-calls">{calls.map((c, i) => <Outcome key={c.id} called={c} newest={i === 0} busy={busy} onAgain={(key) => send(c.arguments, key)} />)}</ol>
        )}
      </section>
      <AlertDialog
        open={asked !== null} onClose={() => setAsked(null)} title={`Run ${tool.name}?`} confirm="Run it" danger={effect.tone !== 'neutral'}
        about={<><p>{effect.again}</p><p>The call is written to the server’s audit log.</p></>}
        onConfirm={() => { const it = asked; setAsked(null); if (it) void call(it.args, it.key); }}
      >
        {asked && <div className="operate-json"><JsonTree value={asked.args} label="Arguments" depth={2} /></div>}
      </AlertDialog>
    </div>
  );
}

function Hand({ agent, tool }: { agent: string; tool: AgentTool }) {
  const config = useConfig();
  if (tool.outside) return <p className="operate-note"><InfoIcon /><span>Calls of this tool are finished from outside the server, by the people or systems that do the work. So there is nothing here that could be run.</span></p>;
  if (onlyTenants(config)) return null;
  if (config.serverOperator === false) return <Denied what="Running a tool by hand" />;
  if (config.serverOperator === undefined) return <p className="operate-note"><InfoIcon /><span>The server does not say whether it lets tools be run by hand. It may be older than this page.</span></p>;
  return <ByHand agent={agent} tool={tool} />;
}

export function ToolPage({ agent, tool }: { agent: string; tool: AgentTool }) {
  const copy = useCopyCurl();
  const id = useId();
  useCommands([{ id: 'tool.curl', title: 'Copy as curl: the agents and their tools', group: 'Operate', run: () => copy(actions.agents()) }]);
  return (
    <div className="operate-body">
      <div className="operate-inner">
        <section aria-labelledby={id}>
          <nav aria-label="Where this is" className="operate-crumbs"><a href={formatPlace({ page: 'operate', section: 'agents' })}>Agents</a><ChevronRightIcon /><a className="truncate" href={formatPlace(agentPlace(agent))}>{agent}</a></nav>
          <header className="operate-head">
            <h2 id={id} className="mono truncate">{tool.name}</h2>
            <EffectBadge effect={tool.effect} />
            {tool.outside && <Badge tone="info">outside</Badge>}
            <span className="grow" />
            <IconButton size="small" label="Copy as curl: the agents and their tools" onClick={() => copy(actions.agents())}><TerminalIcon /></IconButton>
          </header>
          {tool.description && <p className="operate-lead">{tool.description}</p>}
          <p className="soft small">{effectOf(tool.effect).about}{tool.timeoutMs > 0 && ` A call may take ${duration(tool.timeoutMs)}.`}</p>
        </section>
        <Hand agent={agent} tool={tool} />
        {tool.parameters && <details className="operate-schema"><summary>Schema of its arguments</summary><div className="operate-json"><JsonTree value={tool.parameters} label={`Schema of ${tool.name}`} depth={3} /></div></details>}
      </div>
    </div>
  );
}
