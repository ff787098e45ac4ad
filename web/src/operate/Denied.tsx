// Why something of the server is not shown, and how one comes to see it.
import { useStudio } from '../app/context.tsx';
import { useConfig } from '../app/data.tsx';
import { ApiError } from '../api/request.ts';
import { Button } from '../ui/Button.tsx';
import { EmptyState } from '../ui/EmptyState.tsx';
import { ErrorCard, failureOf } from '../ui/ErrorCard.tsx';
import { KeyIcon, ServerIcon } from '../ui/icons.tsx';

/** Asks for another key, and does everything again with it. */
function AnotherKey() {
  const { keys } = useStudio();
  const ask = () => void keys.another().then(() => window.location.reload(), () => {});
  return <Button icon={<KeyIcon />} onClick={ask}>Use another key</Button>;
}

/** What something is for: the operators of a tenant, or those of the server. */
type Of = 'tenant' | 'server';

const command = (of: Of) => `holdfast key --tenant TENANT \\\n  --user YOU --roles user,${of}_operator`;

/** For what only operators see. what: "The overview". */
export function Denied({ what, of = 'server' }: { what: string; of?: Of }) {
  const { auth, roles } = useConfig();
  const role = <code>{of}_operator</code>;
  if (auth === 'key') {
    return (
      <EmptyState icon={<KeyIcon />} title={`${what} is for ${of} operators`} actions={<AnotherKey />}>
        <p>Your key has {roles?.length ? <>the {roles.length === 1 ? 'role' : 'roles'} {roles.map((r, i) => <span key={r}>{i > 0 && ', '}<code>{r}</code></span>)}</> : 'no role'}. The people who run the server can make one with the role {role}:</p>
        <pre className="operate-command">{command(of)}</pre>
      </EmptyState>
    );
  }
  return (
    <EmptyState icon={<KeyIcon />} title={`${what} is off here`}>
      <p>Without keys, a server shows this only on its own machine, to people who open the address with <code>#token=</code> that it printed when it started, and never through a proxy. Open that address, or give the server keys and yourself one with the role {role}:</p>
      <pre className="operate-command">{command(of)}</pre>
    </EmptyState>
  );
}

/** The text in place of something that could not be read. */
export function Unread({ what, of = 'server', error, onRetry }: { what: string; of?: Of; error: unknown; onRetry: () => void }) {
  const config = useConfig();
  const status = error instanceof ApiError ? error.status : undefined;
  if (status === 403 || (status === 404 && config[`${of}Operator`] === false)) return <Denied what={what} of={of} />;
  if (status === 404) {
    return <EmptyState icon={<ServerIcon />} title={`${what} is not on this server`}>The server is older than this page, or something between them does not let the request through. Load the page again from the server that you mean.</EmptyState>;
  }
  return <div className="operate-failed"><ErrorCard title={`${what} cannot be shown`} error={failureOf(error)} onRetry={onRetry} /></div>;
}
