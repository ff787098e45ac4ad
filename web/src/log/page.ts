// The parts of a browser that a thread's store needs.

import type { Surroundings } from './store';

const channelName = 'holdfast';

/** How long a frame may take while the page is hidden: nothing is painted then. */
const hiddenFrame = 250;

/** Other tabs of this browser. Without BroadcastChannel there are none: they hear of it a little later. */
function tabsOf(window: Window & typeof globalThis): Surroundings['tabs'] {
  if (typeof window.BroadcastChannel !== 'function') return { tell: () => {}, hear: () => () => {} };
  const channel = new window.BroadcastChannel(channelName);
  return {
    tell: (thread) => channel.postMessage({ thread }),
    hear: (told) => {
      const listen = ({ data }: MessageEvent<{ thread?: unknown }>): void => {
        if (typeof data?.thread === 'string') told(data.thread);
      };
      channel.addEventListener('message', listen);
      return () => channel.removeEventListener('message', listen);
    },
  };
}

/** An id that nobody else makes; pages without TLS have no randomUUID. */
export function uuid(crypto: Crypto): string {
  if (typeof crypto.randomUUID === 'function') return crypto.randomUUID();
  const bytes = [...crypto.getRandomValues(new Uint8Array(16))];
  const hex = bytes.map((byte, i) => (i === 6 ? (byte & 15) | 64 : i === 8 ? (byte & 63) | 128 : byte).toString(16).padStart(2, '0')).join('');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** The page in its window. It comes back at once when the network or the person does. */
export function surroundings(window: Window & typeof globalThis, storage: Surroundings['storage']): Surroundings {
  const { document } = window;
  return {
    frame: (call) => {
      if (document.visibilityState === 'hidden') window.setTimeout(call, hiddenFrame);
      else window.requestAnimationFrame(() => call());
    },
    wait: (ms, signal) => new Promise((done) => {
      const finish = (whole: boolean) => (): void => {
        window.clearTimeout(timer);
        signal.removeEventListener('abort', early);
        window.removeEventListener('online', early);
        document.removeEventListener('visibilitychange', shown);
        done(whole);
      };
      const early = finish(false);
      const shown = (): void => {
        if (document.visibilityState === 'visible') early();
      };
      const timer = window.setTimeout(finish(true), ms);
      signal.addEventListener('abort', early);
      window.addEventListener('online', early);
      document.addEventListener('visibilitychange', shown);
      if (signal.aborted) early();
    }),
    visible: () => document.visibilityState !== 'hidden',
    storage,
    uuid: () => uuid(window.crypto),
    tabs: tabsOf(window),
  };
}
