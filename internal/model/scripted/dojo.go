package scripted

// The answers of the AG-UI dojo. Each needs a tool that the dojo's page or agent has, with
// the dojo's name; without it, what is said is chat.

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	_ "image/gif"  // whose size is told
	_ "image/jpeg" // whose size is told
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// dojo returns what the model understands if it has a tool for it.
func dojo() []command {
	with := func(tool, words string, f func(situation, []string) answer) command {
		return when(words, func(s situation, match []string) answer {
			if s.missing(tool) != "" {
				return chat(s)
			}
			return f(s, match)
		})
	}
	return []command{
		with("change_background", `(?:change|make) the background(?: to)?\s+(.+?)`, background),
		with("get_weather", `(?:what(?:'s| is) the )?weather (?:like )?in\s+(.+?)`, weather),
		when(`plan\s+(.+?)(?:\s+in\s+(\d+)\s+steps)?`, planAnything),
		with("generate_haiku", `write a haiku(?: about\s+(.+?))?`, haiku),
		with("generate_recipe", `improve the recipe`, improveRecipe),
		with("write_document", `write a story about\s+(.+?)`, story),
		with("schedule_meeting", `(?:book|schedule)\s+(.+?)(?:\s+with\s+(.+?))?`, scheduleMeeting),
		when(`(?:what(?:'s| is) (?:this|in it)|describe (?:this|it))`, describe),
	}
}

// once calls a tool, and says the rest when the result is there.
func once(s situation, c call, after func(r result) answer) answer {
	switch {
	case s.steps == 0:
		return answer{pace: 1}.with(c)
	case s.last().failed:
		return say("%s", summary(s.results))
	}
	return after(s.last())
}

// The pictures that a background can have, as values of CSS. Any other is a color.
var backgrounds = map[string]string{
	"a sunset": "linear-gradient(160deg, #fde68a, #fb923c 45%, #be185d)",
	"the sea":  "linear-gradient(180deg, #e0f2fe, #38bdf8 55%, #0c4a6e)",
	"a forest": "linear-gradient(170deg, #ecfccb, #4d7c0f 60%, #14532d)",
}

func background(s situation, match []string) answer {
	value, known := backgrounds[strings.ToLower(match[1])]
	if !known {
		value = match[1]
	}
	return once(s, callTool("change_background", "background", value), func(result) answer {
		return say("There it is: the background is %s now.", match[1])
	})
}

func weather(s situation, match []string) answer {
	return once(s, callTool("get_weather", "location", match[1]), func(r result) answer {
		var now struct {
			Conditions  string  `json:"conditions"`
			Temperature float64 `json:"temperature"`
		}
		if json.Unmarshal([]byte(r.text), &now) != nil {
			return say("This is what I was told: %s", shorten(r.text))
		}
		return say("In %s it is %v °C and %s.", match[1], now.Temperature, strings.ToLower(now.Conditions))
	})
}

// stepsOf are so many steps, good for anything.
func stepsOf(what, n string) []string {
	all := []string{
		"Say what is wanted: " + what,
		"Find out what others have learned",
		"List what is needed",
		"Get what is missing",
		"Choose who does what",
		"Try it on a small scale",
		"Do it",
		"Look whether it has worked",
		"Put everything back in its place",
		"Tell the others",
	}
	return all[:number(n, 5, len(all))]
}

// planAnything carries a plan out, or proposes it, by the tool that there is.
func planAnything(s situation, match []string) answer {
	switch {
	case s.missing("create_plan", "update_plan_step") == "":
		return carryOutPlan(s, match)
	case s.missing("generate_task_steps") == "":
		return proposePlan(s, match)
	}
	return chat(s)
}

// carryOutPlan shows a plan and finishes a step in each iteration. The history tells which is next.
func carryOutPlan(s situation, match []string) answer {
	steps := stepsOf(match[1], match[2])
	switch {
	case s.steps == 0:
		return answer{pace: 1}.with(callTool("create_plan", "steps", steps))
	case s.steps <= len(steps):
		return answer{pace: 1}.with(callTool("update_plan_step", "index", s.steps-1, "status", "completed"))
	}
	return say("All %d steps are done: %s.", len(steps), match[1])
}

// proposePlan lets the person choose which steps are taken.
func proposePlan(s situation, match []string) answer {
	type step struct {
		Description string `json:"description"`
		Status      string `json:"status"`
	}
	var steps []step
	for _, text := range stepsOf(match[1], match[2]) {
		steps = append(steps, step{text, "enabled"})
	}
	return once(s, callTool("generate_task_steps", "steps", steps), func(r result) answer {
		var chosen struct {
			Accepted bool   `json:"accepted"`
			Steps    []step `json:"steps"`
		}
		if json.Unmarshal([]byte(r.text), &chosen) != nil || !chosen.Accepted {
			return say("Then I leave it.")
		}
		var b strings.Builder
		for _, c := range chosen.Steps {
			fmt.Fprintf(&b, "\n- %s", c.Description)
		}
		return say("I take these %d steps:%s", len(chosen.Steps), b.String())
	})
}

func haiku(s situation, match []string) answer {
	c := callTool("generate_haiku", "japanese", []string{"古い綱", "夜の底から", "朝に在り"}, "english",
		[]string{"An old rope holds fast", "up from the floor of the night.", "Morning finds it tied."}, "gradient",
		"linear-gradient(160deg, #1e293b, #475569 45%, #fdba74)")
	return once(s, c, func(result) answer {
		if match[1] == "" {
			return say("That is my haiku. It is the only one that I know.")
		}
		return say("It may not be about %s at first sight, but it is the only one that I know.", match[1])
	})
}

// improveRecipe sends the recipe of the shared state back with something added, and all else as it is.
func improveRecipe(s situation, _ []string) answer {
	var state struct {
		Recipe map[string]any `json:"recipe"`
	}
	if json.Unmarshal(s.req.State, &state) != nil || state.Recipe == nil {
		return say("There is no recipe yet: write its title down, and ask me again.")
	}
	title := state.Recipe["title"]
	added := func(member string, what ...any) {
		list, _ := state.Recipe[member].([]any)
		state.Recipe[member] = append(list, what...)
	}
	added("ingredients", map[string]any{"icon": "🧄", "name": "Garlic", "amount": "2 cloves"},
		map[string]any{"icon": "🌿", "name": "Parsley", "amount": "1 handful"})
	added("instructions", "Chop the garlic and the parsley, and stir them in at the end.")
	return once(s, callTool("generate_recipe", "recipe", state.Recipe), func(result) answer {
		return say("I have added garlic and parsley to “%v”, and left the rest as you wrote it.", title)
	})
}

// story writes a document, slowly enough to be seen.
func story(s situation, match []string) answer {
	hero := match[1]
	text := "# The story of " + hero + "\n\n" +
		"There once was " + hero + " who had tied everything that mattered to one old rope. In the evening the wind " +
		"rose, and those who knew about ropes went home.\n\n" +
		"In the middle of the night the light went out, and with it went whatever anybody had been doing. Nobody " +
		"could see what was done already, and what was not.\n\n" +
		"In the morning everything hung where it had hung before. The rope had held, and " + hero +
		" went on with the very next knot, as if there had been no night at all."
	return once(s, callTool("write_document", "document", text), func(r result) answer {
		if strings.HasPrefix(r.text, "The person did not allow") {
			return say("Then I leave it.")
		}
		return say("The story about %s is kept.", hero)
	})
}

func scheduleMeeting(s situation, match []string) answer {
	c := callTool("schedule_meeting", "topic", match[1])
	if match[2] != "" {
		c = callTool("schedule_meeting", "topic", match[1], "attendee", match[2])
	}
	return once(s, c, func(r result) answer { return say("%s", r.text) })
}

// describe says what can be said of files without looking at what they show.
func describe(s situation, _ []string) answer {
	if len(s.media) == 0 {
		return chat(s)
	}
	lines := make([]string, len(s.media))
	for i, p := range s.media {
		lines[i] = "- " + describePart(p)
	}
	return say("I cannot see, but I can tell what has arrived:\n%s", strings.Join(lines, "\n"))
}

func describePart(p holdfast.Part) string {
	if p.Source == nil {
		return string(p.Type)
	}
	text := fmt.Sprintf("%s, %s", p.Type, p.Source.MIMEType)
	if p.Source.Type != holdfast.SourceData {
		return text + ", somewhere else"
	}
	data := base64.NewDecoder(base64.StdEncoding, strings.NewReader(p.Source.Value))
	if c, _, err := image.DecodeConfig(data); err == nil {
		text += fmt.Sprintf(", %d × %d pixels", c.Width, c.Height)
	}
	bytes := base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(p.Source.Value, "=")))
	return fmt.Sprintf("%s, %d bytes", text, bytes)
}
