package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

	"go.yaml.in/yaml/v4"
)

// A change from one reading of the file to the next is found without keeping its text, which
// may have secrets in it: each part has a sum.

// Sums has the sum of each part of a file.
type Sums struct {
	// Agents are by name; an agent's instructions are a part of it.
	Agents map[string]string
	// Others are what else the file says, by its key, and the files that it names, by path.
	Others map[string]string
}

// sumsOf returns the sums of a file without mistakes. agent returns the name and the
// instructions of an agent by its number.
func sumsOf(root *yaml.Node, agent func(i int) (name, instructions string), files map[string]string) Sums {
	s := Sums{Agents: map[string]string{}, Others: files}
	root = resolve(root)
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i].Value, resolve(root.Content[i+1])
		if key != "agents" {
			s.Others[key] = sum(value, "")
			continue
		}
		for n, entry := range value.Content {
			name, instructions := agent(n)
			s.Agents[name] = sum(entry, instructions)
		}
	}
	return s
}

// sum returns the sum of a value and a text. Comments and how the value is written do not
// count.
func sum(n *yaml.Node, text string) string {
	h := sha256.New()
	write(h, n)
	fmt.Fprintf(h, "%q", text)
	return hex.EncodeToString(h.Sum(nil))
}

func write(h hash.Hash, n *yaml.Node) {
	n = resolve(n)
	fmt.Fprintf(h, "%d %s %q %d\n", n.Kind, n.ShortTag(), n.Value, len(n.Content))
	for _, c := range n.Content {
		write(h, c)
	}
}

// noting returns what reads files as read does, and notes the sum of each in files.
func noting(files map[string]string, read func(path string) ([]byte, error)) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		data, err := read(path)
		if err == nil {
			s := sha256.Sum256(data)
			files[path] = hex.EncodeToString(s[:])
		}
		return data, err
	}
}
