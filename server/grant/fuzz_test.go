package grant_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"runtime"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/grant"
)

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// most is what reading n bytes may allocate: some copies of them, and what is there always.
func most(n int) uint64 { return 16*uint64(n) + 1<<20 }

// FuzzParse reads any token: it panics on none, takes memory for none beyond what the token itself takes,
// and what it accepts it spells back.
func FuzzParse(f *testing.F) {
	keys := vectorKeys(f)
	public := keys.Keys[0].Public().Key
	for _, seed := range []string{
		"", "..", "e30.e30.e30", "e30..", `{"payload":"","protected":"","signature":""}`,
		base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"EdDSA","kid":"1","typ":"promptassembly-grant","iss":"i"}`)) + ".AA.AA",
		base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte(`{"a":`), 2000)) + ".AA.AA",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, token []byte) {
		var signed *grant.Signed
		var err error
		if n := allocated(func() {
			if signed, err = grant.Parse(token); err == nil {
				_, err = signed.Verify(public)
			}
		}); n > most(len(token)) {
			t.Errorf("%d bytes for a token of %d", n, len(token))
		}
		if invalid, ok := errors.AsType[*grant.InvalidError](err); !ok || invalid.Check == "" {
			t.Errorf("a token that nobody has signed: %v", err)
		}
	})
}

// FuzzOpen reads any payload under a signature that holds. What it accepts is what the library reads, and
// nothing more.
func FuzzOpen(f *testing.F) {
	g, err := proto.Marshal(granted(func(*pb.Grant) {}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(g)
	f.Add(append(bytes.Clone(g), g...))
	f.Add([]byte("\x2a\x00"))
	f.Add([]byte("\x0a\x01a\x12\x00\x1a\x02\x08\x01\x22\x01q\x32\x04\x1a\x02\x4a\x00"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		var contents *grant.Contents
		var err error
		if n := allocated(func() { contents, err = grant.Open(payload) }); n > most(len(payload)) {
			t.Errorf("%d bytes for a payload of %d", n, len(payload))
		}
		if err != nil {
			if invalid, ok := errors.AsType[*grant.InvalidError](err); !ok || invalid.Check != grant.Payload {
				t.Errorf("%v", err)
			}
			return
		}
		m := new(pb.Grant)
		if err := proto.Unmarshal(payload, m); err != nil {
			return // what is within is for whoever decodes it
		}
		if len(m.ProtoReflect().GetUnknown()) > 0 || (m.GetPlanPrompt() != nil) != contents.Plan ||
			m.GetAudience() != contents.Audience || m.GetQueryId() != contents.QueryID || !m.GetIssueTime().AsTime().Equal(contents.Issued) {
			t.Errorf("%v is read as %+v", m, contents)
		}
		if m.GetSelectMemory().GetGrant() != nil || m.GetPlanPrompt().GetGrant() != nil || m.GetPlanPrompt().GetMemory().GetGrant() != nil {
			t.Errorf("a grant within: %v", m)
		}
		within := proto.Message(new(pb.SelectMemoryRequest))
		if contents.Plan {
			within = new(pb.PlanPromptRequest)
		}
		if err := proto.Unmarshal(contents.Request, within); err != nil {
			t.Errorf("the request within: %v", err)
		}
	})
}
