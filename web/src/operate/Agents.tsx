// The agents as they are now: what each is made of, and its tools.
import { useQuery } from '@tanstack/react-query';
import * as actions from '../api/actions.ts';
import type { Agent, AgentTool } from '../api/types.ts';
import { useCommands, usePlace, useStudio } from '../app/context.tsx';
import { useCopyCurl, useQueries } from '../app/data.tsx';
import { formatPlace, type Place } from '../app/place.ts';
import { Badge } from '../ui/Badge.tsx';
import { IconButton } from '../ui/Button.tsx';
import { EffectBadge } from '../ui/effect.tsx';
import { EmptyState } from '../ui/EmptyState.tsx';
import { PlusIcon, TerminalIcon, ToolIcon } from '../ui/icons.tsx';
import { JsonTree } from '../ui/JsonTree.tsx';
import { Skeleton } from '../ui/Spinner.tsx';
import { duration, plural } from '../ui/time.ts';
import { Unread } from './Denied.tsx';
import { ToolPage } from './ToolPage.tsx';

/** Where an agent, or one of its tools, is shown. */
export const agentPlace = (agent: string, tool?: string): Place => ({ page: 'operate', section: 'agents', agent, ...(tool !== undefined && { more: { tool } }) });

function Tools({ agent }: { agent: Agent }) {
  if (agent.tools.length === 0) return <p className="soft">This agent has no tools of the server. It may be given some by frontends.</p>;
  return (
    <ul className="operate-tools">
      {agent.tools.map((tool) => <li key={tool.name}><ToolLink agent={agent.name} tool={tool} /></li>)}
    </ul>
  );
}

function ToolLink({ agent, tool }: { agent: string; tool: AgentTool }) {
  return (
    <a className="operate-tool" href={formatPlace(agentPlace(agent, tool.name))}>
      <ToolIcon />
      <span className="operate-tool-name mono">{tool.name}</span>
      <span className="operate-tool-about">{tool.description}</span>
      <span className="operate-tool-facts">
        <EffectBadge effect={tool.effect} />
        {tool.outside && <Badge tone="info" title="Its calls are finished from outside">outside</Badge>}
        {tool.timeoutMs > 0 && <span className="faint num" title="The longest that a call may take">≤ {duration(tool.timeoutMs)}</span>}
      </span>
    </a>
  );
}

function AgentFacts({ agent }: { agent: Agent }) {
  return (
    <dl className="operate-facts">
      {agent.revision && <div><dt>Revision</dt><dd><code>{agent.revision}</code></dd></div>}
      <div><dt>Questions are answered by</dt><dd>{agent.approvals === 'approver' ? 'approvers' : 'the thread’s user'}</dd></div>
      <div><dt>{agent.models.length === 1 ? 'Model' : 'Models'}</dt><dd>{agent.demo ? 'scripted, for trying out' : agent.models.map((name, i) => <span key={name}>{i > 0 && ', then '}<code>{name}</code></span>)}</dd></div>
      <div>
        <dt>Middleware</dt>
        <dd>{agent.middleware.length === 0 ? <span className="faint">none</span> : <ol className="operate-middleware" title="The outermost first">{agent.middleware.map((name, i) => <li key={`${i} ${name}`}><code>{name}</code></li>)}</ol>}</dd>
      </div>
    </dl>
  );
}

function AgentDetail({ agent }: { agent: Agent }) {
  const copy = useCopyCurl();
  return (
    <>
      <section aria-labelledby="operate-agent">
        <header className="operate-head">
          <h2 id="operate-agent" className="truncate">{agent.name}</h2>
          {agent.default && <Badge title="Runs that name no agent are its">default</Badge>}
          {agent.demo && <Badge tone="info">demo model</Badge>}
          <span className="grow" />
          <IconButton size="small" label="Copy as curl" onClick={() => copy(actions.agents())}><TerminalIcon /></IconButton>
          <a className="button" data-size="small" href={formatPlace({ page: 'thread', agent: agent.default ? undefined : agent.name })}><PlusIcon />New thread</a>
        </header>
        {agent.description && <p className="operate-lead">{agent.description}</p>}
        <AgentFacts agent={agent} />
      </section>
      <section aria-labelledby="operate-tools">
        <header className="operate-head"><h2 id="operate-tools">{plural(agent.tools.length, 'tool')}</h2></header>
        <Tools agent={agent} />
      </section>
      <section aria-labelledby="operate-capabilities">
        <header className="operate-head"><h2 id="operate-capabilities">Capabilities</h2></header>
        <div className="operate-json"><JsonTree value={agent.capabilities} label={`Capabilities of ${agent.name}`} /></div>
      </section>
    </>
  );
}

function Choice({ agents, current }: { agents: readonly Agent[]; current: string }) {
  if (agents.length < 2) return null;
  return (
    <ul className="operate-chips" aria-label="Agents">
      {agents.map(({ name }) => <li key={name}><a className="operate-chip" href={formatPlace(agentPlace(name))} aria-current={name === current ? 'true' : undefined}>{name}</a></li>)}
    </ul>
  );
}

export function Agents() {
  const place = usePlace();
  const { router } = useStudio();
  const { data, error, isPending, refetch } = useQuery(useQueries().agents());
  const agents = data?.agents ?? [];
  const agent = place.agent === undefined ? agents.find((a) => a.default) ?? agents[0] : agents.find((a) => a.name === place.agent);
  const name = place.more?.['tool'];
  const tool = agent?.tools.find((t) => t.name === name);
  useCommands([
    ...agents.map((a) => ({ id: `agents.open.${a.name}`, title: `Agent: ${a.name}`, group: 'Operate', run: () => router.go(agentPlace(a.name)) })),
    ...(agent?.tools ?? []).map((t) => ({ id: `agents.tool.${t.name}`, title: `Tool: ${t.name}`, group: 'Operate', words: 'run by hand call', run: () => router.go(agentPlace(agent?.name ?? '', t.name)) })),
  ]);
  if (isPending) return <div className="operate-body" aria-busy="true"><Skeleton lines={8} /></div>;
  if (!data) return <Unread what="The list of agents" error={error} onRetry={() => void refetch()} />;
  if (!agent) {
    return <EmptyState icon={<ToolIcon />} title={place.agent === undefined ? 'No agents' : `No agent is called “${place.agent}”`} actions={agents.length > 0 && <a className="button" href={formatPlace({ page: 'operate', section: 'agents' })}>All agents</a>}>
      {place.agent === undefined ? 'This key may use none of the server’s agents.' : 'It was renamed or removed, or this key may not use it.'}
    </EmptyState>;
  }
  if (name !== undefined && !tool) return <EmptyState icon={<ToolIcon />} title={`${agent.name} has no tool “${name}”`} actions={<a className="button" href={formatPlace(agentPlace(agent.name))}>Its tools</a>}>A tool may come and go with the configuration of its agent.</EmptyState>;
  if (tool) return <ToolPage key={`${agent.name} ${tool.name}`} agent={agent.name} tool={tool} />;
  return <div className="operate-body"><div className="operate-inner"><Choice agents={agents} current={agent.name} /><AgentDetail agent={agent} /></div></div>;
}
