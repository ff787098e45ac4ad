package e2e

// How a scene of TestDeaths is played: a run makes a call of each effect at once, all of them
// stop at one moment, something dies, and comes back.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/httptool"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// trial is a scene while it is played.
type trial struct {
	*talk
	scene
	peer           *peer
	struck, healed bool
}

// play plays the scene, and returns what came of the call of each effect.
func (s scene) play(t *testing.T) map[string]cell {
	t.Helper()
	newStore := newFile
	if s.store == "redis" {
		newStore = newRedis
	}
	d := &trial{scene: s}
	c := newCrew(t, newStore(t), "--lease=1s")
	d.talk = c.talk("mortal", "t")
	d.peer = newPeer(c, s)
	c.args = append(c.args, d.peer.arguments()...)
	d.hold()
	d.begin()
	if s.effects[0] == outsideCall {
		return map[string]cell{outsideCall: d.playOutside()}
	}
	return d.playCalls()
}

// hold has the calls stop at the scene's moment.
func (d *trial) hold() {
	d.Helper()
	moment := map[string]string{atReceived: "received", atDone: "done", atHandle: "handle"}[d.moment]
	for _, effect := range d.effects {
		switch name := "unsent-" + d.local + effect; {
		case moment != "":
			d.file("peer." + d.remote + effect + "." + moment)
		case d.moment == atUnsent && d.dies == diesHoldfast:
			if effect == outsideCall {
				name = "unsent-delivery"
			}
			d.crew.hold("t", name, 0)
		}
	}
}

// file makes an empty file in the folder with the holds.
func (c *crew) file(name string) {
	c.Helper()
	if err := os.WriteFile(filepath.Join(c.holds, name), nil, 0o600); err != nil {
		c.Fatal(err)
	}
}

// begin starts all processes.
func (d *trial) begin() {
	d.Helper()
	d.peer.start()
	if d.dies == diesHoldfast {
		switch d.moment {
		case atArriving:
			d.crew.crash = "before begin 2"
		case atTaken:
			d.crew.crash = "after begin 2"
		}
	}
	d.crew.begin()
	if d.side != "service" {
		d.peer.connected()
	}
	if d.moment == atUnsent && d.dies != diesHoldfast {
		d.strike()
	}
	d.watch = d.look
}

// look kills when all calls are where they are to be killed, and lets the dead come back
// when the calls that nobody may repeat have their results.
func (d *trial) look() {
	switch {
	case !d.struck && d.ripe():
		d.strike()
	case d.struck && !d.healed && (d.waits(d.moment) || d.neverAgain()):
		d.heal()
	}
}

// ripe reports whether all calls have stopped.
func (d *trial) ripe() bool {
	return len(d.lines("held "))+len(d.lines("peer held ")) >= len(d.effects)
}

// neverAgain reports whether the call that nobody may repeat, and of which no person is asked,
// has its result.
func (d *trial) neverAgain() bool {
	results := d.results()
	for _, effect := range d.effects {
		if _, has := results[effect]; !has && effect == "once" {
			return false
		}
	}
	return true
}

// strike is the death.
func (d *trial) strike() {
	d.Helper()
	d.struck = true
	switch d.dies {
	case diesHoldfast:
		d.healed = true
		d.crew.kill(d.p.name)
	case diesPeer:
		d.peer.kill(d.moment == atUnsent)
	case diesNetwork:
		d.peer.wire.cut()
	}
}

// heal ends it.
func (d *trial) heal() {
	d.Helper()
	d.healed = true
	if d.dies == diesNetwork {
		d.peer.wire.join()
	} else if d.dies == diesPeer {
		d.peer.start()
	}
}

// playCalls makes the calls, and answers what is asked.
func (d *trial) playCalls() map[string]cell {
	d.Helper()
	var calls []string
	for _, effect := range d.effects {
		calls = append(calls, d.local+effect+" 1")
	}
	end := d.says(strings.Join(calls, " + "))
	if d.remote == "question_" {
		d.wantEnd(end, "interrupt")
		if d.moment == atAsked {
			d.strike()
			if !d.healed {
				d.heal()
			}
		}
		d.answers["input_required"] = `{"size":3}`
		end = d.answersAll(end)
		if n := len(d.lines("peer asked ")); n != len(d.effects) {
			d.Errorf("%d questions were asked, want %d", n, len(d.effects))
		}
	}
	got, results := map[string]cell{}, d.results()
	for _, effect := range d.effects {
		got[effect] = d.count(effect, results[effect])
	}
	if len(d.askedFor("holdfast:in_doubt")) > 0 {
		c := got["ask"]
		c.read = personAsked
		got["ask"] = c
		end = d.answerTruly(end, c)
	}
	d.wantEnd(end, "success")
	d.checkKeys()
	if refused, err := os.ReadFile(filepath.Join(d.peer.notes, "errors")); err == nil {
		d.Errorf("the schemas of tasks refuse: %s", refused)
	}
	return got
}

// count counts what the other side wrote down of a call.
func (d *trial) count(effect string, result said) cell {
	d.Helper()
	c := cell{read: result.text}
	for _, line := range d.lines("peer ") {
		if f := fields(line); f["tool"] == d.remote+effect {
			switch {
			case strings.HasPrefix(line, "peer got "):
				c.sent++
			case strings.HasPrefix(line, "peer did "):
				c.did++
			}
		}
	}
	code := ""
	switch text := result.text; {
	case text == "done":
		c.read = readResult
	case text == "done, looked up":
		c.read = readLookedUp
	case text == thread.TextInDoubt, text == thread.TextUnknown:
		c.read, code = readUnknown, thread.CodeUnknown
	case text == thread.TextNotDone:
		c.read, code = readNotDone, thread.CodeNotDone
	case strings.Contains(strings.ToLower(text), "nothing was sent"):
		c.read = readUnsent
		if d.local != "job_" { // its errors have no codes
			code = cmp.Or(map[string]string{"service": httptool.CodeUnreachable}[d.side], "mcp_unreachable")
		}
	}
	if result.code != code {
		d.Errorf("%s: the code is %q, want %q: %s", effect, result.code, code, result.text)
	}
	return c
}

// answerTruly is the person who is asked, who looks whether the work was done. In the end it
// was, once.
func (d *trial) answerTruly(end record, c cell) record {
	d.Helper()
	d.answers["holdfast:in_doubt"] = `{"outcome":"run_again"}`
	if c.did > 0 {
		d.answers["holdfast:in_doubt"] = `{"outcome":"happened","result":"done"}`
	}
	end = d.answersAll(end)
	if after := d.count("ask", d.results()["ask"]); after.did != 1 || after.read != readResult {
		d.Errorf("after the person's answer: %s", after)
	}
	return end
}

// said is a result with its code.
type said struct{ text, code string }

// results are the results so far, by the effect of the tool.
func (d *trial) results() map[string]said {
	results := map[string]said{}
	for _, r := range d.seen {
		if r.kind() == "TOOL_CALL_RESULT" {
			id, _ := r.Data["toolCallId"].(string)
			name, _, _ := strings.Cut(id, "-")
			metadata, _ := r.Data["metadata"].(map[string]any)
			mark, _ := metadata["holdfast"].(map[string]any)
			code, _ := mark["code"].(string)
			results[strings.TrimPrefix(name, d.local)] = said{contentOf(r.Data["content"]), code}
		}
	}
	return results
}

// contentOf returns the text of a result, which may have parts.
func contentOf(content any) string {
	if text, ok := content.(string); ok {
		var parts []struct{ Text string }
		if json.Unmarshal([]byte(text), &parts) == nil && len(parts) == 1 {
			return parts[0].Text
		}
		return text
	}
	return fmt.Sprint(content)
}

// checkKeys: all requests of a call have its key, whichever process sends them. Those of a
// pure call of an HTTP tool have none.
func (d *trial) checkKeys() {
	d.Helper()
	keys := map[string]string{}
	for _, line := range d.lines("peer got ") {
		tool, key := fields(line)["tool"], fields(line)["key"]
		if known, again := keys[tool]; again && known != key || key == "" && tool != "pure" {
			d.Errorf("%s: the key was %q and is %q", tool, known, key)
		}
		keys[tool] = key
	}
}
