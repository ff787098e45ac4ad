// The interface of a tool (MCP Apps): a page of somebody else's, in a frame of an opaque origin with a policy of its
// own, which the server makes from what the page asks for and what its operator allows.
import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { threadPath } from '../../api/actions.ts';
import { useServer } from '../../app/data.tsx';
import { fields, text, type Fields } from '../../log/json.ts';
import type { ActivityItem } from '../../log/view.ts';
import { Button } from '../../ui/Button.tsx';
import { ErrorCard, failureOf } from '../../ui/ErrorCard.tsx';
import { JsonTree } from '../../ui/JsonTree.tsx';
import { useRows } from '../context.ts';
import { frameAddress } from './appAddress.ts';
import { hostOf } from './appHost.ts';

/** How high a frame is at first, and at most. */
const [low, high] = [160, 800];

/** What an interface wants, for a person to decide. */
interface Wish {
  readonly words: string;
  readonly text: string;
  readonly yes: string;
  readonly decide: (agreed: boolean) => void;
}

const isDark = (): boolean => getComputedStyle(document.documentElement).colorScheme.includes('dark');

function Frame({ item, app }: { item: ActivityItem; app: Fields }) {
  const server = useServer();
  const { thread, readOnly, say } = useRows();
  const frame = useRef<HTMLIFrameElement>(null);
  const [height, setHeight] = useState(low);
  const [wish, setWish] = useState<Wish>();
  const [gone, setGone] = useState(false);
  // The frame keeps its page, and its host: an interface that could have another one begin would get its page twice, the
  // second time where it may reach what it likes.
  const [first] = useState({ app, content: fields(item.content) });
  const path = `${threadPath(thread)}/apps/${encodeURIComponent(item.id)}/call`;
  const now = useRef({ path, readOnly, say, server });
  useEffect(() => {
    now.current = { path, readOnly, say, server };
  });

  useEffect(() => {
    const { app, content } = first;
    let asks = false;
    // One thing at a time, so that nothing else is agreed to than what a person has read.
    const ask = (words: string, what: string, yes: string, then: () => void) => new Promise<boolean>((resolve) => {
      if (asks) return resolve(false);
      asks = true;
      setWish({ words, text: what, yes, decide: (agreed) => { asks = false; setWish(undefined); if (agreed) then(); resolve(agreed); } });
    });
    const shown = frame.current!;
    const post = (message: Fields) => shown.contentWindow?.postMessage(message, '*'); // its origin is none
    const take = hostOf({
      post, html: text(app['html']), csp: fields(app['csp']),
      tool: text(content['toolName']), input: content['toolInput'], result: content['result'],
      context: { theme: isDark() ? 'dark' : 'light', locale: navigator.language, timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone, containerDimensions: { width: shown.clientWidth, maxHeight: high } },
      resize: (wanted) => setHeight(Math.min(Math.max(wanted, 40), high)),
      open: (url) => ask('wants to open', url, 'Open', () => window.open(url, '_blank', 'noopener,noreferrer')),
      say: (words) => (now.current.readOnly ? Promise.resolve(false) : ask('wants to say', words, 'Put it into your message', () => now.current.say(words))),
      call: (name, input) => (now.current.readOnly ? Promise.reject(new Error('This is only looked at.')) : now.current.server.json({ method: 'POST', path: now.current.path, body: { name, arguments: input } })),
      gone: () => setGone(true),
    });
    const listen = (event: MessageEvent) => {
      if (event.source === shown.contentWindow) void take(event.data);
    };
    window.addEventListener('message', listen);
    return () => {
      post({ jsonrpc: '2.0', id: 'teardown', method: 'ui/resource-teardown', params: { reason: 'It is no longer shown.' } });
      window.removeEventListener('message', listen);
    };
  }, [first]);

  if (gone) return <p className="conversation-note">The interface has left its page, and is not shown any more.</p>;
  return (
    <>
      <iframe ref={frame} src={frameAddress(server.base, fields(first.app['csp']))} sandbox="allow-scripts" referrerPolicy="no-referrer" title={`Interface of ${text(first.content['toolName'])}`} style={{ width: '100%', height, border: 0, display: 'block' }} />
      {wish && (
        <div role="group" aria-label="What the interface wants">
          <p>The interface {wish.words}: <code>{wish.text}</code></p>
          <Button size="small" onClick={() => wish.decide(true)}>{wish.yes}</Button> <Button size="small" kind="quiet" onClick={() => wish.decide(false)}>No</Button>
        </div>
      )}
    </>
  );
}

export function AppFrame({ item }: { item: ActivityItem }) {
  const server = useServer();
  const { thread } = useRows();
  const content = fields(item.content);
  const { data, error, refetch } = useQuery({
    queryKey: ['app', thread, item.id],
    queryFn: ({ signal }) => server.json<Fields>({ method: 'GET', path: `${threadPath(thread)}/apps/${encodeURIComponent(item.id)}` }, signal),
    staleTime: Infinity, retry: false,
  });
  const name = `Interface of ${text(content['toolName']) || 'a tool'}`;
  return (
    <div role="group" className="conversation-activity" aria-label={name}>
      {data && <Frame item={item} app={data} />}
      {error && (
        <>
          <ErrorCard title="The interface cannot be shown" error={failureOf(error)} onRetry={() => void refetch()} />
          <JsonTree value={content['result']} label={name} depth={2} />
        </>
      )}
    </div>
  );
}
