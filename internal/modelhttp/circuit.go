package modelhttp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// circuitKey returns a short hash of where the model is asked and with which headers, among
// them the key. Failures of one account, or of one place, say nothing about another.
func circuitKey(baseURL, proxy string, header map[string][]string) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q", baseURL, proxy)
	for _, name := range slices.Sorted(maps.Keys(header)) {
		fmt.Fprintf(sum, " %q %q", name, header[name])
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}

// CircuitKey is a short hash of where the model is asked and with which key; it tells
// neither.
func (c *Client) CircuitKey() string { return c.circuit }
