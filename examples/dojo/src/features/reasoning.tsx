// Reasoning: CopilotKit shows what the agent thinks before it answers.
import type { Feature } from "../feature";

export const reasoning: Feature = {
  id: "agentic_chat_reasoning",
  name: "Reasoning",
  about: "What the agent thinks is a message of its own, which you can open.",
  tries: [
    { title: "The meaning of life", message: "Think: the meaning of life" },
    { title: "Cheese", message: "Think: cheese" },
  ],
};
