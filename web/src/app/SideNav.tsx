// The left region: what one can go to, the threads, and how the page looks.
import type { ReactNode } from 'react';
import { IconButton } from '../ui/Button.tsx';
import { CommandIcon, GaugeIcon, PanelLeftIcon, PlusIcon, QuestionIcon, SettingsIcon } from '../ui/icons.tsx';
import { Menu, MenuCheck, MenuChoice, MenuItem, MenuSeparator } from '../ui/Menu.tsx';
import { usePlace, usePreferences, useStudio } from './context.tsx';
import { formatPlace, type Place } from './place.ts';
import { useSides } from './sides.tsx';
import './SideNav.css';

function NavLink({ to, current, icon, badge, children }: { to: Place; current: boolean; icon: ReactNode; badge?: ReactNode; children: ReactNode }) {
  return (
    <li>
      <a className="nav-link" href={formatPlace(to)} aria-current={current ? 'page' : undefined}>
        {icon}
        <span className="grow">{children}</span>{' '}
        {badge}
      </a>
    </li>
  );
}

function ViewMenu() {
  const [preferences, prefer] = usePreferences();
  const { layer } = useStudio();
  return (
    <Menu trigger={<IconButton label="View"><SettingsIcon /></IconButton>}>
      <MenuChoice label="Colours" value={preferences.theme} options={[['system', 'As the system'], ['light', 'Light'], ['dark', 'Dark']]} onChange={(theme) => prefer({ theme })} />
      <MenuSeparator />
      <MenuChoice label="Density" value={preferences.density} options={[['comfortable', 'Comfortable'], ['compact', 'Compact']]} onChange={(density) => prefer({ density })} />
      <MenuSeparator />
      <MenuCheck checked={preferences.motion === 'reduced'} onChange={(reduced) => prefer({ motion: reduced ? 'reduced' : 'system' })}>Less motion</MenuCheck>
      <MenuCheck checked={!preferences.streaming} onChange={(whole) => prefer({ streaming: !whole })}>Show answers when whole</MenuCheck>
      <MenuCheck checked={preferences.keys} onChange={(keys) => prefer({ keys })}>Single-letter keys</MenuCheck>
      <MenuSeparator />
      <MenuItem keys="?" onSelect={() => layer.set('help')}>Keyboard</MenuItem>
    </Menu>
  );
}

export function SideNav({ questions, children }: { questions: string; children: ReactNode }) {
  const place = usePlace();
  const { toggle } = useSides();
  const { layer } = useStudio();
  return (
    <>
      <div className="brand">
        <a className="brand-link" href="#/"><img src="./ui/favicon.svg" alt="" width="20" height="20" />Holdfast</a>
        <IconButton label="Commands" keys="Mod+K" onClick={() => layer.set('palette')}><CommandIcon /></IconButton>
        <IconButton label="Hide threads" onClick={() => toggle('threads')}><PanelLeftIcon /></IconButton>
      </div>
      <ul className="nav-links">
        <NavLink to={{ page: 'thread' }} current={place.page === 'thread' && !place.thread && !place.user} icon={<PlusIcon />}>New thread</NavLink>
        <NavLink to={{ page: 'questions' }} current={place.page === 'questions'} icon={<QuestionIcon />} badge={questions && <span className="nav-badge num">{questions} <span className="sr">open</span></span>}>Questions</NavLink>
        <NavLink to={{ page: 'operate' }} current={place.page === 'operate'} icon={<GaugeIcon />}>Operate</NavLink>
      </ul>
      <div className="nav-slot">{children}</div>
      <div className="nav-foot"><ViewMenu /></div>
    </>
  );
}
