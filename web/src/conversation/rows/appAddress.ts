import { list, text, type Fields } from '../../log/json.ts';

/** The address of the frame, with what the interface may reach. */
export function frameAddress(base: string, csp: Fields): string {
  const names = { connect: 'connectDomains', resource: 'resourceDomains', frame: 'frameDomains', base: 'baseUriDomains' };
  const query = new URLSearchParams();
  for (const [name, from] of Object.entries(names)) for (const origin of list(csp[from])) query.append(name, text(origin));
  return `${base}ui/app-frame?${query.toString()}`;
}
