// A reader of somebody else's threads is told so, all the time.
import { useExport } from '../threads/transfer.ts';
import { Button } from '../ui/Button.tsx';
import { DownloadIcon, EyeIcon } from '../ui/icons.tsx';
import './OtherUser.css';
import { usePlace } from './context.tsx';
import { formatPlace } from './place.ts';

export function OtherUser() {
  const { page, user, thread } = usePlace();
  const exportThread = useExport();
  if (user === undefined || page !== 'thread') return null;
  return (
    <div className="other-user" role="note">
      <EyeIcon />
      <span className="grow">You read {thread === undefined ? 'threads of' : 'a thread of'} <b>{user}</b>, as an operator. You can change nothing, and each look is logged.</span>
      {thread !== undefined && <Button size="small" icon={<DownloadIcon />} onClick={() => exportThread(thread, thread, user)}>Export</Button>}
      <a href={formatPlace({ page: 'operate', section: 'threads' })}>All threads</a>
      <a href={formatPlace({ page: 'thread' })}>Your own</a>
    </div>
  );
}
