// Over the conversation: the title, the agent, how it stands, and what one can do with it.
import { useEffect, useState } from 'react';
import * as actions from '../api/actions.ts';
import type { Action } from '../api/request.ts';
import type { ThreadInfo } from '../api/types.ts';
import { useCommands, usePlace } from '../app/context.tsx';
import { useCopyCurl, useThreadId } from '../app/data.tsx';
import { MainHeader } from '../app/MainHeader.tsx';
import type { Item, Status } from '../log/view.ts';
import { Badge } from '../ui/Badge.tsx';
import { IconButton } from '../ui/Button.tsx';
import { DownloadIcon, EditIcon, EyeIcon, MoreIcon, TerminalIcon, TrashIcon } from '../ui/icons.tsx';
import { Menu, MenuItem, MenuSeparator } from '../ui/Menu.tsx';
import { useExport } from '../threads/transfer.ts';
import { useThreadActions } from '../threads/useThreadActions.ts';
import { brief } from './format.ts';
import { ThreadActions } from './slots.tsx';
import { Title } from './Title.tsx';

export interface ThreadHeaderProps {
  thread: ThreadInfo | undefined;
  items: readonly Item[];
  status: Status;
  busy: boolean;
  begun: boolean;
}

/** A thread's title: the server's, or before it has made one, the first words said in it. */
export function titleOf(thread: Pick<ThreadInfo, 'title'> | undefined, items: readonly Item[], begun: boolean): string {
  if (!begun) return 'New thread';
  const said = items.find((i) => i.kind === 'text' && i.role === 'user');
  return thread?.title || (said?.kind === 'text' ? brief(said.text, 80) : '') || 'Untitled thread';
}

/** The actions on a thread, as requests to show. */
function curls(id: string, thread: ThreadInfo, busy: boolean): readonly { name: string; action: Action }[] {
  return [
    { name: 'follow it', action: actions.follow(id) },
    { name: 'its messages', action: actions.messages(id) },
    { name: 'export it', action: actions.exportThread(id) },
    ...(busy ? [{ name: 'stop it', action: actions.cancel(id, thread.runId) }] : []),
    ...(thread.status === 'stopped' ? [{ name: 'continue it', action: actions.run(actions.runInput(id, 'run-1', {}), thread.agent) }] : []),
    { name: 'rename it', action: actions.describe(id, { title: thread.title ?? '' }) },
    { name: thread.hidden ? 'show it in the list' : 'hide it', action: actions.describe(id, { hidden: !thread.hidden }) },
    { name: 'delete it', action: actions.remove(id) },
  ];
}

export function ThreadHeader({ thread, items, status, busy, begun }: ThreadHeaderProps) {
  const id = useThreadId();
  const { user } = usePlace();
  const does = useThreadActions();
  const copy = useCopyCurl();
  const exportThread = useExport();
  const [editing, setEditing] = useState(false);
  const title = titleOf(thread, items, begun);
  const own = thread !== undefined && user === undefined;
  const sign = busy ? '● ' : status === 'waiting' ? '? ' : status === 'failed' ? '! ' : '';
  useEffect(() => {
    document.title = begun ? `${sign}${title} · Holdfast` : 'Holdfast';
  }, [begun, sign, title]);
  useCommands(own ? [
    { id: 'thread.rename', title: 'Rename this thread', group: 'Thread', run: () => setEditing(true) },
    { id: 'thread.hide', title: thread.hidden ? 'Show this thread in the list' : 'Hide this thread', group: 'Thread', run: () => does.hide(id, !thread.hidden) },
    { id: 'thread.delete', title: 'Delete this thread', group: 'Thread', run: () => does.remove(id, title) },
    { id: 'thread.export', title: 'Export this thread', group: 'Thread', words: 'download file save', run: () => exportThread(id, title) },
    ...curls(id, thread, busy).map(({ name, action }) => ({ id: `thread.curl.${name}`, title: `Copy as curl: ${name}`, group: 'Copy as curl', run: () => copy(action) })),
  ] : []);
  return (
    <MainHeader
      title={<Title title={title} editing={editing} onEditing={setEditing} onRename={own ? (next) => does.rename(id, next) : undefined} />} inspector={begun}
      actions={begun && (
        <>
          <ThreadActions thread={id} />
          {own && (
            <Menu align="end" trigger={<IconButton label="More"><MoreIcon /></IconButton>}>
              <MenuItem icon={<EditIcon />} onSelect={() => setEditing(true)}>Rename</MenuItem>
              <MenuItem icon={<EyeIcon />} onSelect={() => does.hide(id, !thread.hidden)}>{thread.hidden ? 'Show in the list' : 'Hide'}</MenuItem>
              <MenuItem icon={<DownloadIcon />} onSelect={() => exportThread(id, title)}>Export</MenuItem>
              <MenuSeparator />
              {/* The palette has them all. */}
              {curls(id, thread, busy).slice(0, 4).map(({ name, action }) => <MenuItem key={name} icon={<TerminalIcon />} onSelect={() => copy(action)}>Copy as curl: {name}</MenuItem>)}
              <MenuSeparator />
              <MenuItem icon={<TrashIcon />} danger onSelect={() => does.remove(id, title)}>Delete</MenuItem>
            </Menu>
          )}
        </>
      )}
    >
      {begun && thread && <span className="row conversation-of"><Badge title="The agent of this thread">{thread.agent}</Badge></span>}
      {thread?.hidden && <Badge>hidden</Badge>}
    </MainHeader>
  );
}
