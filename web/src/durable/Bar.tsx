// The parts between a conversation and its composer, and over it: the strip of checkpoints,
// and the banner of a look at the past.
import { useQuery } from '@tanstack/react-query';
import { useCallback } from 'react';
import { usePlaceLink } from '../app/context.tsx';
import { useQueries } from '../app/data.tsx';
import { useSides } from '../app/sides.tsx';
import { useView } from '../log/hooks.tsx';
import type { View } from '../log/view.ts';
import { numberOf } from '../log/record.ts';
import { Button, IconButton } from '../ui/Button.tsx';
import { failureOf } from '../ui/ErrorCard.tsx';
import { BranchIcon, EditIcon, MoreIcon, PinIcon, RewindIcon, ToolIcon, WarningIcon } from '../ui/icons.tsx';
import { Menu, MenuItem, MenuSeparator } from '../ui/Menu.tsx';
import { Popover } from '../ui/Popover.tsx';
import { AtPositionBanner } from './AtPosition.tsx';
import { wayOf } from './graph.ts';
import { isLeft, useHistory, whereOf } from './History.tsx';
import { lookPart, useLook } from './look.ts';
import { Strip } from './Strip.tsx';
import { Work, workLine } from './Work.tsx';
import { titleOf } from './words.ts';

/** The reasons to show nothing here: there is no history, no thread, or no server. */
const quiet = new Set(['history_not_kept', 'not_found', 'unreachable', 'unauthorized']);

const stateOf = (view: View): unknown => view.state;

/** Calls that are in no checkpoint yet, behind a line that counts them. */
export function WorkNow({ thread }: { thread: string }) {
  const { running } = useHistory();
  const open = useView(useCallback((view: View) => view.items.some((item) => item.kind === 'call' && item.open) || view.interrupts.length > 0 || view.outside.length > 0, []));
  const enabled = thread !== '' && (running || open);
  const { data } = useQuery({ ...useQueries().work(thread), enabled, refetchInterval: running ? 1000 : 5000 });
  const line = workLine(data);
  // The last news of a run that has ended are in a checkpoint by now.
  if (!enabled || !data || !line) return null;
  return (
    <Popover align="end" title="Not in a checkpoint yet" trigger={<Button size="small" kind="quiet" icon={<ToolIcon />} className="num">{line}</Button>}>
      <div className="durable-work-popover"><Work work={data} /></div>
    </Popover>
  );
}

/** The strip of the thread's checkpoints, with what one can do where the thread stands. */
export function CheckpointStrip({ thread }: { thread: string }) {
  const { list, graph, at, running, readOnly, error, look, mark, edit, fork } = useHistory();
  const state = useView(stateOf);
  const link = usePlaceLink();
  if (list.length === 0) {
    // With retention "latest" there is no history, and that is said where one looks for it.
    const failure = error === null || error === undefined ? undefined : failureOf(error);
    return failure && !quiet.has(failure.code ?? '') ? <p className="durable-strip-error" role="note"><WarningIcon /> The checkpoints cannot be shown: {failure.message}</p> : null;
  }
  const newest = wayOf(graph).at(-1)?.checkpoint;
  return (
    <Strip graph={graph} at={at} live={running} hrefOf={(id) => link(lookPart(id))} nowHref={link({ at: undefined, more: undefined })} onLook={look}>
      <WorkNow thread={thread} />
      {!readOnly && at === undefined && newest && (
        <Menu align="end" trigger={<IconButton size="small" label="From where the thread stands"><MoreIcon /></IconButton>}>
          <MenuItem icon={<BranchIcon />} onSelect={() => fork(newest)}>Fork from here</MenuItem>
          <MenuSeparator />
          <MenuItem icon={<PinIcon />} disabled={running} onSelect={mark}>Mark this place…</MenuItem>
          <MenuItem icon={<EditIcon />} disabled={running} onSelect={() => edit({ state, where: 'now' })}>Edit the shared state…</MenuItem>
        </Menu>
      )}
    </Strip>
  );
}

/** Says that one looks at the past, where, and leads back. */
export function AtPosition() {
  const seen = useLook();
  const { graph, at, look, step, rewind, fork, edit, readOnly, running } = useHistory();
  const { show, narrow } = useSides();
  if (!seen) return null;
  if (seen.error) {
    return (
      <AtPositionBanner what="a checkpoint that cannot be shown" onNow={() => look(undefined)}>
        <span className="small soft">{failureOf(seen.error).message}</span>
      </AtPositionBanner>
    );
  }
  if (seen.kind === 'record') return <AtPositionBanner what={`record ${numberOf(seen.id).toLocaleString('en')}`} title="what came after it is not shown" onNow={() => look(undefined)} />;
  const checkpoint = graph.dots.find((dot) => dot.checkpoint.id === at)?.checkpoint ?? seen.detail;
  if (!checkpoint) return <AtPositionBanner what="a checkpoint" onNow={() => look(undefined)} />;
  const where = whereOf(graph, checkpoint);
  const goes = (by: -1 | 1) => {
    const to = step(by);
    return to === undefined ? undefined : () => look(to?.id);
  };
  const { detail } = seen;
  return (
    <AtPositionBanner what={where} title={`${titleOf(checkpoint)}${isLeft(graph, checkpoint) ? ', left by going back' : ''}`} at={checkpoint.createdAt} onPrevious={goes(-1)} onNext={goes(1)} onNow={() => look(undefined)}>
      {!readOnly && (
        <>
          <Button size="small" className="durable-banner-wide" icon={<BranchIcon />} onClick={() => fork(checkpoint)}>Fork from here</Button>
          <Button size="small" className="durable-banner-wide" icon={<RewindIcon />} disabled={running} title={running ? 'Stop the run first: a thread that runs cannot go back.' : undefined} onClick={() => rewind(checkpoint)}>Rewind…</Button>
          <Menu align="end" trigger={<IconButton size="small" label="More from here"><MoreIcon /></IconButton>}>
            <MenuItem icon={<BranchIcon />} onSelect={() => fork(checkpoint)}>Fork from here</MenuItem>
            <MenuItem icon={<RewindIcon />} disabled={running} onSelect={() => rewind(checkpoint)}>Rewind…</MenuItem>
            <MenuItem icon={<EditIcon />} disabled={!detail} onSelect={() => { if (detail) edit({ state: detail.state, where, checkpoint }); }}>Edit the state, and fork…</MenuItem>
            {narrow && <MenuItem onSelect={() => show('inspector')}>Show the state</MenuItem>}
          </Menu>
        </>
      )}
    </AtPositionBanner>
  );
}
