package rpc

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/memory"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// BenchmarkCall has the steps of one SelectMemory call beside decoding, at 1,000 candidates of about
// 525 bytes.
func BenchmarkCall(b *testing.B) {
	const n = 1000
	req := &pb.SelectMemoryRequest{UserScope: "tenant-7/user-42"}
	for i := range n {
		req.Candidates = append(req.Candidates, &pb.MemoryContextCandidate{
			MemoryId:   fmt.Sprintf("mem-%06d", i),
			Text:       fmt.Sprintf("%d %s", i, strings.Repeat("The user prefers short reports. ", 12)),
			UserScope:  "tenant-7/user-42",
			Score:      new(float64(n-i) / n),
			SourceRank: uint32(i + 1),
			Provenance: &pb.Provenance{
				SourceId:   "conversation-00042",
				SourceType: "conversation",
				Title:      "Weekly planning notes",
				CapturedAt: &timestamppb.Timestamp{Seconds: 1_700_000_000},
			},
		})
	}
	data, err := proto.Marshal(req)
	if err != nil {
		b.Fatal(err)
	}
	in := toMemoryRequest(req, tokens.Estimate{})
	plan, err := memory.Select(b.Context(), in)
	if err != nil {
		b.Fatal(err)
	}
	answer := fromMemoryPlan(&in, plan)

	for _, step := range []struct {
		name string
		run  func()
	}{
		{"count", func() { count(data, req) }},
		{"decode", func() { _ = unmarshal(data, new(pb.SelectMemoryRequest), &elements{candidates: n}) }},
		{"decode-library", func() { _ = proto.Unmarshal(data, new(pb.SelectMemoryRequest)) }},
		{"validate", func() { validate(nil, req) }},
		{"convert", func() { toMemoryRequest(req, tokens.Estimate{}) }},
		{"select", func() { _, _ = memory.Select(b.Context(), in) }},
		{"convert-back", func() { fromMemoryPlan(&in, plan) }},
		{"marshal", func() { _, _ = proto.Marshal(answer) }},
	} {
		b.Run(step.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				step.run()
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/n, "ns/candidate")
		})
	}
}
