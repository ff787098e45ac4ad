package budget

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast/store"
)

// Money is an amount in millionths of a currency's unit, which is exact, unlike a float. In
// JSON and YAML it is an amount in units, as a number or a string: 2.5 or "2.50".
type Money int64

// moneyDecimals is how many decimals an amount may have, and microsPerUnit how many of the
// smallest amounts make a unit.
const (
	moneyDecimals = 6
	microsPerUnit = 1_000_000
)

// ParseMoney reads an amount such as "10", "2.50" or "0.000001", exactly. A sign, an
// exponent and anything smaller than a millionth are errors.
func ParseMoney(text string) (Money, error) {
	whole, fraction, point := strings.Cut(text, ".")
	if !digits(whole) || point && !digits(fraction) {
		return 0, fmt.Errorf("%.40q is not an amount of money; write it like 10 or 2.50", text)
	}
	if len(fraction) > moneyDecimals {
		return 0, fmt.Errorf("%.40q has more than %d decimals; nothing smaller than a millionth is counted", text,
			moneyDecimals)
	}
	fraction += strings.Repeat("0", moneyDecimals-len(fraction))
	micros, err := strconv.ParseInt(whole+fraction, 10, 64)
	if err != nil || micros > store.MaxAmount {
		return 0, fmt.Errorf("%.40q is too much money; the most that is counted is %s", text, Money(store.MaxAmount))
	}
	return Money(micros), nil
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// String returns the amount in units, with two decimals, or more if it needs them.
func (m Money) String() string {
	sign := ""
	micros := uint64(m)
	if m < 0 {
		sign, micros = "-", -micros
	}
	fraction := fmt.Sprintf("%0*d", moneyDecimals, micros%microsPerUnit)
	for len(fraction) > 2 && fraction[len(fraction)-1] == '0' {
		fraction = fraction[:len(fraction)-1]
	}
	return fmt.Sprintf("%s%d.%s", sign, micros/microsPerUnit, fraction)
}

// MarshalJSON writes the amount in units as a number.
func (m Money) MarshalJSON() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalJSON reads an amount in units, from a number or a string.
func (m *Money) UnmarshalJSON(data []byte) error {
	text := string(bytes.TrimSpace(data))
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(data, &text); err != nil {
			return fmt.Errorf("an amount of money: %w", err)
		}
	}
	parsed, err := ParseMoney(text)
	if err != nil {
		return err
	}
	*m = parsed
	return nil
}
