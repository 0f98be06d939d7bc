package server_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// harmless is a valid request that holds a text in each field, and an entry in each map.
func harmless() *pb.PlanPromptRequest {
	r := planned(nil)
	eachTextIn(r.ProtoReflect(), "", func(_ string, get func() string, set func(string)) {
		set(strings.ReplaceAll(get(), canary, "text"))
	})
	r.QueryId, r.Memory.QueryId = "", ""
	id := r.GetMemory().GetRecall().GetHits()[0].GetMemoryId()
	r.Memory.ConflictKeys = map[string]string{id: "slot"}
	r.Memory.AuthorityByMemoryId = map[string]pb.Authority{id: pb.Authority_AUTHORITY_USER_DEFAULT}
	return r
}

// eachTextIn calls f for each text in m: those of its fields, also if empty, and of what it holds.
func eachTextIn(m protoreflect.Message, path string, f func(name string, get func() string, set func(string))) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		name := strings.TrimPrefix(path+"."+string(field.Name()), ".")
		switch {
		case field.IsMap():
			entries := m.Mutable(field).Map()
			entries.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				f(name+" key", key.String, func(text string) {
					entries.Clear(key)
					key = protoreflect.ValueOfString(text).MapKey()
					entries.Set(key, value)
				})
				if field.MapValue().Kind() == protoreflect.StringKind {
					f(name+" value", func() string { return entries.Get(key).String() }, func(text string) {
						entries.Set(key, protoreflect.ValueOfString(text))
					})
				}
				return false
			})
		case field.Kind() == protoreflect.StringKind && field.IsList():
			list := m.Mutable(field).List()
			f(name, func() string { return list.Get(0).String() }, func(text string) {
				list.Set(0, protoreflect.ValueOfString(text))
			})
		case field.Kind() == protoreflect.StringKind:
			f(name, func() string { return m.Get(field).String() }, func(text string) {
				m.Set(field, protoreflect.ValueOfString(text))
			})
		case field.Message() != nil && field.IsList():
			eachTextIn(m.Mutable(field).List().Get(0).Message(), name, f)
		case field.Message() != nil:
			eachTextIn(m.Mutable(field).Message(), name, f)
		}
	}
}

// namesIn returns what the status of a request with the canary in one field names by contract.
func namesIn(name, text string) []string {
	for _, field := range []string{"conflict_keys", "authority_by_memory_id"} {
		if strings.HasSuffix(name, field+" key") {
			return []string{strings.TrimSuffix(name, " key") + `["` + text + `"]`}
		}
	}
	return nil
}

// Every text of a request, alone, in a request that is valid but for what it does to it.
func TestCanaryInEachText(t *testing.T) {
	w := &watch{observed: observe(t, server.Config{}, true)}
	client := pb.NewPromptAssemblyServiceClient(dial(t, w.address))
	var names []string
	answered := 0
	for _, text := range []string{canary, canary + "\n", strings.Repeat(canary, 100), canary + strings.Repeat("x", 1<<18)} {
		plan := harmless()
		names = nil
		eachTextIn(plan.ProtoReflect(), "", func(name string, get func() string, set func(string)) {
			names = append(names, name)
			was := get()
			set(text)
			defer set(was)
			key := namesIn(name, text)
			if text != canary { // then it is no identifier, and the fault is at the map
				key = nil
			}
			logged := make(map[string]any)
			if name == "query_id" && text == canary {
				logged["query_id"] = canary
			}
			_, err := client.PlanPrompt(t.Context(), plan)
			if err == nil {
				answered++
			}
			w.hides(t, err, logged, key...)

			name, below := strings.CutPrefix(name, "memory.")
			if !below {
				return
			}
			clear(logged)
			if name == "query_id" && text == canary {
				logged["query_id"] = canary
			}
			for i := range key {
				key[i] = strings.TrimPrefix(key[i], "memory.")
			}
			_, err = client.SelectMemory(t.Context(), plan.GetMemory())
			w.hides(t, err, logged, key...)
		})
	}
	var want []string
	eachText(new(pb.PlanPromptRequest).ProtoReflect(), func(name string, _ func(string)) { want = append(want, name) })
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("texts %q, want %q", names, want)
	}
	t.Logf("%d texts, %d calls, of which %d plans are answered", len(names), w.lines, answered)
	if answered < len(names)/2 {
		t.Errorf("%d plans are answered, want most of one for each of %d texts", answered, len(names))
	}
}

// Every text at once, in requests that are answered, refused, or no request at all.
func TestCanaryInAllTexts(t *testing.T) {
	w := &watch{observed: observe(t, server.Config{CallLog: server.CallLog{Scope: server.ScopePlain}}, true)}
	conn := dial(t, w.address)
	valid := marshal(t, planned(nil))
	ids := map[string]any{"query_id": planned(nil).GetQueryId(), "scope": planned(nil).GetMemory().GetUserScope()}
	text := protowire.AppendString(nil, canary)
	edited := func(edit func(r *pb.PlanPromptRequest)) []byte { return marshal(t, planned(edit)) }
	one := &pb.Budget{Bound: &pb.Budget_Limit{Limit: 1}}
	for name, test := range map[string]struct {
		request []byte
		code    codes.Code
		logged  map[string]any
		names   []string
	}{
		"answered": {valid, codes.OK, ids, nil},
		"undefined enum": {edited(func(r *pb.PlanPromptRequest) {
			r.Memory.Candidates[0].Authority, r.Segments[0].Kind = 99, 99
		}), codes.InvalidArgument, ids, nil},
		"tokenizer": {edited(func(r *pb.PlanPromptRequest) { r.Tokenizer = canary }), codes.InvalidArgument, ids, nil},
		"map keys": {edited(func(r *pb.PlanPromptRequest) {
			r.Memory.ConflictKeys = map[string]string{`canary "1"`: canary}
			r.Memory.AuthorityByMemoryId = map[string]pb.Authority{"canary 2": 99}
		}), codes.InvalidArgument, ids, []string{
			`memory.conflict_keys["canary \"1\""]`, `memory.authority_by_memory_id["canary 2"]`,
		}},
		"blank segment": {edited(func(r *pb.PlanPromptRequest) {
			r.Segments[0].Name, r.Segments[0].Required, r.Segments[0].Body = "canary-s", new(true), nil
		}), codes.FailedPrecondition, ids, []string{"segment=canary-s"}},
		"budget": {edited(func(r *pb.PlanPromptRequest) {
			r.Segments[0].Name, r.Segments[0].Required, r.MaxChars = "canary-s", new(true), one
		}), codes.FailedPrecondition, ids, []string{"segments=canary-s"}},
		"same names": {edited(func(r *pb.PlanPromptRequest) {
			r.Segments = append(r.Segments, proto.CloneOf(r.GetSegments()[0]))
			r.Memory.Candidates = append(r.Memory.Candidates, proto.CloneOf(r.GetMemory().GetCandidates()[0]))
		}), codes.InvalidArgument, ids, nil},
		"unknown fields": {
			slices.Concat(valid, []byte{0xfa, 0x3e}, text, nest(slices.Concat([]byte{0xfa, 0x3e}, text), 3, 6)),
			codes.InvalidArgument, ids, nil,
		}, // for the candidate is empty but for it
		"unknown fields alone": {slices.Concat(valid, []byte{0xfa, 0x3e}, text), codes.OK, ids, nil},
		"a wrong type":         {slices.Concat([]byte{0x08, 1}, valid, []byte{0x30, 1}), codes.OK, ids, nil},
		"truncated":            {append(slices.Clone(valid), 0x0a, 200, 'c', 'a', 'n', 'a', 'r', 'y'), codes.InvalidArgument, nil, nil},
		"no UTF-8":             {append(slices.Clone(valid), append([]byte{0x0a, 12, 0xff}, canary...)...), codes.InvalidArgument, nil, nil},
		"nothing but text":     {[]byte(canary), codes.InvalidArgument, nil, nil},
		"too many":             {append(slices.Clone(valid), nest(bytesOf(10_001, 0x32, 0), 3)...), codes.InvalidArgument, nil, nil},
		"too large": {
			append(slices.Clone(valid), []byte(strings.Repeat(canary, 16<<20/len(canary)))...),
			codes.ResourceExhausted, nil, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := callBytes(t, conn, "PlanPrompt", test.request)
			checkCode(t, err, test.code)
			w.hides(t, err, maps.Clone(test.logged), test.names...)
		})
	}
}

// bytesOf returns a pattern n times.
func bytesOf(n int, pattern ...byte) []byte { return slices.Repeat(pattern, n) }

// The value of a panic, which may be anything of a request.
func TestPanicsAreHidden(t *testing.T) {
	o := observe(t, server.Config{Interceptors: []grpc.UnaryServerInterceptor{
		func(_ context.Context, req any, _ *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
			panic(req)
		},
	}}, true)
	w := &watch{observed: o}
	_, err := callBytes(t, dial(t, o.address), "SelectMemory", marshal(t, selected(nil)))
	checkCode(t, err, codes.Internal)
	eventually(t, "the panic and the call are logged", func() bool { return len(o.lines(t)) == 2 })
	scope := o.lines(t)[1]["scope"]
	w.hides(t, err, map[string]any{"query_id": selected(nil).GetQueryId(), "scope": scope})
}
