// The details behind a conversation: its records, its states, its runs, its checkpoints, and the
// tools of its agent.
import { usePlace, useStudio, useCommands } from '../app/context.tsx';
import { Checkpoints } from '../durable/Checkpoints.tsx';
import { Tabs } from '../ui/Tabs.tsx';
import { Events } from './Events.tsx';
import './Inspector.css';
import { Replay } from './Replay.tsx';
import { Run } from './Run.tsx';
import { State } from './State.tsx';
import { Tools } from './Tools.tsx';

const tabs = ['events', 'state', 'run', 'checkpoints', 'tools'] as const;
type TabName = (typeof tabs)[number];

const names: Record<TabName, string> = { events: 'Events', state: 'State', run: 'Run', checkpoints: 'Checkpoints', tools: 'Tools' };

export default function Inspector() {
  const { router } = useStudio();
  const { tab, thread } = usePlace();
  const shown = tabs.find((each) => each === tab) ?? 'events';
  const go = (next: TabName) => router.change({ tab: next }, { replace: true });
  useCommands(tabs.map((each) => ({ id: `inspector.${each}`, title: `Inspector: ${names[each].toLowerCase()}`, group: 'Inspector', run: () => go(each) })));
  return (
    <div className="inspector">
      <Tabs
        label="Inspector" value={shown} onChange={go}
        tabs={[
          { value: 'events', name: names.events, panel: <Events /> },
          { value: 'state', name: names.state, panel: <State /> },
          { value: 'run', name: names.run, panel: <Run /> },
          { value: 'checkpoints', name: names.checkpoints, panel: <Checkpoints /> },
          { value: 'tools', name: names.tools, panel: <Tools /> },
        ]}
      />
      <Replay key={thread} />
    </div>
  );
}
