package server_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// Many empty elements in a message of the largest size are counted, not decoded.
func TestEmptyElementsTakeLittleMemory(t *testing.T) {
	const (
		size    = 16 << 20
		ceiling = 64 << 20
	)
	terms := bytes.Repeat([]byte{0x32, 0}, size/2-16)
	for name, request := range map[string][]byte{
		"candidates":    bytes.Repeat([]byte{0x32, 0}, size/2),
		"matched_terms": nest(terms, 3, 2, 6),
	} {
		t.Run(name, func(t *testing.T) {
			if len(request) > size {
				t.Fatalf("%d bytes, more than a message may have", len(request))
			}
			_, address := listen(t, io.Discard)
			conn := dial(t, address)
			grown := heapGrowth(func() {
				_, err := callBytes(t, conn, "SelectMemory", request)
				if status.Code(err) != codes.InvalidArgument {
					t.Errorf("got %v, want INVALID_ARGUMENT", err)
				}
			})
			t.Logf("the heap grew by %d MiB", grown>>20)
			if grown > ceiling {
				t.Errorf("the heap grew by %d MiB, want at most %d", grown>>20, ceiling>>20)
			}
		})
	}
}

// nest returns an encoded message within length-delimited fields, the outermost first.
func nest(message []byte, fields ...protowire.Number) []byte {
	for i := len(fields) - 1; i >= 0; i-- {
		message = protowire.AppendBytes(protowire.AppendTag(nil, fields[i], protowire.BytesType), message)
	}
	return message
}

// heapGrowth returns by how many bytes the heap had grown at most while f ran, garbage included.
func heapGrowth(f func()) uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, peak := m.HeapAlloc, m.HeapAlloc
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(time.Millisecond):
		}
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapAlloc)
	}
	return peak - before
}

// Whatever the bytes, they are the caller's fault or a message.
func TestRandomBytes(t *testing.T) {
	var log lockedBuffer
	_, address := listen(t, &log)
	conn := dial(t, address)
	memory := &pb.SelectMemoryRequest{
		UserScope: "u", ConflictKeys: map[string]string{"h": "slot"},
		Recall:     &pb.RecallResult{Query: &pb.RecallQuery{UserScope: "u"}, Hits: []*pb.RecallHit{hitOf(candidate("h", "hit"))}},
		Candidates: []*pb.MemoryContextCandidate{candidate("c", "text")},
	}
	prompt := &pb.PlanPromptRequest{Memory: memory, Segments: []*pb.PromptSegment{
		{Name: "rules", Required: new(true), Body: &pb.PromptSegment_Text{Text: "rules"}},
	}}
	for method, valid := range map[string][]byte{
		"SelectMemory":   marshal(t, memory),
		"PlanPrompt":     marshal(t, prompt),
		"ListTokenizers": {0x08, 0x01},
	} {
		t.Run(method, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			seen := make(map[codes.Code]int)
			for range 1500 {
				request := bytes.Clone(valid)
				if random.IntN(3) == 0 {
					request = make([]byte, random.IntN(64))
					for i := range request {
						request[i] = byte(random.Uint32())
					}
				} else {
					for range 1 + random.IntN(3) {
						request[random.IntN(len(request))] = byte(random.Uint32())
					}
				}
				_, err := callBytes(t, conn, method, request)
				seen[status.Code(err)]++
				switch status.Code(err) {
				case codes.OK, codes.InvalidArgument, codes.FailedPrecondition:
				default:
					t.Errorf("%x: %v", request, err)
				}
			}
			t.Logf("answers: %v", seen)
			if seen[codes.OK] == 0 || seen[codes.InvalidArgument] == 0 {
				t.Errorf("answers %v, want some of each kind", seen)
			}
		})
	}
	if text := log.String(); text != "" {
		t.Errorf("the server logged:\n%s", text)
	}
}
