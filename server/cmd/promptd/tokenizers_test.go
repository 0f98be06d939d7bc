package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// small describes a small vocabulary.
const small = "../../tokens/bpe/testdata/small/"

func TestTokenizersOfFiles(t *testing.T) {
	p := start(t, "--tokenizers", "mine="+small+"gpt2.json, qwen="+small+"qwen.json")
	client := pb.NewPromptAssemblyServiceClient(dial(t, p.address))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	listed, err := client.ListTokenizers(ctx, &pb.ListTokenizersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	sources := make(map[string]string)
	for _, tokenizer := range listed.GetTokenizers() {
		sources[tokenizer.GetName()] = tokenizer.GetSource()
	}
	for _, name := range []string{"mine", "qwen"} {
		if !strings.HasPrefix(sources[name], "tokenizer.json, sha256:") {
			t.Errorf("the source of %s is %q", name, sources[name])
		}
	}
	answer, err := client.PlanPrompt(ctx, &pb.PlanPromptRequest{Tokenizer: "mine", Segments: []*pb.PromptSegment{
		{Name: "a", Body: &pb.PromptSegment_Text{Text: "a b"}},
	}})
	if err != nil || answer.GetPlan().GetUsedTokens() != 2 || answer.GetPlan().GetTokenizer() != "mine" {
		t.Errorf("%v, %v, want two tokens", answer, err)
	}
}

// A file that cannot be used ends the start, and is told before it as well.
func TestTokenizersThatAreRefused(t *testing.T) {
	broken := writeFile(t, `{"version": "1.0", "model": {"type": "Unigram"}}`)
	folder := t.TempDir()
	for name, test := range map[string]struct {
		list string
		want []string
	}{
		"no file":     {"mine=/nowhere", []string{"mine: open /nowhere: "}},
		"a folder":    {"mine=" + folder, []string{"mine: " + folder + ": not a regular file"}}, // as a pipe is none
		"no use":      {"mine=" + broken, []string{"mine: " + broken + ": tokenizer.json: "}},
		"no name":     {broken, []string{`"` + broken + `" is not NAME=FILE`}},
		"two of them": {"a=/nowhere,b=/nothing", []string{"a: open /nowhere: ", "b: open /nothing: "}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, args := range [][]string{withAccess("--admin-listen", "off"), {"config", "show"}} {
				var stdout, stderr bytes.Buffer
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // in case it serves
				defer cancel()
				if status := run(ctx, append(args, "--tokenizers", test.list), nil, &stdout, &stderr); status != exitUsage || stdout.Len() > 0 {
					t.Errorf("%q: exit status %d with %q, want %d", args, status, stdout.String(), exitUsage)
				}
				lines := strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")
				if len(lines) != len(test.want)+2 { // the first says that it is the configuration, the last where help is
					t.Fatalf("%q: stderr %q", args, lines)
				}
				for i, want := range test.want {
					if want = "  tokenizers (--tokenizers): " + want; !strings.HasPrefix(lines[i+1], want) {
						t.Errorf("%q: line %q, want %q", args, lines[i+1], want)
					}
				}
			}
		})
	}
}
