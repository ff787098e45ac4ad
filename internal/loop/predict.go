package loop

import (
	"bytes"
	"encoding/json"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/predict"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/sharedstate"
)

// Calls predict parts of the shared state, while the model writes them. A prediction is in the log, but not in the
// state. The log names what is stored by references, so after a prediction every change of the state is a
// snapshot, which is right whatever a watcher has been shown. Each prediction puts the whole value at its place,
// so it is right for a watcher that has missed the ones before. A snapshot takes predictions back when their
// call has ended, when the run ends, and whenever an answer is superseded.

// prediction is what a call predicts.
type prediction struct {
	places []sharedstate.Prediction
	args   *predict.Arguments
}

// predictedBy returns what a call of a tool predicts; nil if nothing. A reader of the first data format does
// not expect it in a log.
func (a *completion) predictedBy(tool string) *prediction {
	r := a.r
	all := r.agent.Shared.Predictions(tool)
	if len(all) == 0 || r.side || r.st.Format < thread.FormatPatched {
		return nil
	}
	watched := make([]string, len(all))
	for i := range all {
		watched[i] = all[i].Argument
	}
	return &prediction{all, predict.Of(watched...)}
}

// tellPredictions tells frontends, before the call begins, what they may predict by themselves.
func (a *completion) tellPredictions(b *callBuilder) error {
	if b.predicted == nil || a.r.agent.Shared.Told() == nil || !a.r.places.has(a.r.shared.now(), "/") {
		return nil
	}
	return a.emit(agui.Custom{Base: a.base(), Name: "PredictState", Value: a.r.agent.Shared.Told()})
}

// predict shows what a call's arguments say so far of the places that they predict.
func (a *completion) predict(b *callBuilder) error {
	if b.predicted == nil {
		return nil
	}
	for _, v := range b.predicted.args.Read(b.args) {
		for _, p := range b.predicted.places {
			if p.Argument != v.Name {
				continue
			}
			if err := a.foresee(b.id, p.Path, v.JSON); err != nil {
				return err
			}
		}
	}
	return nil
}

// foresee shows a value that a call predicts at a place.
func (a *completion) foresee(call, path string, value []byte) error {
	a.r.shared.mu.Lock() // until it is shown, nobody takes the place away
	defer a.r.shared.mu.Unlock()
	if !a.r.places.has(a.r.shared.version, path) {
		return nil
	}
	base := a.base()
	base.Metadata = thread.PredictedMark(call)
	patch, err := puts(path, value)
	if err != nil {
		return err
	}
	if !a.r.w.HasState() && !a.r.w.Predicts() {
		if err := a.emit(stateShown(a.r.shared.version)); err != nil {
			return err
		}
	}
	return a.emit(agui.StateDelta{Base: base, Delta: patch})
}

// puts returns the patch that puts a value at a place, whatever is there.
func puts(path string, value []byte) (json.RawMessage, error) {
	var b bytes.Buffer
	b.WriteString(`[{"op":"add","path":`)
	b.Write(thread.MustJSON(path))
	b.WriteString(`,"value":`)
	if err := json.Compact(&b, value); err != nil {
		return nil, err
	}
	b.WriteString(`}]`)
	return b.Bytes(), nil
}
