// Tool-based generative UI: what the agent passes to a tool is what the page draws.
import { z } from "zod";
import type { Feature } from "../feature";
import { useShownTool } from "../shown";

const id = "tool_based_generative_ui";

function Tools() {
  useShownTool({
    agentId: id,
    name: "generate_haiku",
    description: "Shows a haiku to the user.",
    parameters: z.object({
      japanese: z.array(z.string()).describe("three lines"),
      english: z.array(z.string()).describe("the same three lines in English"),
      gradient: z.string().describe("a gradient of CSS for its background"),
    }),
    result: () => "The haiku is shown.",
    render: ({ japanese = [], english = [], gradient }) => (
      <figure className="haiku" style={gradient ? { background: gradient } : {}}>
        {[0, 1, 2].map((n) => (
          <p key={n}>
            <b lang="ja">{japanese[n]}</b>
            <span>{english[n]}</span>
          </p>
        ))}
      </figure>
    ),
  });
  return null;
}

export const haiku: Feature = {
  id,
  name: "Tool-based generative UI",
  about: "What the agent passes to a tool of the page is drawn as it arrives.",
  tries: [
    { title: "About autumn", message: "Write a haiku about autumn" },
    { title: "About the sea", message: "Write a haiku about the sea" },
  ],
  Tools,
};
