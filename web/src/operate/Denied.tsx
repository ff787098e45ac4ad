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

const command = 'holdfast key --tenant TENANT \\\n  --user YOU --roles user,operator';

/** For what only operators see. what: "The overview". */
export function Denied({ what }: { what: string }) {
  const { auth, roles } = useConfig();
  if (auth === 'key') {
    return (
      <EmptyState icon={<KeyIcon />} title={`${what} is for operators`} actions={<AnotherKey />}>
        <p>Your key has {roles?.length ? <>the {roles.length === 1 ? 'role' : 'roles'} {roles.map((r, i) => <span key={r}>{i > 0 && ', '}<code>{r}</code></span>)}</> : 'no role'}. The people who run the server can make one with the role <code>operator</code>:</p>
        <pre className="operate-command">{command}</pre>
      </EmptyState>
    );
  }
  return (
    <EmptyState icon={<KeyIcon />} title={`${what} is off here`}>
      <p>Without keys, a server shows this only on its own machine, to people who open the address with <code>#token=</code> that it printed when it started, and never through a proxy. Open that address, or give the server keys and yourself one with the role <code>operator</code>:</p>
      <pre className="operate-command">{command}</pre>
    </EmptyState>
  );
}

/** The text in place of something that could not be read. */
export function Unread({ what, error, onRetry }: { what: string; error: unknown; onRetry: () => void }) {
  const config = useConfig();
  const status = error instanceof ApiError ? error.status : undefined;
  if (status === 403 || (status === 404 && config.operator === false)) return <Denied what={what} />;
  if (status === 404) {
    return <EmptyState icon={<ServerIcon />} title={`${what} is not on this server`}>The server is older than this page, or something between them does not let the request through. Load the page again from the server that you mean.</EmptyState>;
  }
  return <div className="operate-failed"><ErrorCard title={`${what} cannot be shown`} error={failureOf(error)} onRetry={onRetry} /></div>;
}
