package redaction

// minCardDigits is the smallest number of digits in a card number.
const minCardDigits = 13

// cardNumbers finds the card numbers in groups of digits, such as the first four groups
// of "4111 1111 1111 1111 1227".
func cardNumbers(run string) [][2]int {
	var out [][2]int
	for i := 0; i < len(run); {
		to := cardNumber(run[i:])
		if to > 0 {
			out = append(out, [2]int{i, i + to})
			i += to
		}
		for i < len(run) && isDigit(run[i]) { // to the next group
			i++
		}
		for i < len(run) && !isDigit(run[i]) {
			i++
		}
	}
	return out
}

// cardNumber returns the end of the card number with which the text begins: the longest
// one that ends together with a group; 0 if there is none.
func cardNumber(text string) int {
	var digits []byte
	end := 0
	for i := 0; i < len(text) && len(digits) < 19; i++ {
		if !isDigit(text[i]) {
			continue
		}
		digits = append(digits, text[i]-'0')
		if (i+1 == len(text) || !isDigit(text[i+1])) && isCard(digits) {
			end = i + 1
		}
	}
	return end
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isCard checks the first digits and the length, as the large issuers assign them, and
// the check digit.
func isCard(d []byte) bool {
	if len(d) < minCardDigits {
		return false
	}
	two := d[0]*10 + d[1]
	switch n := len(d); {
	case d[0] == 4: // Visa
		return (n == 13 || n == 16 || n == 19) && luhn(d)
	case two >= 51 && two <= 55, two >= 22 && two <= 27: // Mastercard
		return n == 16 && luhn(d)
	case two == 34, two == 37: // American Express
		return n == 15 && luhn(d)
	case two == 30, two == 36, two == 38, two == 39: // Diners Club
		return n == 14 && luhn(d)
	case two == 35, two == 60, two == 62, two == 64, two == 65: // JCB, Discover, UnionPay
		return n >= 16 && luhn(d)
	}
	return false
}

// luhn checks a number by its check digit.
func luhn(digits []byte) bool {
	sum := 0
	for i, d := range digits {
		n := int(d)
		if (len(digits)-i)%2 == 0 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	return sum%10 == 0
}
