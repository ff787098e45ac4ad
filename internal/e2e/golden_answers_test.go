package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// The traces that answers leave in a golden store besides text: one that was taken back
// because it does not have its agent's form, one that is the result of its run, and an image.

const (
	goldenResult = `{"city":"Rome"}`
	goldenImage  = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk" +
		"+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	// wrongForm and wrongHint are in a request that asks again.
	wrongForm = "It is Rome."
	wrongHint = "Your last answer does not have the form that is asked for."
)

// form answers without the form, and with it once it is asked again. While the provider
// holds, it does not get beyond the beginning of that.
func (g *goldenProvider) form(w http.ResponseWriter, r *http.Request, body string) {
	switch {
	case !strings.Contains(body, wrongHint):
		fmt.Fprint(w, chatDelta(fmt.Sprintf(`{"content":%q}`, wrongForm)), chatStop("stop"))
	case !g.holds.Load():
		fmt.Fprint(w, chatDelta(fmt.Sprintf(`{"content":%q}`, goldenResult)), chatStop("stop"))
	default:
		fmt.Fprint(w, chatDelta(fmt.Sprintf(`{"content":%q}`, goldenResult[:5])))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

// paint answers with an image, as gateways do.
func paint(w http.ResponseWriter) {
	fmt.Fprint(w, chatDelta(fmt.Sprintf(`{"content":"A dot:","images":[{"image_url":{"url":%q}}]}`, goldenImage)),
		chatStop("stop"))
}

// wantResult checks that a run has ended with the result.
func (m *modelTalk) wantResult(end record) {
	m.Helper()
	m.wantAnswer(end)
	if got := mustText(m.T, end.Data["result"]); got != goldenResult {
		m.Errorf("the result of %s is %s, want %s", m.name, got, goldenResult)
	}
}

// leaveFormer has a run whose first answer was taken back, in the middle of the second.
func leaveFormer(m *modelTalk) {
	m.models.holds.Store(true)
	again := false
	end := m.posts(nil, func(r record) bool {
		again = again || r.Data["name"] == "holdfast.output_retry"
		return again && r.kind() == "TEXT_MESSAGE_CONTENT"
	}, userMessage("u0", "Which city?"))
	if end.kind() != "TEXT_MESSAGE_CONTENT" {
		m.Fatalf("the model was not asked again: %s", end.Raw)
	}
}

// checkFormer: the run asks once, for the second time, and ends with the result.
func checkFormer(m *modelTalk) {
	m.wantResult((&watcher{killer: &killer{T: m.T, p: m.p}, thread: m.name, run: "r1"}).follow())
	asked := m.models.requests(m.name)
	if len(asked) != 1 || !strings.Contains(asked[0], wrongForm) || !strings.Contains(asked[0], wrongHint) {
		m.Errorf("the model was asked %d times:\n%s", len(asked), strings.Join(asked, "\n"))
	}
}

func leaveFormed(m *modelTalk) { m.wantResult(m.posts(nil, nil, userMessage("u0", "Which city?"))) }

// checkFormed: the run is shown again with its result, from its log and from the thread.
func checkFormed(m *modelTalk) {
	m.wantResult((&watcher{killer: &killer{T: m.T, p: m.p}, thread: m.name, run: "r1"}).follow())
	m.wantResult(m.attaches())
	if asked := m.models.requests(m.name); len(asked) != 0 {
		m.Errorf("the model was asked:\n%s", strings.Join(asked, "\n"))
	}
}

// attaches has a page show the thread, and returns the last record.
func (m *modelTalk) attaches() (last record) {
	m.Helper()
	res, err := http.Get(m.p.url + "/threads/" + m.name + "/stream")
	if err != nil {
		m.Fatal(err)
	}
	defer res.Body.Close()
	if err := readStream(res.Body, func(r record) bool { last = r; return false }); err != nil {
		m.Fatal(err)
	}
	return last
}

func leavePainter(m *modelTalk) {
	m.says("Paint a dot.")
	m.wantImage(1)
}

// checkPainter: the thread shows the image, and the model gets it back.
func checkPainter(m *modelTalk) {
	m.wantImage(1)
	asked := m.wantOne(func() { m.says("Paint another one.") })
	if _, images, made := strings.Cut(asked, modelhttp.MadeText); !made || !strings.Contains(images, goldenImage) {
		m.Errorf("the model was asked without its image: %s", asked)
	}
	m.wantImage(2)
}

// wantImage checks that the history has so many images.
func (m *modelTalk) wantImage(n int) {
	m.Helper()
	var body struct {
		Messages []struct {
			ActivityType string
			Content      json.RawMessage
		}
	}
	getJSON(m.T, m.p.url+"/threads/"+m.name+"/messages", &body)
	images := 0
	for _, message := range body.Messages {
		var content struct{ URL string }
		if message.ActivityType == "holdfast.image" && json.Unmarshal(message.Content, &content) == nil &&
			content.URL == goldenImage {
			images++
		}
	}
	if images != n {
		m.Errorf("%s has %d images, want %d", m.name, images, n)
	}
}
