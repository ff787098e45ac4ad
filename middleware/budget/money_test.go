package budget_test

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/middleware/budget"
	"github.com/holdfast-agents/holdfast/store"
)

func TestParseMoney(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]budget.Money{
		"0": 0, "10": 10_000_000, "2.5": 2_500_000, "2.50": 2_500_000, "0.000001": 1, "007": 7_000_000,
		"9007199254.740992": 1 << 53,
	} {
		if got, err := budget.ParseMoney(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "write it like 10 or 2.50", "-1": "write it like", "+1": "write it like", "1e3": "write it like",
		"1.": "write it like", ".5": "write it like",
		"1,5": "write it like", " 1": "write it like", "1.2.3": "write it like", "NaN": "write it like",
		"٣":         "write it like",
		"0.0000001": "more than 6 decimals", "9007199254.740993": "the most that is counted is 9007199254.740992",
		"99999999999999999999": "too much money",
	} {
		if got, err := budget.ParseMoney(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %d, %v, want an error with %q", text, got, err, want)
		}
	}
}

func TestMoneyIsWrittenAsItIsRead(t *testing.T) {
	t.Parallel()
	for money, want := range map[budget.Money]string{
		0: "0.00", 1: "0.000001", 10_000_000: "10.00", 2_500_000: "2.50", 75_000: "0.075", -1_500_000: "-1.50",
		math.MinInt64: "-9223372036854.775808",
	} {
		if got := money.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	var read struct{ A, B, C budget.Money }
	if err := json.Unmarshal([]byte(`{"A":2.5,"B":"10.02","C":3}`), &read); err != nil || read.A != 2_500_000 ||
		read.B != 10_020_000 || read.C != 3_000_000 {
		t.Errorf("got %+v, %v", read, err)
	}
	if text, err := json.Marshal(read); err != nil || string(text) != `{"A":2.50,"B":10.02,"C":3.00}` {
		t.Errorf("got %s, %v", text, err)
	}
	for _, bad := range []string{`{"A":true}`, `{"A":1e2}`, `{"A":"\ud800x"}`, `{"A":-1}`} {
		if err := json.Unmarshal([]byte(bad), &read); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
	var m budget.Money
	if err := m.UnmarshalJSON([]byte(`"`)); err == nil {
		t.Error("half a text was read")
	}
}

// FuzzParseMoney: an amount is read exactly, and written in a form that is read as the
// same amount.
func FuzzParseMoney(f *testing.F) {
	for _, seed := range []string{"0", "10", "2.50", "0.000001", "9007199254.740992", "1e3", "-1", "1.", ".5",
		"0.1234567", "00000000000000000000001"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		money, err := budget.ParseMoney(text)
		if err != nil {
			return
		}
		exact, ok := new(big.Rat).SetString(text)
		if !ok || exact.Cmp(big.NewRat(int64(money), 1_000_000)) != 0 || money < 0 || int64(money) > store.MaxAmount {
			t.Errorf("%q was read as %d millionths", text, money)
		}
		if again, err := budget.ParseMoney(money.String()); err != nil || again != money {
			t.Errorf("%s was read as %d, %v, and not as %d", money, again, err, money)
		}
	})
}

func money(t *testing.T, text string) budget.Money {
	t.Helper()
	m, err := budget.ParseMoney(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
