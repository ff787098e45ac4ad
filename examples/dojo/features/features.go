// Package features has an agent for each feature of the AG-UI dojo. The names of agents and
// tools, and what tools take and return, are the dojo's.
package features

import (
	"context"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// All returns the agents, in the order in which the dojo has their features. The model answers
// for all of them, and the tools that stand for a service take so long.
func All(model holdfast.Model, services time.Duration) []holdfast.Agent {
	agents := []holdfast.Agent{
		chat(),
		backendTools(services),
		humanInTheLoop(),
		agenticUI(services),
		toolBasedUI(),
		sharedRecipe(),
		predictedDocument(),
		reasoning(),
		multimodal(),
		interrupts(),
	}
	for i := range agents {
		agents[i].Model = model
		agents[i].Policy = holdfast.Policy{Chat: true}
	}
	return agents
}

// The features that need nothing of the server: their tools, if they have any, are the page's.

func chat() holdfast.Agent {
	return holdfast.Agent{
		Name:         "agentic_chat",
		Description:  "Chats, and calls tools of the page.",
		Instructions: "You are a friendly assistant. If the user wants another background, call change_background.",
	}
}

func humanInTheLoop() holdfast.Agent {
	return holdfast.Agent{
		Name:        "human_in_the_loop",
		Description: "Plans, and lets a person choose which steps are taken.",
		Instructions: "You plan tasks. Call generate_task_steps with all steps enabled, and go on with those " +
			"that the user has left.",
	}
}

func toolBasedUI() holdfast.Agent {
	return holdfast.Agent{
		Name:         "tool_based_generative_ui",
		Description:  "Writes haiku, which the page shows as cards.",
		Instructions: "You write haiku. Show each with generate_haiku.",
	}
}

func reasoning() holdfast.Agent {
	return holdfast.Agent{
		Name:         "agentic_chat_reasoning",
		Description:  "Thinks before it answers, and shows what it thinks.",
		Instructions: "Think before you answer.",
	}
}

func multimodal() holdfast.Agent {
	return holdfast.Agent{
		Name:         "agentic_chat_multimodal",
		Description:  "Takes images and files, and paints.",
		Instructions: "Say what is in the files that the user sends.",
	}
}

// work takes as long as a service would.
func work(ctx context.Context, takes time.Duration) error {
	t := time.NewTimer(takes)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
