package thread

import (
	"encoding/json"
	"strconv"
	"strings"
)

// sameNumbers writes the numbers in a value, as a decoder with UseNumber returns it, so that
// those that are equal read alike, and no others: 1, 1.0 and 10e-1.
func sameNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return sameNumber(v)
	case []any:
		for i := range v {
			v[i] = sameNumbers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = sameNumbers(v[name])
		}
	}
	return v
}

// sameNumber returns a number as digits without zeros at either end, and an exponent. A
// number whose exponent is beyond all measure stays as it is written.
func sameNumber(n json.Number) json.Number {
	text, sign := string(n), ""
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		text, sign = rest, "-"
	}
	mantissa, power, _ := strings.Cut(strings.ToLower(text), "e")
	exponent := int64(0)
	if power != "" {
		var err error
		if exponent, err = strconv.ParseInt(power, 10, 62); err != nil {
			return n
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent -= int64(len(fraction))
	if digits == "" {
		return "0"
	}
	short := strings.TrimRight(digits, "0")
	exponent += int64(len(digits) - len(short))
	return json.Number(sign + short + "e" + strconv.FormatInt(exponent, 10))
}
