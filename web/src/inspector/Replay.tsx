// Replays a thread from its log: every view is drawn as it was after each record. Nothing is
// executed, and nothing is asked of the server.
import { useEffect, useMemo, useRef, useState } from 'react';
import { useAnnounce, useCommands, usePlace, useStudio } from '../app/context.tsx';
import { useLog } from '../log/hooks.tsx';
import type { Log } from '../log/record.ts';
import { Button, IconButton } from '../ui/Button.tsx';
import { ChevronLeftIcon, ChevronRightIcon, PauseIcon, PlayIcon } from '../ui/icons.tsx';
import { Segments } from '../ui/Segments.tsx';
import { duration } from '../ui/time.ts';
import { usePosition } from './position.ts';
import { positionAt, schedule } from './schedule.ts';

export type Speed = '1' | '4' | 'max';

const speeds: readonly (readonly [Speed, string])[] = [['1', '1×'], ['4', '4×'], ['max', 'Max']];

/** As quick as it can be seen: so many frames for the rest of the log. */
const frames = 90;

/** How long after the last move the address says where one is, in milliseconds. */
const rest = 250;

/** The first record of a run, as a position before it. */
function startOf(log: Log, run: string | undefined): number {
  const wanted = run ?? log.at(log.length - 1)?.runId;
  for (let i = 0; i < log.length; i++) {
    const record = log.at(i);
    if (record?.runId === wanted && record?.number !== 0) return i + 1;
  }
  return 1;
}

/** Plays on from a position until the end, or until it is stopped. */
function usePlayer(log: Log, speed: Speed, onEnd: () => void) {
  const { playback } = useStudio();
  const [playing, setPlaying] = useState(false);
  const times = useMemo(() => (playing ? schedule(log) : undefined), [playing, log]);
  const ended = useRef(onEnd);
  useEffect(() => {
    ended.current = onEnd;
  });
  useEffect(() => {
    if (times === undefined) return undefined;
    let frame = 0;
    let last: number | undefined;
    let time = times.times[Math.max(0, (playback.get() ?? 1) - 1)] ?? 0;
    const step = Math.max(1, Math.ceil((log.length - (playback.get() ?? 0)) / frames));
    const draw = (now: number) => {
      const passed = last === undefined ? 0 : now - last;
      last = now;
      const at = playback.get() ?? 0;
      time += passed * Number(speed === 'max' ? 0 : speed);
      const next = Math.min(log.length, speed === 'max' ? at + step : Math.max(at, positionAt(times, time)));
      playback.set(next);
      if (next < log.length) frame = requestAnimationFrame(draw);
      else ended.current();
    };
    frame = requestAnimationFrame(draw);
    return () => cancelAnimationFrame(frame);
  }, [times, speed, log, playback]);
  return { playing, setPlaying };
}

export function Replay() {
  const log = useLog();
  const { playback } = useStudio();
  const { run } = usePlace();
  const announce = useAnnounce();
  const { position, now, go } = usePosition(log);
  const [speed, setSpeed] = useState<Speed>('1');
  const player = usePlayer(log, speed, () => {
    player.setPlaying(false);
    go(undefined);
    announce('The replay has ended.');
  });
  const { playing, setPlaying } = player;
  useEffect(() => () => playback.set(undefined), [playback]);
  const resting = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(resting.current), []);
  const move = (at: number) => {
    setPlaying(false);
    playback.set(at);
    clearTimeout(resting.current);
    resting.current = setTimeout(() => go(at >= log.length ? undefined : at), rest);
  };
  /** Goes where somebody wants to be, wherever it was going. */
  const leave = (to: number | undefined) => {
    clearTimeout(resting.current);
    setPlaying(false);
    go(to);
  };
  const play = () => {
    clearTimeout(resting.current);
    playback.set(now || position >= log.length ? startOf(log, run) : position);
    setPlaying(true);
    announce('Replaying from the log. Nothing is executed.');
  };
  const pause = () => leave(playback.get());
  const stop = (at: number) => leave(Math.max(1, Math.min(log.length, at)));
  useCommands([
    { id: 'replay.play', title: playing ? 'Pause the replay' : 'Replay from the log', group: 'Replay', keys: 'p', words: 'play time travel', when: () => log.length > 0, run: () => (playing ? pause() : play()) },
    { id: 'replay.back', title: 'One record back', group: 'Replay', keys: ',', when: () => position > 1, run: () => stop(position - 1) },
    { id: 'replay.on', title: 'One record on', group: 'Replay', keys: '.', when: () => position < log.length, run: () => stop(position + 1) },
    { id: 'replay.now', title: 'Back to now', group: 'Replay', words: 'end', when: () => !now, run: () => leave(undefined) },
  ]);
  const record = log.at(Math.max(0, position - 1));
  const where = record && record.number > 0 ? `#${record.number.toLocaleString('en')}` : '–';
  const total = log.at(log.length - 1)?.number ?? log.length;
  return (
    <div className="inspector-replay" role="group" aria-label="Replay">
      <IconButton size="small" label={playing ? 'Pause' : 'Replay from the log'} keys="p" disabled={log.length === 0} onClick={playing ? pause : play}>{playing ? <PauseIcon /> : <PlayIcon />}</IconButton>
      <IconButton size="small" label="One record back" keys="," disabled={position <= 1} onClick={() => stop(position - 1)}><ChevronLeftIcon /></IconButton>
      <IconButton size="small" label="One record on" keys="." disabled={position >= log.length} onClick={() => stop(position + 1)}><ChevronRightIcon /></IconButton>
      <Scrubber log={log} position={position} onMove={move} />
      <span className="inspector-replay-at num" title={`Record ${where} of ${total.toLocaleString('en')}`}>{now ? 'Now' : where}</span>
      {!now && <Button size="small" onClick={() => leave(undefined)}>Now</Button>}
      <Segments label="Speed" value={speed} options={speeds} onChange={setSpeed} />
    </div>
  );
}

function Scrubber({ log, position, onMove }: { log: Log; position: number; onMove: (position: number) => void }) {
  const record = log.at(position - 1);
  const [first, at] = [log.slice(0, 50).find((each) => each.at !== undefined)?.at, record?.at];
  return (
    <input
      type="range" className="inspector-scrubber" aria-label="Position in the log" min={1} max={Math.max(1, log.length)} disabled={log.length === 0} value={Math.max(1, position)}
      aria-valuetext={`Record ${record?.number ?? 0}, ${record?.event.type ?? ''}${first !== undefined && at !== undefined ? `, ${duration(at - first)} after the first` : ''}`}
      onChange={(e) => onMove(Number(e.target.value))}
    />
  );
}
