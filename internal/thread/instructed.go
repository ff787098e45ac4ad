package thread

import (
	"encoding/json"
	"hash/crc32"
	"strconv"

	"github.com/holdfast-agents/holdfast/internal/agui"
)

// Clients send instructions with each run. Where they stand in a prompt depends on whether
// they are always the same, so the state keeps what tells them apart.

// changing as the value of Instructed means that they have been different.
const changing = "changing"

// InstructionTexts returns the texts of instructions as a run stores them.
func InstructionTexts(instructions []json.RawMessage) []string {
	var texts []string
	for _, raw := range instructions {
		m, err := agui.DecodeMessage(raw)
		if err != nil {
			continue
		}
		if d, err := m.Domain(); err == nil {
			texts = append(texts, d.PlainText())
		}
	}
	return texts
}

// Instruct notes the instructions that a client has sent with a run. Nothing is noted
// before the first ones.
func (s *State) Instruct(instructions []json.RawMessage) {
	now := ""
	if texts := InstructionTexts(instructions); len(texts) > 0 {
		now = strconv.FormatUint(uint64(crc32.ChecksumIEEE(MustJSON(texts))), 36)
	}
	switch {
	case s.Instructed == "":
		s.Instructed = now
	case s.Instructed != now:
		s.Instructed = changing
	}
}

// Changing reports whether the clients of the thread have changed their instructions. From
// then on these stand behind the history: at the beginning, each further change would make
// the provider work through all of it again.
func (s *State) Changing() bool { return s.Instructed == changing }
