package schema

import "regexp"

// stripPatterns removes from a schema the regular expressions that Go cannot
// compile, so that the rest of the schema still holds.
func stripPatterns(schema any) {
	switch s := schema.(type) {
	case []any:
		for _, v := range s {
			stripPatterns(v)
		}
	case map[string]any:
		stripObject(s)
	}
}

func stripObject(s map[string]any) {
	if p, ok := s["pattern"].(string); ok && !compiles(p) {
		delete(s, "pattern")
	}
	if members, ok := s["patternProperties"].(map[string]any); ok {
		for p := range members {
			if !compiles(p) {
				delete(members, p)
				// Members that matched the pattern would now count as unknown.
				delete(s, "additionalProperties")
				delete(s, "unevaluatedProperties")
			}
		}
	}
	for k, v := range s {
		switch k {
		case "enum", "const", "default", "examples":
			// These hold values, not schemas.
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
			if named, ok := v.(map[string]any); ok {
				for _, sub := range named {
					stripPatterns(sub)
				}
			}
		default:
			stripPatterns(v)
		}
	}
}

func compiles(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil
}
