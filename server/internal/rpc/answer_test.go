package rpc

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/stats"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// An answer gives its room back when grpc has written it, or when the call's stream was reset before:
// grpc may drop the buffer then and not say so.
func TestRoomOfAnswers(t *testing.T) {
	s := testService(nil)
	large := &pb.SelectMemoryResponse{Plan: &pb.MemoryContextPlan{Context: strings.Repeat("x", 5000)}}
	call := func() (context.Context, frame, callers) {
		t.Helper()
		handler := callers{s.gates}
		ctx := handler.TagConn(t.Context(), new(stats.ConnTagInfo))
		ctx = context.WithValue(ctx, arrivalKey{}, &arrival{caller: callerOf(ctx)})
		answer, err := s.answer(ctx, large)
		if err != nil {
			t.Fatal(err)
		}
		if held := s.gates.Answers.Used(); held < 5000 {
			t.Errorf("%d bytes are held for the answer", held)
		}
		return ctx, answer.(frame), handler
	}
	empty := func(when string) {
		t.Helper()
		if held := s.gates.Answers.Used(); held != 0 {
			t.Errorf("%s: %d bytes are held", when, held)
		}
	}

	ctx, answer, handler := call()
	handler.HandleRPC(ctx, new(stats.OutTrailer))
	handler.HandleRPC(ctx, new(stats.End))
	if s.gates.Answers.Used() == 0 {
		t.Error("nothing is held for an answer that is not written yet")
	}
	answer.free()
	empty("written")

	ctx, _, handler = call()
	handler.HandleRPC(ctx, &stats.End{Error: errors.New("reset")})
	empty("reset")

	ctx, answer, handler = call()
	handler.HandleRPC(ctx, &stats.End{Error: errors.New("reset")})
	answer.free()
	empty("reset and written")
}
