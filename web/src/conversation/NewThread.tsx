// The needs of a new thread: who is to answer, and, with the demo model, what to try.
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { usePlace, useStudio } from '../app/context.tsx';
import { useQueries } from '../app/data.tsx';
import { fields, list, text } from '../log/json.ts';
import type { Agent } from '../api/types.ts';
import { Select } from '../ui/Field.tsx';

export interface ChosenAgent {
  /** The name; '' for the server's default. */
  readonly chosen: string;
  readonly agents: readonly Agent[];
  readonly capabilities: unknown;
  /** The schemas of its tools' arguments, by name. */
  readonly tools: ReadonlyMap<string, unknown>;
}

/** The agent of a thread; of a new one, that of the place, or else the default. */
export function useAgent(of: string | undefined): ChosenAgent {
  const { agent } = usePlace();
  const { data } = useQuery(useQueries().agents());
  const agents = data?.agents;
  return useMemo(() => {
    const chosen = of ?? agent ?? '';
    const found = agents?.find((a) => a.name === chosen) ?? (chosen === '' ? agents?.find((a) => a.default) ?? agents?.[0] : undefined);
    const items = list(fields(fields(found?.capabilities)['tools'])['items']).map(fields);
    return { chosen, agents: agents ?? [], capabilities: found?.capabilities, tools: new Map(items.map((t) => [text(t['name']), t['parameters']])) };
  }, [of, agent, agents]);
}

/** The agents that may answer in a new thread. With a single agent there is nothing to choose. */
export function AgentChoice({ agent }: { agent: ChosenAgent }) {
  const { router } = useStudio();
  if (agent.agents.length < 2) return <span className="truncate">{agent.agents[0]?.name ?? ''}</span>;
  const byDefault = agent.agents.find((a) => a.default)?.name ?? agent.agents[0]?.name ?? '';
  const missing = agent.chosen !== '' && !agent.agents.some((a) => a.name === agent.chosen);
  const options = [...(missing ? [[agent.chosen, `${agent.chosen} (unknown)`] as const] : []), ...agent.agents.map((a) => [a.name, a.name] as const)];
  return <Select className="composer-agent" label="Agent" quiet value={agent.chosen || byDefault} options={options} onChange={(name) => router.change({ agent: name === byDefault ? undefined : name }, { replace: true })} />;
}

const examples = [
  ['plan 4 steps', 'Tools in parallel, a plan in the shared state'],
  ['slow 40', 'A slow answer: reload the page or kill the server in the middle'],
  ['ask me to choose tea, coffee, water', 'A tool that waits for a person'],
  ['use request_approval {"amount": 120}', 'A call that is finished from outside, days later'],
] as const;

/** The commands that the demo model understands. With a real model nobody sees it. */
export function Examples({ onExample }: { onExample: (text: string) => void }) {
  return (
    <ul className="conversation-examples" aria-label="Examples">
      {examples.map(([said, what]) => (
        <li key={said}><button type="button" onClick={() => onExample(said)}><span className="conversation-example">{said}</span><span className="small soft">{what}</span></button></li>
      ))}
    </ul>
  );
}
