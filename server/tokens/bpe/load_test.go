package bpe_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/promptassembly/promptassembly/server/tokens/bpe"
)

func small(t testing.TB, name string) []byte {
	file, err := os.ReadFile("testdata/small/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func load(t testing.TB, name string) *bpe.Counter {
	c, err := bpe.Load(name, small(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLoadedDescribesItself(t *testing.T) {
	c := load(t, "qwen")
	if c.Name() != "qwen" || !c.Exact() {
		t.Errorf("name %q, exact %t", c.Name(), c.Exact())
	}
	source, hash, _ := strings.Cut(c.Source(), "sha256:")
	if source != "tokenizer.json, " || len(hash) != 16 || !strings.Contains(c.Version(), hash) {
		t.Errorf("source %q, version %q", c.Source(), c.Version())
	}
	if other := load(t, "gpt2"); other.Version() == c.Version() || other.Source() == c.Source() {
		t.Errorf("two files have the version %q and the source %q", c.Version(), c.Source())
	}
}

// changed returns the file of the variant gpt2 with what the JSON says merged into it.
func changed(t testing.TB, change string) []byte {
	var file, changes map[string]any
	if err := json.Unmarshal(small(t, "gpt2"), &file); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(change), &changes); err != nil {
		t.Fatal(err)
	}
	mergeInto(file, changes)
	made, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func mergeInto(file, changes map[string]any) {
	for key, change := range changes {
		deeper, ok := change.(map[string]any)
		inner, also := file[key].(map[string]any)
		if ok && also {
			mergeInto(inner, deeper)
			continue
		}
		file[key] = change
	}
}

const split = `{"type":"Split","pattern":{"Regex":"\\p{N}"},"behavior":"Isolated","invert":false}`

func TestLoadRefuses(t *testing.T) {
	for _, tt := range []struct{ change, want string }{
		{`{"version":"2.0"}`, `version is not "1.0"`},
		{`{"odd":1}`, "odd is a key that is not known"},
		{`{"odd\u001b[31m\n":1}`, `"odd\x1b[31m\n" is a key that is not known`},
		{`{"` + strings.Repeat("x", 1000) + `":1}`, `: "` + strings.Repeat("x", 64) + `" is a key that is not known`},
		{`{"normalizer":{"type":"NFKC"}}`, `normalizer.type is "NFKC": only NFC is known`},
		{`{"normalizer":{"type":"Lowercase"}}`, `normalizer.type is "Lowercase"`},
		{`{"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Strip"}]}}`, `normalizer.normalizers[1].type is "Strip"`},
		{`{"normalizer":{"type":"Sequence"}}`, "normalizer.normalizers is missing"},
		{`{"normalizer":"NFC"}`, "normalizer is not an object"},
		{`{"pre_tokenizer":null}`, "pre_tokenizer is missing"},
		{`{"pre_tokenizer":{"type":"Metaspace"}}`, `pre_tokenizer.type is "Metaspace"`},
		{`{"pre_tokenizer":{"type":"Metaspace","replacement":"x"}}`, `pre_tokenizer.replacement is a key that is not known`},
		{`{"pre_tokenizer":{"type":"Sequence","pretokenizers":[` + split + `]}}`, "pre_tokenizer does not end with ByteLevel"},
		{`{"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},` + split + `]}}`, "pre_tokenizer.pretokenizers[1] comes after ByteLevel"},
		{`{"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"x"},"behavior":"Isolated","invert":false}]}}`, "pre_tokenizer.pretokenizers[0].pattern.Regex is none of the expressions"},
		{`{"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"String":" "},"behavior":"Isolated","invert":false}]}}`, "pattern.Regex is none of the expressions"},
		{`{"pre_tokenizer":{"type":"Sequence","pretokenizers":[` + strings.Replace(split, "Isolated", "Removed", 1) + `]}}`, `behavior is "Removed" and invert false`},
		{`{"pre_tokenizer":{"type":"Sequence","pretokenizers":[` + strings.NewReplacer("Isolated", "Removed", "false", "true").Replace(split) + `]}}`, `behavior is "Removed" and invert true`},
		{`{"pre_tokenizer":{"type":"ByteLevel","use_regex":1}}`, "pre_tokenizer.use_regex is neither true nor false"},
		{`{"added_tokens":{}}`, "added_tokens is not a list"},
		{`{"added_tokens":[{"content":"x","single_word":true,"lstrip":false,"rstrip":false,"normalized":false,"special":false}]}`, "added_tokens[0].single_word is true"},
		{`{"added_tokens":[{"content":"x","lstrip":true}]}`, "added_tokens[0].lstrip is true"},
		{`{"added_tokens":[{"content":"x","rstrip":true}]}`, "added_tokens[0].rstrip is true"},
		{`{"added_tokens":[{"content":""}]}`, "added_tokens[0].content has 0 bytes"},
		{`{"added_tokens":[{"content":"x"},{"content":"x","special":true}]}`, `added_tokens[1].content is "x" for the second time`},
		{`{"added_tokens":[{"content":"\uFFFD"}]}`, "added_tokens[0].content has U+FFFD in it"},
		{`{"model":null}`, "model is not an object"},
		{`{"model":{"type":"Unigram"}}`, `model.type is "Unigram"`},
		{`{"model":{"type":"WordPiece"}}`, `model.type is "WordPiece"`},
		{`{"model":{"byte_fallback":true}}`, "model.byte_fallback is true"},
		{`{"model":{"dropout":0.1}}`, "model.dropout is set"},
		{`{"model":{"continuing_subword_prefix":"##"}}`, "model.continuing_subword_prefix is set"},
		{`{"model":{"end_of_word_suffix":"</w>"}}`, "model.end_of_word_suffix is set"},
		{`{"model":{"max_input_chars_per_word":100}}`, "model.max_input_chars_per_word is a key that is not known"},
		{`{"model":{"vocab":[]}}`, "model.vocab is not an object"},
		{`{"model":{"vocab":{"!":70000}}}`, ""},
		{`{"model":{"vocab":{"!":5}}}`, "as another token is"},
		{`{"model":{"vocab":{"!":-1}}}`, `model.vocab["!"] is no id`},
		{`{"model":{"vocab":{"":70000}}}`, "or it is empty"},
		{`{"model":{"vocab":{"!":null}}}`, `model.vocab["!"] is no id`},
		{`{"model":{"merges":null}}`, "model.merges is missing"},
		{`{"normalizer":` + strings.Repeat(`{"type":"Sequence","normalizers":[`, 9) + strings.Repeat(`]}`, 9) + `}`, "is nested too deeply"},
		{`{"pre_tokenizer":` + strings.Repeat(`{"type":"Sequence","pretokenizers":[`, 9) + strings.Repeat(`]}`, 9) + `}`, "is nested too deeply"},
		{`{"pre_tokenizer":{"type":"Sequence","pretokenizers":[` + strings.Repeat(split+",", 16) + split + `]}}`, "pre_tokenizer.pretokenizers[16] is one of more than 16"},
		{`{"model":{"merges":{}}}`, "model.merges is neither a list of strings nor one of pairs"},
		{`{"model":{"merges":[1]}}`, "model.merges is neither a list of strings nor one of pairs"},
		{`{"model":{"merges":["a b c"]}}`, "model.merges[0] is not two tokens"},
		{`{"model":{"merges":[["a"]]}}`, "model.merges[0] is not two tokens"},
		{`{"model":{"merges":["t h",["i","n"]]}}`, "model.merges is neither a list of strings nor one of pairs"},
		{`{"model":{"merges":["nosuch token"]}}`, `model.merges[0] names the token "nosuch"`},
		{`{"model":{"merges":["▁ a"]}}`, `model.merges[0] names the token "▁", which is not in model.vocab or not of bytes`},
		{`{"model":{"merges":["q z"]}}`, `model.merges[0] makes the token "qz", which is not in model.vocab`},
		{`{"model":{"merges":["t h","t h"]}}`, "model.merges[1] is there for the second time"},
	} {
		c, err := bpe.Load("x", changed(t, tt.change))
		if tt.want == "" {
			if err != nil || c == nil {
				t.Errorf("%s: %v", tt.change, err)
			}
			continue
		}
		if c != nil || err == nil || !strings.HasPrefix(err.Error(), "tokenizer.json: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: the error is %v, want %q in it", tt.change, err, tt.want)
		}
	}
}

func TestLoadRefusesWhatIsNoFile(t *testing.T) {
	whole := string(small(t, "gpt2"))
	for _, tt := range []struct{ file, want string }{
		{"", "it is missing or not JSON"},
		{"null", "it is not an object"},
		{"[]", "it is not an object"},
		{"{}", "pre_tokenizer is missing"},
		{whole[:len(whole)/2], "not JSON"},
		{whole + "{}", "it goes on after its end"},
		{"\xFF" + whole, "it is not valid UTF-8"},
		{strings.Replace(whole, `"version"`, `"model":{},"version"`, 1), "model is there twice"},
		{strings.Replace(whole, `"vocab":{`, `"vocab":{"!":90000,`, 1), `model.vocab has the token "!" twice`},
		{strings.Replace(whole, `"!":`, `"!!!!!!!":`, 1), "model.vocab lacks the byte 0x21"},
		{strings.Repeat(" ", bpe.MaxFile+1), "are read"},
	} {
		_, err := bpe.Load("x", []byte(tt.file))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q: the error is %v, want %q in it", tt.file, err, tt.want)
		}
	}
}

// What does not matter to the counts may be as it likes.
func TestLoadTakes(t *testing.T) {
	want := load(t, "gpt2").Count([]byte("It's remembered, 中文 1234"))
	for _, change := range []string{
		`{"truncation":{"max_length":2},"padding":{"length":50}}`,
		`{"post_processor":{"type":"TemplateProcessing"},"decoder":null}`,
		`{"added_tokens":null}`,
		`{"added_tokens":[{"content":"It's","special":true,"lstrip":true,"single_word":true}]}`,
		`{"model":{"unk_token":"<unk>","fuse_unk":true,"dropout":0,"byte_fallback":false}}`,
		`{"model":{"type":null}}`,
		`{"normalizer":{"type":"Sequence","normalizers":[]}}`,
		`{"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Sequence","pretokenizers":[{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false}]}]}}`,
	} {
		c, err := bpe.Load("x", changed(t, change))
		if err != nil {
			t.Errorf("%s: %v", change, err)
			continue
		}
		if got := c.Count([]byte("It's remembered, 中文 1234")); got != want {
			t.Errorf("%s: %d tokens, want %d", change, got, want)
		}
	}
}

func TestLoadedAdditive(t *testing.T) {
	for _, tt := range []struct {
		change string
		want   bool
	}{
		{`{}`, true},
		{`{"normalizer":{"type":"NFC"}}`, true},
		{`{"pre_tokenizer":{"add_prefix_space":true}}`, false},
		{`{"pre_tokenizer":{"use_regex":false}}`, false}, // a piece is the whole text
		{`{"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},{"type":"ByteLevel","add_prefix_space":false}]}}`, true},
		{`{"added_tokens":[{"content":"<tool_call>"},{"content":"</think>"},{"content":">\n"},{"content":"\n\n"}]}`, true},
		{`{"added_tokens":[{"content":">\n<"}]}`, false},
		{`{"added_tokens":[{"content":"\n<","special":true}]}`, false}, // it would hide others
		{`{"added_tokens":[{"content":"\n\n-"}]}`, false},
		{`{"added_tokens":[{"content":"--"}]}`, false},
		{`{"added_tokens":[{"content":"\" n"}]}`, false},
	} {
		c, err := bpe.Load("x", changed(t, tt.change))
		if err != nil {
			t.Fatal(err)
		}
		if c.Additive() != tt.want {
			t.Errorf("%s: additive is %t", tt.change, c.Additive())
		}
	}
	for _, name := range []string{"numbers", "runs", "spaced", "spaced_pieces"} {
		if load(t, name).Additive() {
			t.Errorf("%s is additive", name)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, name := range []string{"added", "deepseek", "gpt4o", "spaced"} {
		f.Add(small(f, name))
	}
	for _, s := range []string{"", "{", `{"model":{"vocab":{"a":1},"merges":["a a"]},"pre_tokenizer":{"type":"ByteLevel"}}`, `{"added_tokens":[[[[`} {
		f.Add([]byte(s))
	}
	text := []byte("It's <think>\n\n---\n\n中文 e\u0301 1234  \" n")
	f.Fuzz(func(t *testing.T, file []byte) {
		c, err := bpe.Load("x", file)
		if (c == nil) == (err == nil) {
			t.Fatalf("the counter is %v and the error %v", c, err)
		}
		if err == nil && (c.Count(text) < 1 || c.Count(text) > 2*len(text)) {
			t.Errorf("%d tokens", c.Count(text))
		}
	})
}
