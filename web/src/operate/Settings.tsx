// The server's settings, as it sees them, and where each value comes from.
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import * as actions from '../api/actions.ts';
import type { Setting } from '../api/types.ts';
import { useCommands, usePlace, useStudio } from '../app/context.tsx';
import { useCopyCurl, useQueries } from '../app/data.tsx';
import { Badge } from '../ui/Badge.tsx';
import { IconButton } from '../ui/Button.tsx';
import { CopyButton } from '../ui/CopyButton.tsx';
import { SearchIcon, TerminalIcon } from '../ui/icons.tsx';
import { Skeleton } from '../ui/Spinner.tsx';
import type { Tone } from '../ui/StatusDot.tsx';
import { plural } from '../ui/time.ts';
import { Unread } from './Denied.tsx';

const sources: Record<string, [text: string, tone: Tone]> = { flag: ['flag', 'active'], env: ['environment', 'info'], file: ['file', 'think'], default: ['default', 'neutral'] };

function fitting(settings: readonly Setting[], wanted: string, changed: boolean): readonly Setting[] {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  return settings.filter((s) => (!changed || s.source !== 'default') && words.every((w) => `${s.name} ${s.value} ${s.source} ${s.text ?? ''}`.toLowerCase().includes(w)));
}

function Row({ setting }: { setting: Setting }) {
  const [text, tone] = sources[setting.source] ?? [setting.source, 'neutral' as const];
  return (
    <tr data-source={setting.source}>
      <th scope="row"><code>{setting.name}</code>{setting.text && <p className="operate-setting-about">{setting.text}</p>}</th>
      <td className="operate-value">{setting.value === '' ? <span className="faint">not set</span> : <span className="row"><code className="grow">{setting.value}</code>{setting.value !== '[secret]' && <CopyButton text={setting.value} label={`Copy ${setting.name}`} />}</span>}</td>
      <td>{setting.source === 'default' ? <span className="faint">{text}</span> : <Badge tone={tone}>{text}</Badge>}</td>
    </tr>
  );
}

export function Settings() {
  const { more } = usePlace();
  const { router } = useStudio();
  const copy = useCopyCurl();
  const { data, error, isPending, refetch } = useQuery(useQueries().settings());
  const wanted = more?.['q'] ?? '';
  const changed = more?.['set'] === 'yes';
  const shown = useMemo(() => fitting(data?.settings ?? [], wanted, changed), [data, wanted, changed]);
  const change = (part: Record<string, string>) => router.change({ more: { ...more, ...part } }, { replace: true });
  useCommands([
    { id: 'settings.curl', title: 'Copy as curl: the settings', group: 'Operate', run: () => copy(actions.settings()) },
    { id: 'settings.set', title: changed ? 'List all settings' : 'List only what was set', group: 'Operate', run: () => change({ set: changed ? '' : 'yes' }) },
  ]);
  if (isPending) return <div className="operate-body" aria-busy="true"><Skeleton lines={8} /></div>;
  if (!data) return <Unread what="The list of settings" error={error} onRetry={() => void refetch()} />;
  return (
    <div className="operate-body">
      <div className="operate-inner">
        <div className="operate-bar">
          <label className="operate-search"><SearchIcon /><input type="search" aria-label="Search settings" placeholder="Search settings" value={wanted} onChange={(e) => change({ q: e.target.value })} /></label>
          <div className="operate-choice" role="group" aria-label="Which settings">
            <button type="button" aria-pressed={!changed} onClick={() => change({ set: '' })}>All</button>
            <button type="button" aria-pressed={changed} onClick={() => change({ set: 'yes' })}>Set</button>
          </div>
          <IconButton label="Copy as curl" onClick={() => copy(actions.settings())}><TerminalIcon /></IconButton>
        </div>
        <p className="sr" role="status">{plural(shown.length, 'setting')}</p>
        {shown.length === 0 ? <p className="operate-none">{wanted ? 'No setting matches.' : 'Everything is as by default.'}</p> : (
          <div className="operate-scroll" tabIndex={0} role="region" aria-label="Settings, as a table">
            <table className="operate-table operate-settings">
              <thead><tr><th scope="col">Setting</th><th scope="col">Value</th><th scope="col">From</th></tr></thead>
              <tbody>{shown.map((s) => <Row key={s.name} setting={s} />)}</tbody>
            </table>
          </div>
        )}
        <p className="faint small">Settings are changed where the server is started. Secrets are never shown.</p>
      </div>
    </div>
  );
}
