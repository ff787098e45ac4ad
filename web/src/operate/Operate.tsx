// The server: what it does, whom it serves, what it is made of and how it is set.
import { useEffect } from 'react';
import { useCommands, usePlace, useStudio } from '../app/context.tsx';
import { useConfig } from '../app/data.tsx';
import { MainHeader } from '../app/MainHeader.tsx';
import { formatPlace } from '../app/place.ts';
import { Badge } from '../ui/Badge.tsx';
import { EmptyState } from '../ui/EmptyState.tsx';
import { GaugeIcon } from '../ui/icons.tsx';
import { Agents } from './Agents.tsx';
import { AllThreads } from './AllThreads.tsx';
import './Operate.css';
import { Overview } from './Overview.tsx';
import { firstSection, sectionsFor } from './sections.ts';
import { Settings } from './Settings.tsx';

function Section({ name }: { name: string }) {
  switch (name) {
    case 'overview': return <Overview />;
    case 'agents': return <Agents />;
    case 'threads': return <AllThreads />;
    case 'settings': return <Settings />;
    default: return (
      <EmptyState icon={<GaugeIcon />} title="Nothing is at this address" actions={<a className="button" href={formatPlace({ page: 'operate', section: 'overview' })}>Overview</a>}>
        Operate has no part that is called “{name}”.
      </EmptyState>
    );
  }
}

export default function Operate() {
  const place = usePlace();
  const { router } = useStudio();
  const config = useConfig();
  const sections = sectionsFor(config);
  const section = place.section ?? firstSection(config);
  const title = sections.find(([name]) => name === section)?.[1] ?? 'Operate';
  useEffect(() => {
    document.title = `${title} · Holdfast`;
  }, [title]);
  // In the order of the row: [ and ] go through it, as through everything that is in a row.
  const go = (by: number) => {
    const at = sections.findIndex(([name]) => name === section);
    router.go({ page: 'operate', section: sections[(at + by + sections.length) % sections.length]?.[0] });
  };
  useCommands([
    { id: 'operate.next', title: 'Next part', group: 'Operate', keys: ']', run: () => go(1) },
    { id: 'operate.previous', title: 'Previous part', group: 'Operate', keys: '[', run: () => go(-1) },
  ]);
  return (
    <>
      <MainHeader title="Operate">{config.demo && <Badge tone="info" title="The default agent's model is scripted">demo model</Badge>}</MainHeader>
      <nav className="operate-nav" aria-label="Parts of the server">
        {sections.map(([name, text]) => <a key={name} className="operate-tab" href={formatPlace({ page: 'operate', section: name })} aria-current={name === section ? 'page' : undefined}>{text}</a>)}
      </nav>
      <Section name={section} />
    </>
  );
}
