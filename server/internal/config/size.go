package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

var units = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// parseSize returns a number of bytes, written as a whole number and a unit of 1,024, which may be
// left out for bytes.
func parseSize(text string) (int64, error) {
	digits, factor := text, int64(1)
	for _, unit := range units {
		if number, ok := strings.CutSuffix(text, unit.name); ok {
			digits, factor = number, unit.bytes
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return 0, err
	}
	if int64(n) > math.MaxInt64/factor {
		return 0, fmt.Errorf("%s is out of range", text)
	}
	return int64(n) * factor, nil
}

// formatSize writes a number of bytes in the largest unit that leaves it whole.
func formatSize(n int64) string {
	for _, unit := range units {
		if n != 0 && n%unit.bytes == 0 && unit.bytes > 1 {
			return strconv.FormatInt(n/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}
