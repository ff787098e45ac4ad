// Activities: what an agent shows of its work, and media that a model has made. Loaded when one is first shown.
import { fields, list, number, text, type Fields } from '../../log/json.ts';
import type { ActivityItem } from '../../log/view.ts';
import { CheckIcon, InfoIcon } from '../../ui/icons.tsx';
import { JsonTree } from '../../ui/JsonTree.tsx';
import { spaced } from '../../ui/schema.ts';
import { Spinner } from '../../ui/Spinner.tsx';
import { StatusDot, type Tone } from '../../ui/StatusDot.tsx';
import { useRows } from '../context.ts';
import { AppFrame } from './AppFrame.tsx';
import { Media } from './Media.tsx';

/** Media made by a model. */
function Made({ content, kind }: { content: Fields; kind: string }) {
  if (content['leftOut'] !== undefined && !content['url']) return <p className="conversation-note"><InfoIcon /><span>An older {kind}, not loaded again.</span></p>;
  return <Media parts={[{ type: kind, mimeType: text(content['mimeType']), url: text(content['url']), name: '' }]} from="that the assistant made" />;
}

/** How far a piece of work has come. */
function Progress({ content }: { content: Fields }) {
  const title = text(content['title']) || 'Progress';
  const [done, total] = [number(content['done']) ?? 0, number(content['total']) ?? 0];
  return (
    <div role="group" className="conversation-activity" aria-label={title}>
      <h2>{title} <span className="small faint">{total > 0 ? `${done} of ${total}` : done > 0 && String(done)}</span></h2>
      {total > 0 && <progress value={Math.min(Math.max(done, 0), total)} max={total} aria-label={title} style={{ width: '100%', accentColor: 'var(--accent)' }} />}
      {text(content['text']) && <p className="small soft">{text(content['text'])}</p>}
    </div>
  );
}

const states: Record<string, [string, Tone]> = { pending: ['To do', 'neutral'], running: ['Under way', 'active'], done: ['Done', 'good'], failed: ['Failed', 'bad'], skipped: ['Skipped', 'neutral'] };

/** What is to be done, and what of it is. Nothing turns any more once the run is over. */
function Plan({ content }: { content: Fields }) {
  const { busy } = useRows();
  const title = text(content['title']) || 'Plan';
  return (
    <div role="group" className="conversation-activity" aria-label={title}>
      <h2>{title}</h2>
      <ol>
        {list(content['items']).map(fields).map((item, i) => {
          const status = text(item['status']);
          const [word, tone] = states[status] ?? states['pending']!;
          return (
            <li key={i} className="conversation-step">
              {status === 'done' ? <CheckIcon /> : status === 'running' && busy ? <Spinner /> : <StatusDot tone={tone} />}
              <span><span className="sr">{word}: </span>{text(item['text'])}</span>
            </li>
          );
        })}
      </ol>
    </div>
  );
}

export default function ActivityRow({ item }: { item: ActivityItem }) {
  const content = fields(item.content);
  const kind = /^holdfast\.(image|audio|video|document)$/.exec(item.name)?.[1];
  if (kind) return <Made content={content} kind={kind} />;
  if (item.name === 'holdfast.progress') return <Progress content={content} />;
  if (item.name === 'holdfast.plan') return <Plan content={content} />;
  if (item.name === 'mcp-apps') return <AppFrame item={item} />;
  const name = spaced(item.name) || 'Activity';
  return (
    <div role="group" className="conversation-activity" aria-label={name}>
      <h2>{name}</h2>
      <JsonTree value={item.content} label={name} depth={2} />
    </div>
  );
}
