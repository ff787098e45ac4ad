// Agentic chat: the agent calls a tool of the page.
import { z } from "zod";
import type { Feature } from "../feature";
import { useShownTool } from "../shown";

const id = "agentic_chat";

function Tools() {
  useShownTool({
    agentId: id,
    name: "change_background",
    description: "Changes the background of the page.",
    parameters: z.object({ background: z.string().describe("a value of CSS: a color or a gradient") }),
    act: ({ background }) => {
      document.documentElement.style.setProperty("--dojo-backdrop", background);
    },
    result: ({ background }) => `The background is ${background} now.`,
    render: ({ background }) => (
      <p className="card swatch">
        <i style={{ background }} /> <span>{background ?? "…"}</span>
      </p>
    ),
  });
  return null;
}

export const chat: Feature = {
  id,
  name: "Agentic chat",
  about: "The agent calls a tool of this page, which changes its background.",
  tries: [
    { title: "A sunset", message: "Change the background to a sunset" },
    { title: "The sea", message: "Change the background to the sea" },
    { title: "A long answer", message: "slow 80" },
  ],
  Tools,
};
