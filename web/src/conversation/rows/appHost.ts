// The host's side of MCP Apps (SEP-1865): how the page answers the interface of a tool, which is in a frame. It
// knows no frame and no server, only what it is given.
import { fields, number, text, type Fields } from '../../log/json.ts';

/** What an interface is told and given. */
export interface Host {
  post: (message: Fields) => void;
  /** The page of the interface, once its frame is ready; and what the frame may reach. */
  readonly html: string;
  readonly csp: Fields;
  /** The call that it shows. */
  readonly tool: string;
  readonly input: unknown;
  readonly result: unknown;
  readonly context: Fields;
  /** It wants to be so high. */
  resize: (height: number) => void;
  /** It wants to open an address, or to say something; a person decides. */
  open: (url: string) => Promise<boolean>;
  say: (text: string) => Promise<boolean>;
  /** It calls a tool of its server. */
  call: (name: string, input: unknown) => Promise<unknown>;
  /** It has gone where it may not be. */
  gone: () => void;
}

const version = '2026-01-26';

/** The error of a request that is refused, as JSON-RPC has it. */
class Refused extends Error {
  readonly code: number;
  constructor(message: string, code = -32000) {
    super(message);
    this.code = code;
  }
}

const unless = (agreed: boolean, why: string): Fields => {
  if (!agreed) throw new Refused(why);
  return {};
};

/** What a message to the conversation says. */
function said(params: Fields): string {
  const content = params['content'];
  const parts = Array.isArray(content) ? content : [content];
  const words = parts.map((part) => fields(part)).filter((part) => part['type'] === 'text').map((part) => text(part['text'])).join('\n').trim();
  if (params['role'] !== 'user' || words === '') throw new Refused('Invalid message format');
  return words;
}

/** Where a link may lead: to a page, and nowhere that runs something here. */
function link(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed || !['https:', 'http:', 'mailto:'].includes(parsed.protocol)) throw new Refused('Invalid URL');
  return parsed.href;
}

/** Answers the messages of one interface. The function takes each of them. */
export function hostOf(host: Host): (message: unknown) => Promise<void> {
  let begun = false;
  let shown = false;
  let calls: Promise<unknown> = Promise.resolve();
  const tell = (method: string, params: unknown) => host.post({ jsonrpc: '2.0', method, params });

  const requests: Record<string, (params: Fields) => unknown> = {
    'ui/initialize': () => ({
      protocolVersion: version,
      hostInfo: { name: 'Holdfast Studio', version: '1' },
      hostCapabilities: { openLinks: {}, serverTools: {}, logging: {}, sandbox: { csp: host.csp } },
      hostContext: { toolInfo: { tool: { name: host.tool, inputSchema: { type: 'object' } } }, displayMode: 'inline', availableDisplayModes: ['inline'], platform: 'web', ...host.context },
    }),
    ping: () => ({}),
    'ui/request-display-mode': () => ({ mode: 'inline' }),
    'ui/open-link': async (params) => unless(await host.open(link(text(params['url']))), 'Link opening denied by user'),
    'ui/message': async (params) => unless(await host.say(said(params)), 'Message sending denied'),
    // One after the other, so that no interface floods its server.
    'tools/call': (params) => (calls = calls.catch(() => {}).then(() => host.call(text(params['name']), params['arguments'] ?? {}))),
  };

  const notifications: Record<string, (params: Fields) => void> = {
    'ui/notifications/sandbox-proxy-ready': () => {
      // A frame that begins again has left the page of the interface.
      if (begun) return host.gone();
      begun = true;
      tell('ui/notifications/sandbox-resource-ready', { html: host.html });
    },
    'ui/notifications/initialized': () => {
      if (shown) return;
      shown = true;
      tell('ui/notifications/tool-input', { arguments: fields(host.input) });
      tell('ui/notifications/tool-result', host.result);
    },
    'ui/notifications/size-changed': (params) => {
      const height = number(params['height']);
      if (height !== undefined) host.resize(height);
    },
  };

  return async (message) => {
    const { jsonrpc, id, method, params } = fields(message);
    if (jsonrpc !== '2.0' || typeof method !== 'string') return;
    if (id === undefined) {
      if (Object.hasOwn(notifications, method)) notifications[method]!(fields(params));
      return;
    }
    try {
      if (!Object.hasOwn(requests, method)) throw new Refused(`There is no ${method} here.`, -32601);
      host.post({ jsonrpc, id, result: await requests[method]!(fields(params)) });
    } catch (error) {
      host.post({ jsonrpc, id, error: { code: error instanceof Refused ? error.code : -32000, message: error instanceof Error ? error.message : String(error) } });
    }
  };
}
