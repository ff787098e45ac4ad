// A page around a component, with a server that answers as a test says.
import { render, type RenderResult } from '@testing-library/react';
import type { ReactNode } from 'react';
import { connect, type Server } from '../src/api/request.ts';
import { createStudio, StudioProvider, type Studio } from '../src/app/context.tsx';
import { DataProvider, ThreadScope } from '../src/app/data.tsx';
import { LiveRegions } from '../src/app/LiveRegions.tsx';
import { SidesProvider } from '../src/app/sides.tsx';
import { Toaster } from '../src/app/Toaster.tsx';
import { HistoryProvider } from '../src/durable/History.tsx';
import { KillProvider } from '../src/durable/Kill.tsx';
import { TooltipProvider } from '../src/ui/Tooltip.tsx';

export interface Asked {
  method: string;
  path: string;
  body: unknown;
  /** The ETag that it demands. */
  ifMatch?: string;
}

/** The answer of a route: a value as JSON, a Response, or nothing, which is a 404. */
export type Routes = (asked: Asked) => unknown;

export const refusal = (status: number, code: string, message: string, more: object = {}): Response => new Response(JSON.stringify({ error: { code, message, ...more } }), { status });

/** A stream of events, each with its cursor. */
export const stream = (events: readonly { readonly event: object; readonly cursor?: string }[]): Response => new Response(
  events.map(({ event, cursor }) => `${cursor === undefined ? '' : `id: ${cursor}\n`}data: ${JSON.stringify(cursor === undefined ? event : { ...event, metadata: { holdfast: { cursor } } })}\n\n`).join(''),
  { headers: { 'Content-Type': 'text/event-stream' } },
);

/** A server whose routes are a function; all that it was asked is kept. */
export function fakeServer(routes: Routes): { server: Server; asked: Asked[] } {
  const asked: Asked[] = [];
  const answer = async (url: RequestInfo | URL, init: RequestInit = {}): Promise<Response> => {
    init.signal?.throwIfAborted();
    const body: unknown = typeof init.body === 'string' && init.body !== '' ? JSON.parse(init.body) : undefined;
    const ifMatch = new Headers(init.headers).get('If-Match');
    const request = { method: init.method ?? 'GET', path: String(url).replace('http://server/', ''), body, ...(ifMatch !== null && { ifMatch }) };
    asked.push(request);
    const said = await routes(request);
    if (said instanceof Response) return said;
    return said === undefined ? refusal(404, 'not_found', 'There is no such thing.') : Response.json(said);
  };
  return { server: connect('http://server/', undefined, answer), asked };
}

export interface Page extends RenderResult {
  studio: Studio;
  asked: Asked[];
}

/** Renders a component in a page at a place. */
export function page(children: ReactNode, { hash = '#/', routes = () => undefined }: { hash?: string; routes?: Routes } = {}): Page {
  window.location.hash = hash;
  const studio = createStudio(window);
  const { server, asked } = fakeServer(routes);
  const shown = render(
    <StudioProvider studio={studio}>
      <TooltipProvider>
        <SidesProvider>
          <DataProvider server={server}><ThreadScope><HistoryProvider><KillProvider storage={studio.storage}><main>{children}</main></KillProvider></HistoryProvider></ThreadScope><Toaster /></DataProvider>
          <LiveRegions />
        </SidesProvider>
      </TooltipProvider>
    </StudioProvider>,
  );
  return Object.assign(shown, { studio, asked });
}
