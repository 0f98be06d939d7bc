package rpc

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// Nothing is selected, so nothing counted, for a caller that waits no more.
func TestNothingIsSelectedForNobody(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancelLate()

	s := testService(slog.Default(), panicking{})
	m := selectFrom(&pb.Provenance{SourceId: "s", SourceType: "t"})
	m.Tokenizer = panicking{}.Name()
	for ctx, want := range map[context.Context]codes.Code{cancelled: codes.Canceled, late: codes.DeadlineExceeded} {
		if _, err := s.SelectMemory(ctx, m); status.Code(err) != want {
			t.Errorf("SelectMemory: %v, want %v", err, want)
		}
		if _, err := s.PlanPrompt(ctx, &pb.PlanPromptRequest{Memory: m, Tokenizer: m.GetTokenizer()}); status.Code(err) != want {
			t.Errorf("PlanPrompt: %v, want %v", err, want)
		}
	}
}
