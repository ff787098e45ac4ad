// The tools of the thread's agent: what they do, what they take, and how often they were called here.
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import type { Agent, AgentTool } from '../api/types.ts';
import { useQueries } from '../app/data.tsx';
import { useSnapshot } from '../log/hooks.tsx';
import type { Snapshot } from '../log/store.ts';
import { Badge } from '../ui/Badge.tsx';
import { EffectBadge } from '../ui/effect.tsx';
import { EmptyState } from '../ui/EmptyState.tsx';
import { ErrorCard, failureOf } from '../ui/ErrorCard.tsx';
import { ToolIcon } from '../ui/icons.tsx';
import { JsonTree } from '../ui/JsonTree.tsx';
import { Skeleton } from '../ui/Spinner.tsx';
import { duration, plural } from '../ui/time.ts';
import './Tools.css';

const agentOf = ({ thread }: Snapshot): string | undefined => thread?.agent;
const itemsOf = ({ view }: Snapshot) => view.items;

/** How often each tool was called in what is loaded, and how often it failed. */
function useCalls(): ReadonlyMap<string, { calls: number; failed: number }> {
  const items = useSnapshot(itemsOf);
  return useMemo(() => {
    const found = new Map<string, { calls: number; failed: number }>();
    for (const item of items) {
      if (item.kind !== 'call') continue;
      const { calls, failed } = found.get(item.name) ?? { calls: 0, failed: 0 };
      found.set(item.name, { calls: calls + 1, failed: failed + (item.status === 'failed' ? 1 : 0) });
    }
    return found;
  }, [items]);
}

function Tool({ tool, called }: { tool: AgentTool; called: { calls: number; failed: number } | undefined }) {
  const [open, setOpen] = useState(false);
  return (
    <details className="inspector-tool" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        <span className="inspector-tool-name mono truncate">{tool.name}</span>
        <EffectBadge effect={tool.effect} />
        {tool.outside && <Badge title="Its result comes from outside">outside</Badge>}
        <span className="grow" />
        {called && <span className="faint small num">{plural(called.calls, 'call')}{called.failed > 0 && <span className="inspector-failed">, {called.failed} failed</span>}</span>}
        <span className="inspector-tool-about soft">{tool.description}</span>
      </summary>
      {open && (
        <div className="inspector-tool-body">
          {tool.timeoutMs > 0 && <p className="faint small num">Each call may take {duration(tool.timeoutMs)}.</p>}
          {tool.parameters ? <JsonTree value={tool.parameters} label={`Arguments of ${tool.name}`} depth={3} /> : <p className="soft small">The server does not say what arguments it takes.</p>}
        </div>
      )}
    </details>
  );
}

export function Tools() {
  const { data, error, refetch } = useQuery(useQueries().agents());
  const name = useSnapshot(agentOf);
  const calls = useCalls();
  if (error && !data) return <div className="inspector-pad"><ErrorCard title="The tools cannot be read" error={failureOf(error)} onRetry={() => void refetch()} /></div>;
  if (!data) return <div className="inspector-pad"><Skeleton lines={6} /></div>;
  const agent: Agent | undefined = data.agents.find((each) => each.name === name) ?? data.agents.find((each) => each.default) ?? data.agents[0];
  if (!agent) return <EmptyState icon={<ToolIcon />} title="The agent is not here">This server has no agent of the name {name}.</EmptyState>;
  if (agent.tools.length === 0) return <EmptyState icon={<ToolIcon />} title="No tools">The agent {agent.name} has none of its own. Those that a frontend brings are in its requests.</EmptyState>;
  return (
    <div className="inspector-scroll inspector-ready" tabIndex={0} role="region" aria-label="Tools of the agent">
      <p className="soft small inspector-note">{plural(agent.tools.length, 'tool')} of <strong>{agent.name}</strong>{agent.revision && <span className="faint mono"> {agent.revision.slice(0, 12)}</span>}</p>
      <ul className="inspector-tools">{agent.tools.map((tool) => <li key={tool.name}><Tool tool={tool} called={calls.get(tool.name)} /></li>)}</ul>
    </div>
  );
}
