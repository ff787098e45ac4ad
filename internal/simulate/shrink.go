package simulate

// Shrinking makes a story short: steps are left out for as long as the same promise is broken.

// Shrink returns the fewest steps that it finds which still break a promise. breaks plays some
// steps and reports whether they do.
func Shrink(steps []string, breaks func([]string) bool) []string {
	for size := max(1, len(steps)/2); ; size /= 2 {
		for at := 0; at < len(steps); {
			end := min(at+size, len(steps))
			rest := append(append([]string{}, steps[:at]...), steps[end:]...)
			if breaks(rest) {
				steps = rest
			} else {
				at = end
			}
		}
		if size <= 1 {
			return steps
		}
	}
}
