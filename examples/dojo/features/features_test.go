package features

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
)

// agent is the one of this name, answered by turns.
func agent(t *testing.T, name string, turns ...agenttest.Turn) *agenttest.Harness {
	t.Helper()
	for _, a := range All(agenttest.Say(turns...), time.Second) {
		if a.Name == name {
			return agenttest.New(t, agenttest.Config{Agent: a})
		}
	}
	t.Fatalf("there is no agent %s", name)
	return nil
}

// get is what the server says at a path.
func get(t *testing.T, h *agenttest.Harness, path string) string {
	t.Helper()
	body, err := io.ReadAll(h.Request("GET", path, nil).Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// state is the thread's shared state.
func state(t *testing.T, h *agenttest.Harness) string {
	t.Helper()
	var thread struct {
		State json.RawMessage `json:"state"`
	}
	if text := get(t, h, "/copilotkit/threads/t/state"); json.Unmarshal([]byte(text), &thread) != nil {
		t.Fatal(text)
	}
	return string(thread.State)
}

// TestWeather: a card always has the same weather.
func TestWeather(t *testing.T) {
	for _, city := range []string{"Oslo", "Rome", "Lima", "Nuuk", "Perth"} {
		w := weatherIn(city)
		if w != weatherIn(city) || w.Location != city || w.Conditions == "" || w.Temperature < -8 ||
			w.Temperature > 27 || w.Humidity < 30 || w.Humidity > 90 || w.Conditions == "Snowy" && w.Temperature > 0 {
			t.Errorf("the weather in %s: %+v", city, w)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		h := agent(t, "backend_tool_rendering", agenttest.Call("get_weather", `{"location":"Oslo"}`),
			agenttest.Text("."))
		if r := h.Run("weather"); r.Outcome != agenttest.Success || len(r.Started) != 1 {
			t.Errorf("%s %s", r.Outcome, r.Message)
		}
	})
}

// TestTasks: steps are ticked off in the shared state, and one that is not there is told to the model.
func TestTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := agent(t, "agentic_generative_ui", agenttest.Call("create_plan", `{"steps":["a","b"]}`),
			agenttest.Call("update_plan_step", `{"index":1,"status":"completed"}`),
			agenttest.Call("update_plan_step", `{"index":2,"status":"completed"}`), agenttest.Text("done"))
		if r := h.Run("go"); r.Outcome != agenttest.Success {
			t.Fatalf("%s %s", r.Outcome, r.Message)
		}
		const want = `{"steps":[{"description":"a","status":"pending"},{"description":"b","status":"completed"}]}`
		if got := state(t, h); got != want {
			t.Errorf("the state is %s", got)
		}
		if body := get(t, h, "/threads/t/messages"); !strings.Contains(body, "no step 2 of 2") {
			t.Errorf("the messages are %s", body)
		}
	})
}

// TestMeeting: the person chooses the time, or cancels.
func TestMeeting(t *testing.T) {
	for want, answer := range map[string]any{
		"Booked: a call, Monday, 14:00.": map[string]any{"chosen_label": "Monday, 14:00"},
		"The user has cancelled":         map[string]any{"cancelled": true},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := agent(t, "interrupt", agenttest.Call("schedule_meeting", `{"topic":"a call"}`), agenttest.Text("."))
			if r := h.Run("book"); r.Outcome != agenttest.Interrupt || len(r.Questions) != 1 {
				t.Fatalf("%s %s", r.Outcome, r.Message)
			}
			h.Restart()
			h.AnswerAll(answer)
			if body := get(t, h, "/threads/t/messages"); !strings.Contains(body, want) {
				t.Errorf("the messages are %s, want %q in them", body, want)
			}
		})
	}
}

// TestRecipe: the model sees the recipe, and what it writes replaces it.
func TestRecipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const soup = `{"recipe":{"title":"Soup","skill_level":"Beginner","cooking_time":"15 ` +
			`min","special_preferences":[],` +
			`"ingredients":[{"icon":"x","name":"Water","amount":"1 l"}],"instructions":["Boil"]}}`
		var seen string
		turn := agenttest.Call("generate_recipe", soup)
		end := agenttest.Text("there")
		end.Do = func(_ context.Context, req *holdfast.ModelRequest) { seen = string(req.State) }
		h := agent(t, "shared_state", turn, end)
		if r := h.Run("write one"); r.Outcome != agenttest.Success {
			t.Fatalf("%s %s", r.Outcome, r.Message)
		}
		if got := state(t, h); got != soup || seen != soup {
			t.Errorf("the state is %s, and the model sees %s", got, seen)
		}
	})
}
