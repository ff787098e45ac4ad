// The features of the AG-UI dojo, each with an agent and threads of its own: CopilotKit's
// components, straight on Holdfast.
import "@copilotkit/react-core/v2/styles.css";
import "./page.css";
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { CopilotChat, CopilotKitProvider, useConfigureSuggestions } from "@copilotkit/react-core/v2";
import { resumeRuns } from "../../copilotkit/src/resume";
import type { Feature } from "./feature";
import { chat } from "./features/chat";
import { written } from "./features/document";
import { files, images } from "./features/files";
import { haiku } from "./features/haiku";
import { meeting } from "./features/meeting";
import { reasoning } from "./features/reasoning";
import { recipe } from "./features/recipe";
import { steps } from "./features/steps";
import { tasks } from "./features/tasks";
import { weather } from "./features/weather";
import { newThread, runtimeUrl, showInAddress, studioUrl, whereInAddress } from "./where";

const features: Feature[] = [chat, weather, steps, tasks, haiku, recipe, written, reasoning, files, meeting];

// A cut connection or a server that is started again is only a pause.
resumeRuns(runtimeUrl);

/** A feature: its part of the page, and its chat on a thread. */
function Room({ feature, thread }: { feature: Feature; thread: string }) {
  const { id, tries, Stage, Tools } = feature;
  useConfigureSuggestions({ suggestions: tries, available: "always", consumerAgentId: id });
  return (
    <div className="room" data-stage={Stage ? "" : undefined}>
      {Tools ? <Tools /> : null}
      {Stage ? <div className="stage"><Stage /></div> : null}
      <div className="talk">
        <CopilotChat agentId={id} threadId={thread} attachments={{ enabled: Boolean(feature.files) }} />
      </div>
    </div>
  );
}

function Page() {
  const [where, setWhere] = useState(() => whereInAddress(features[0].id));
  const feature = features.find(({ id }) => id === where.feature) ?? features[0];
  const show = (id: string) => {
    document.documentElement.style.removeProperty("--dojo-backdrop");
    setWhere(showInAddress({ feature: id, thread: newThread(id) }));
  };
  return (
    <>
      <nav aria-label="Features">
        <h1>The AG-UI dojo <small>on Holdfast</small></h1>
        <ul>
          {features.map(({ id, name }) => (
            <li key={id}>
              <button aria-current={id === feature.id || undefined} onClick={() => show(id)}>{name}</button>
            </li>
          ))}
        </ul>
        <p>Reload the page in the middle of anything, or kill the server with <code>kill -9</code>: it goes on.</p>
      </nav>
      <main>
        <header>
          <div>
            <h2>{feature.name}</h2>
            <p>{feature.about}</p>
          </div>
          <a href={studioUrl} target="_blank" rel="noreferrer">Studio</a>
          <button onClick={() => show(feature.id)}>Begin again</button>
        </header>
        <Room feature={feature} thread={where.thread} key={where.thread} />
      </main>
    </>
  );
}

createRoot(document.getElementById("page")!).render(
  <CopilotKitProvider runtimeUrl={runtimeUrl} useSingleEndpoint={false} renderActivityMessages={images}>
    <Page />
  </CopilotKitProvider>,
);
