package memory

import (
	"math"
	"time"
)

// appendScore appends a score from 0 to 1, rounded to four decimals, without trailing zeros.
func appendScore(dst []byte, score float64) []byte {
	n := tenThousandths(score)
	if n == 10000 {
		return append(dst, '1')
	}
	dst = append(dst, '0')
	if n == 0 {
		return dst
	}
	dst = append(dst, '.')
	for unit := uint32(1000); n > 0; unit /= 10 {
		dst = append(dst, byte('0'+n/unit))
		n %= unit
	}
	return dst
}

func scoreChars(score float64) int {
	n := tenThousandths(score)
	switch {
	case n%10000 == 0:
		return len("0")
	case n%1000 == 0:
		return len("0.1")
	case n%100 == 0:
		return len("0.01")
	case n%10 == 0:
		return len("0.001")
	default:
		return len("0.0001")
	}
}

// tenThousandths returns the exact value of 10,000 times a score from 0 to 1, rounded to the
// nearest integer, ties to even.
func tenThousandths(score float64) uint32 {
	product := float64(score * 10000)
	rounded := math.RoundToEven(product)
	if floor := math.Floor(product); product-floor == 0.5 {
		// Perhaps a tie only because the product was rounded: what it lacks decides.
		switch missing := math.FMA(score, 10000, -product); {
		case missing < 0:
			rounded = floor
		case missing > 0:
			rounded = floor + 1
		}
	}
	return uint32(rounded)
}

// appendInstant appends RFC 3339 in UTC, with a fraction only where it is not zero.
func appendInstant(dst []byte, i Instant) []byte {
	return i.utc().AppendFormat(dst, time.RFC3339Nano)
}

func instantChars(i Instant) int {
	n := len("2006-01-02T15:04:05Z")
	if i.Nanos == 0 {
		return n
	}
	n += len(".999999999")
	for nanos := i.Nanos; nanos%10 == 0; nanos /= 10 {
		n--
	}
	return n
}

// digits returns the number of decimal digits of n.
func digits(n uint64) int {
	d := 1
	for ; n >= 10; n /= 10 {
		d++
	}
	return d
}
