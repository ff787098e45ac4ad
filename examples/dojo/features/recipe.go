package features

import (
	"context"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/sharedstate"
)

// recipe is what the person and the agent write together.
type recipe struct {
	Title       string       `json:"title"`
	SkillLevel  string       `json:"skill_level"`
	CookingTime string       `json:"cooking_time"`
	Preferences []string     `json:"special_preferences"`
	Ingredients []ingredient `json:"ingredients"`
	Steps       []string     `json:"instructions"`
}

type ingredient struct {
	Icon   string `json:"icon" jsonschema:"an emoji"`
	Name   string `json:"name"`
	Amount string `json:"amount"`
}

// kitchen is the document that this agent shares with its page.
type kitchen struct {
	Recipe recipe `json:"recipe"`
}

var cooking = sharedstate.Of[kitchen]()

// sharedRecipe sees the document with each question, as the page has left it, and changes it.
func sharedRecipe() holdfast.Agent {
	state := cooking.Options()
	state.Show = "all"
	write := func(ctx context.Context, in kitchen) (string, error) {
		return "The recipe is changed.", holdfast.UpdateState(ctx, cooking.Change(func(k *kitchen) error {
			*k = in
			return nil
		}))
	}
	return holdfast.Agent{
		Name:         "shared_state",
		Description:  "Writes a recipe together with a person.",
		Instructions: "You improve the recipe that you share with the user. Change it with generate_recipe.",
		State:        state,
		Tools: []holdfast.Tool{
			holdfast.NewTool("generate_recipe", "Replaces the recipe that you share with the user.", write),
		},
	}
}
