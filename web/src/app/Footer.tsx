// The bar at the bottom: is the server there, where in the log one is, how the run stands,
// and what it has used. Panels say what they know; what nobody knows is not shown.
import { StatusDot, type Tone } from '../ui/StatusDot.tsx';
import './Footer.css';

export interface Standing {
  connection: 'connected' | 'connecting' | 'reconnecting' | 'offline';
  /** The cursor of the record that is shown last. */
  position?: string;
  /** How the run stands, in a word, and its tone. */
  run?: { text: string; tone: Tone };
  /** Its usage, in words: "1,204 tokens". */
  usage?: string;
  /** The server: "v0.3.0". */
  server?: string;
}

const connections: Record<Standing['connection'], [string, Tone]> = {
  connected: ['Connected', 'good'],
  connecting: ['Connecting…', 'active'],
  reconnecting: ['Reconnecting…', 'wait'],
  offline: ['No connection', 'bad'],
};

export function Footer({ standing }: { standing: Standing }) {
  const [text, tone] = connections[standing.connection];
  return (
    <footer className="footer" aria-label="Standing">
      <span className="footer-part" data-connection={standing.connection}><StatusDot tone={tone} />{text}</span>
      {standing.run && <span className="footer-part"><StatusDot tone={standing.run.tone} />{standing.run.text}</span>}
      {standing.position && <span className="footer-part mono footer-position" title="The position in the log: the cursor of the last record that is shown">{standing.position}</span>}
      <span className="grow" />
      {standing.usage && <span className="footer-part num">{standing.usage}</span>}
      {standing.server && <span className="footer-part footer-server">{standing.server}</span>}
    </footer>
  );
}
