package rpc

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	validatepb "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// The rules in the .proto files, which clients check with protovalidate, and those in plain Go here
// are the same: they find fault with the same paths.

// TestValidateAgreesWithProtovalidate compares both on seeded requests.
func TestValidateAgreesWithProtovalidate(t *testing.T) {
	const requests = 1500
	for name, generate := range map[string]func(seed int) proto.Message{
		"SelectMemory": func(seed int) proto.Message { return selectRequests.Example(seed) },
		"PlanPrompt":   func(seed int) proto.Message { return planRequests.Example(seed) },
	} {
		t.Run(name, func(t *testing.T) {
			valid := 0
			for seed := range requests {
				if agree(t, generate(seed)) {
					valid++
				}
			}
			t.Logf("%d of %d requests are valid", valid, requests)
			if valid < requests/5 || valid > requests-requests/5 {
				t.Errorf("%d of %d requests are valid, want at least a fifth of either verdict", valid, requests)
			}
		})
	}
}

// FuzzValidate compares both on requests that are drawn from the fuzzer's bytes.
func FuzzValidate(f *testing.F) {
	for seed := range uint64(20) {
		bytes := make([]byte, 16<<10)
		_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(bytes)
		f.Add(bytes)
	}
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		if rapid.Bool().Draw(t, "plan") {
			agree(t, planRequests.Draw(t, "request"))
		} else {
			agree(t, selectRequests.Draw(t, "request"))
		}
	}))
}

// agree fails the test unless both find fault with the same paths of a request, and reports whether
// it is valid. The rules across lists are set aside.
func agree(t rapid.TB, m proto.Message) (valid bool) {
	t.Helper()
	want := protovalidatePaths(t, m)
	if path := tooMany(marshal(t, m), m); path != "" { // which answers alone
		if !slices.Contains(want, path) {
			t.Fatalf("too many elements at %s, protovalidate finds fault with %q", path, want)
		}
		return false
	}
	f := validate(nil, m)
	if f.count > len(f.listed) {
		t.Fatalf("%d faults, only %d of them listed", f.count, len(f.listed))
	}
	var got []string
	for _, violation := range f.listed {
		switch violation.GetDescription() {
		case idOccurredBefore, nameOccurredBefore, annotationWithoutID:
		default:
			got = append(got, violation.GetField())
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("faulty paths differ (-protovalidate +validate):\n%s\n%v", diff, m)
	}
	return len(got) == 0
}

// fieldOf gives the rules that protovalidate reports at a message the field where they belong.
var fieldOf = map[string]string{
	"select_memory_request.candidates": "candidates",
	"select_memory_request.user_scope": "user_scope",
	"select_memory_request.grant":      "grant",
	"plan_prompt_request.grant":        "grant",
	"plan_prompt_request.memory_grant": "memory.grant",
	"recall_result.scope":              "query.user_scope",
	"prompt_segment.name":              "name",
	"prompt_segment.required":          "required",
}

// protovalidatePaths returns the paths that protovalidate finds fault with, each once and in byte
// order, as the contract names them.
func protovalidatePaths(t rapid.TB, m proto.Message) []string {
	t.Helper()
	err := protovalidate.Validate(m)
	if err == nil {
		return nil
	}
	invalid, ok := errors.AsType[*protovalidate.ValidationError](err)
	if !ok {
		t.Fatal(err)
	}
	var faulty []string
	badEntries := make(map[string]string) // the maps of entries whose key is no identifier
	for _, violation := range invalid.Violations {
		at := contractPath(violation.Proto.GetField().GetElements())
		switch field, ofMessage := fieldOf[violation.Proto.GetRuleId()]; {
		case violation.Proto.GetForKey():
			badEntries[at] = at[:strings.IndexByte(at, '[')]
			continue
		case ofMessage && at != "":
			at += "." + field
		case ofMessage:
			at = field
		case at == "recall.hits" || at == "memory.recall.hits": // hits and candidates are limited together
			at = strings.TrimSuffix(at, "recall.hits") + "candidates"
		case strings.HasSuffix(at, ".score_breakdown"): // absent
			at += ".total"
		}
		faulty = append(faulty, at)
	}
	faulty = slices.DeleteFunc(faulty, func(at string) bool { return badEntries[at] != "" })
	faulty = slices.AppendSeq(faulty, maps.Values(badEntries))
	slices.Sort(faulty)
	return slices.Compact(faulty)
}

func contractPath(elements []*validatepb.FieldPathElement) string {
	var at *path
	for _, element := range elements {
		at = at.field(element.GetFieldName())
		switch subscript := element.GetSubscript().(type) {
		case *validatepb.FieldPathElement_Index:
			at = at.at(int(subscript.Index))
		case *validatepb.FieldPathElement_StringKey:
			at = at.keyed(subscript.StringKey)
		}
	}
	if at == nil {
		return ""
	}
	return at.String()
}

func marshal(t rapid.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
