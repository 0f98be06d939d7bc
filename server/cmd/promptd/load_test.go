package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// A process that is told to end under load answers every call that it has accepted, whatever its
// size: those made before the signal, and those made while it waits.
func TestSIGTERMUnderLoad(t *testing.T) {
	const wait = 500 * time.Millisecond
	cmd, log := process(t, "--drain-wait", wait.String(), "--limits-in-flight-bytes", "1GiB") // all are one caller's
	address, _ := log.addresses(t)

	var signalled atomic.Pointer[time.Time]
	var callers sync.WaitGroup
	for _, load := range []struct{ callers, memories, bytes int }{
		{4, 10, 1_000}, {2, 10, 60_000}, {1, 60, 200_000},
	} {
		request := large(load.memories, load.bytes)
		for range load.callers {
			client := pb.NewPromptAssemblyServiceClient(dial(t, address))
			callers.Go(func() {
				for calls := 0; ; calls++ {
					begun := time.Now()
					_, err := client.SelectMemory(t.Context(), request, grpc.MaxCallRecvMsgSize(64<<20))
					if err == nil {
						continue
					}
					at := signalled.Load()
					if at == nil || begun.Before(at.Add(wait)) || status.Code(err) != codes.Unavailable {
						t.Errorf("call %d with %d bytes a memory: %v", calls, load.bytes, err)
					}
					if calls == 0 {
						t.Errorf("no call with %d bytes a memory was answered", load.bytes)
					}
					return
				}
			})
		}
	}
	time.Sleep(time.Second)
	now := time.Now()
	signalled.Store(&now)
	send(t, cmd, syscall.SIGTERM)
	callers.Wait()
	if err := cmd.Wait(); err != nil {
		t.Errorf("promptd ends with %v, want exit status 0", err)
	}
	for _, line := range log.rest() {
		if strings.Contains(line, "msg=call") && !strings.Contains(line, "code=OK") {
			t.Errorf("promptd logs %s", line)
		}
	}
}

// large returns a request with so many memories of so many bytes, which all are selected.
func large(memories, bytes int) *pb.SelectMemoryRequest {
	unlimited := &pb.Budget{Bound: &pb.Budget_Unlimited{Unlimited: true}}
	req := &pb.SelectMemoryRequest{UserScope: "u", Policy: &pb.MemorySelectionPolicy{
		TopK: new(uint32(memories)), MaxChars: unlimited, MaxTokens: unlimited,
	}}
	for i := range memories {
		req.Candidates = append(req.Candidates, &pb.MemoryContextCandidate{
			MemoryId: fmt.Sprint(i), Text: fmt.Sprint(i, strings.Repeat(" text", bytes/5)), UserScope: "u", Score: new(0.9),
			SourceRank: 1, Provenance: &pb.Provenance{SourceId: "s", SourceType: "t"},
		})
	}
	return req
}
