// The page: three regions, what lies over them, and the commands that are always there.
import { CSPProvider } from '@base-ui/react/csp-provider';
import { Suspense, useEffect, type ReactNode } from 'react';
import { HistoryProvider } from '../durable/History.tsx';
import { KillProvider } from '../durable/Kill.tsx';
import { Conversation } from '../conversation/Conversation.tsx';
import { onlyTenants } from '../operate/sections.ts';
import { Questions, useOpenQuestions } from '../threads/Questions.tsx';
import type { Server } from '../api/request.ts';
import { Threads } from '../threads/Threads.tsx';
import { Dialog } from '../ui/Dialog.tsx';
import { later } from '../ui/later.tsx';
import { PanelBoundary } from '../ui/PanelBoundary.tsx';
import { Skeleton } from '../ui/Spinner.tsx';
import { TooltipProvider } from '../ui/Tooltip.tsx';
import { DataProvider, ThreadScope, useConfig, useThreadId } from './data.tsx';
import { StudioProvider, useCommands, usePlace, usePreferences, useStudio, type Studio } from './context.tsx';
import { Help } from './Help.tsx';
import { KeyDialog } from './KeyDialog.tsx';
import { LiveFooter } from './LiveFooter.tsx';
import { LiveRegions } from './LiveRegions.tsx';
import { OtherUser } from './OtherUser.tsx';
import { Palette } from './Palette.tsx';
import { MainHeader } from './MainHeader.tsx';
import type { Place } from './place.ts';
import { applyPreferences } from './preferences.ts';
import { EmptyState } from '../ui/EmptyState.tsx';
import { useStore } from './store.ts';
import { Regions } from './Regions.tsx';
import { Shortcuts } from './Shortcuts.tsx';
import { TabSigns } from './TabSigns.tsx';
import { SideNav } from './SideNav.tsx';
import { SidesProvider, useSides } from './sides.tsx';
import { Toaster } from './Toaster.tsx';

const Inspector = later(() => import('../inspector/Inspector.tsx'));
const Operate = later(() => import('../operate/Operate.tsx'));
const ImportDialog = later(() => import('../operate/ImportDialog.tsx'));

const waiting = <div className="panel-failed"><Skeleton lines={6} /></div>;

function GlobalCommands() {
  const { router, layer, keys } = useStudio();
  const [preferences, prefer] = usePreferences();
  const { toggle, show } = useSides();
  useCommands([
    { id: 'app.palette', title: 'All commands', group: 'Page', keys: 'Mod+K', hidden: true, run: () => layer.set((now) => (now === 'palette' ? 'none' : 'palette')) },
    { id: 'app.help', title: 'Keyboard', group: 'Page', keys: '?', words: 'help shortcuts keys', run: () => layer.set('help') },
    { id: 'app.new', title: 'New thread', group: 'Go to', keys: 'n', words: 'chat', run: () => router.go({ page: 'thread' }) },
    { id: 'app.questions', title: 'Questions', group: 'Go to', words: 'approvals interrupts', run: () => router.go({ page: 'questions' }) },
    { id: 'app.agents', title: 'Agents and tools', group: 'Go to', words: 'operate models middleware run tool by hand', run: () => router.go({ page: 'operate', section: 'agents' }) },
    { id: 'app.everybody', title: 'Threads of all users', group: 'Go to', words: 'operate operator everybody', run: () => router.go({ page: 'operate', section: 'threads' }) },
    { id: 'app.import', title: 'Import a thread', group: 'Thread', words: 'file upload', run: () => layer.set('import') },
    { id: 'app.key', title: 'Use another key', group: 'Page', words: 'login api token sign in', when: () => keys.current() !== '', run: () => void keys.another().then(() => window.location.reload(), () => {}) },
    { id: 'app.threads', title: 'Show or hide threads', group: 'Page', keys: 't', run: () => toggle('threads') },
    { id: 'app.inspector', title: 'Show or hide the inspector', group: 'Page', keys: 'i', run: () => toggle('inspector') },
    { id: 'app.chat', title: 'Layout: chat', group: 'Page', words: 'preset hide inspector', run: () => prefer({ inspector: false, threads: true }) },
    { id: 'app.inspect', title: 'Layout: inspect', group: 'Page', words: 'preset show inspector', run: () => { prefer({ threads: true }); show('inspector'); } },
    { id: 'app.light', title: 'Colours: light', group: 'Page', words: 'theme', when: () => preferences.theme !== 'light', run: () => prefer({ theme: 'light' }) },
    { id: 'app.dark', title: 'Colours: dark', group: 'Page', words: 'theme', when: () => preferences.theme !== 'dark', run: () => prefer({ theme: 'dark' }) },
    { id: 'app.system', title: 'Colours: as the system', group: 'Page', words: 'theme', when: () => preferences.theme !== 'system', run: () => prefer({ theme: 'system' }) },
    { id: 'app.density', title: 'Density: comfortable or compact', group: 'Page', run: () => prefer({ density: preferences.density === 'compact' ? 'comfortable' : 'compact' }) },
  ]);
  useEffect(() => applyPreferences(document.documentElement, preferences), [preferences]);
  return null;
}

/** The commands for what an operator of the tenant alone is not shown. */
function ServerCommands() {
  const { router } = useStudio();
  const config = useConfig();
  const when = () => !onlyTenants(config);
  useCommands([
    { id: 'app.overview', title: 'Overview', group: 'Go to', keys: 'o', words: 'operate metrics figures latency errors', when, run: () => router.go({ page: 'operate', section: 'overview' }) },
    { id: 'app.settings', title: 'Settings of the server', group: 'Go to', words: 'operate configuration flags', when, run: () => router.go({ page: 'operate', section: 'settings' }) },
  ]);
  return null;
}

function Main({ place }: { place: Place }) {
  const thread = useThreadId();
  if (place.page === 'questions') return <Questions />;
  if (place.page === 'lost') return <><MainHeader title="Not found" /><EmptyState title="Nothing is at this address" actions={<a className="button" href="#/">New thread</a>}>The page has no <code>#/{place.section}</code>. Perhaps a part of the address is missing.</EmptyState></>;
  if (place.page === 'operate') return <Suspense fallback={waiting}><Operate /></Suspense>;
  if (place.user !== undefined && place.thread === undefined) return <><MainHeader title={`Threads of ${place.user}`} /><EmptyState title={`Threads of ${place.user}`}>The list beside this has them. The thread that you choose is shown here, as it is and as it grows.</EmptyState></>;
  // The open, refused and scrolled things are of one thread. A new one keeps it when its first message gives it an address.
  return <Conversation key={thread} />;
}

function Import() {
  const { layer } = useStudio();
  if (useStore(layer) !== 'import') return null;
  const inDialog = (message: ReactNode) => <Dialog open onClose={() => layer.set('none')} title="Import a thread">{message}</Dialog>;
  return <PanelBoundary name="The dialog" frame={inDialog}><Suspense fallback={null}><ImportDialog /></Suspense></PanelBoundary>;
}

const of = (place: Place) => `${place.page} ${place.thread ?? ''} ${place.section ?? ''}`;

function Page() {
  const place = usePlace();
  const questions = useOpenQuestions();
  return (
    <>
      <TabSigns questions={questions} />
      <Regions
        threads={<SideNav questions={questions}><PanelBoundary name="The list of threads" of={of(place)}><Threads /></PanelBoundary></SideNav>}
        main={<><OtherUser /><PanelBoundary name="This part of the page" of={of(place)}><Main place={place} /></PanelBoundary></>}
        inspector={place.page === 'thread' && place.thread
          ? <PanelBoundary name="The inspector" of={of(place)}><Suspense fallback={waiting}><Inspector /></Suspense></PanelBoundary>
          : null}
        footer={<LiveFooter />}
      />
    </>
  );
}

export function App({ studio, server }: { studio: Studio; server?: Server }) {
  return (
    // The server's policy allows no style elements, and none are needed.
    <CSPProvider disableStyleElements>
      <StudioProvider studio={studio}>
        <TooltipProvider delay={500}>
          <SidesProvider>
            <a className="skip-link" href="#region-main" onClick={(e) => { e.preventDefault(); document.getElementById('region-main')?.focus(); }}>Skip to the conversation</a>
            <DataProvider server={server}>
              <ThreadScope><HistoryProvider><KillProvider storage={studio.storage}><Page /></KillProvider></HistoryProvider></ThreadScope>
              <Import />
              <ServerCommands />
            </DataProvider>
            <GlobalCommands />
            <Shortcuts />
            <Palette />
            <Help />
            <KeyDialog keys={studio.keys} />
            <Toaster />
            <LiveRegions />
          </SidesProvider>
        </TooltipProvider>
      </StudioProvider>
    </CSPProvider>
  );
}
