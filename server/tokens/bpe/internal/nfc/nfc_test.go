package nfc

import (
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

func form(s string) string { return string(New().Append(nil, []byte(s))) }

func TestAppend(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"plain", "plain"},
		{"e\u0301", "é"},
		{"xe\u0301y", "xéy"},
		{"<\u0338>\u0338", "\u226E\u226F"},
		{"a\u0323\u0307", "\u1EA1\u0307"},
		{"a\u0307\u0323", "\u1EA1\u0307"},
		{"q\u0307\u0323", "q\u0323\u0307"},
		{"\u1100\u1161\u11A8", "각"},
		{"가\u11A8", "각"},
		{"가\u11A7", "가\u11A7"},
		{"각\u11A8", "각\u11A8"},
		{"\u1100\u0301\u1161", "\u1100\u0301\u1161"},
		{"\u212B\u2126", "ÅΩ"},
		{"\u0344", "\u0308\u0301"},
		{"\u0958", "\u0915\u093C"}, // excluded from composition
		{"\u09C7\u09BE", "\u09CB"},
		{"\u0301e\u0301", "\u0301é"},
		{"\uF900", "\u8C48"},
		{"e\u0898\u0301", "e\u0898\u0301"},               // a mark of Unicode 14.0: not one yet
		{"\U00011935\U00011930", "\U00011935\U00011930"}, // composes since Unicode 13.0
	} {
		if got := form(tt.text); got != tt.want {
			t.Errorf("%+q becomes %+q, want %+q", tt.text, got, tt.want)
		}
	}
}

func TestIs(t *testing.T) {
	for text, want := range map[string]bool{"": true, "plain é 中 가": true, "e\u0301": false, "\u1161": false, "\u212B": false} {
		if got := New().Is([]byte(text)); got != want {
			t.Errorf("%+q: %t", text, got)
		}
	}
}

// The library has the data of a later Unicode version, which agrees on what the older one knows, and
// breaks up runs of more than 30 marks.
func TestAppendAsTheLibrary(t *testing.T) {
	known := []rune("aeqAEoıσЙ<>= \n가각한中क়ড়ାоै\u0300\u0301\u0302\u0303\u0307\u0308\u030A\u0323\u0327\u0338\u0345\u0344\u0340\u0374\u037E\u05B0\u05BC\u093C\u09BE" +
		"\u09C7\u09D7\u0F71\u0F72\u0F74\u0F73\u1100\u1112\u1161\u1175\u11A7\u11A8\u11C2\u1E9B\u1FBE\u212A\u212B\u2126\u2ADC\u302A\u3099\u304B\uAC00\uD788\uF900\uFB1D\U0001D15E\U0001D165\U0002F800")
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOfN(rapid.SampledFrom(known), 0, 20).Draw(t, "text"))
		if got, want := form(text), norm.NFC.String(text); got != want {
			t.Fatalf("%+q becomes %+q, want %+q", text, got, want)
		}
		if New().Is([]byte(text)) && form(text) != text {
			t.Fatalf("%+q is in form C, but is changed", text)
		}
	})
}

func TestAppendToLongRuns(t *testing.T) {
	marks := strings.Repeat("\u0323\u0307", 1000)
	if got, want := form("a"+marks), "\u1EA1"+strings.Repeat("\u0323", 999)+strings.Repeat("\u0307", 1000); got != want {
		t.Errorf("a run of marks becomes %.20q…", got)
	}
}
