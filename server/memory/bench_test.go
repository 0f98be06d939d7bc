package memory_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/budget"
	"github.com/promptassembly/promptassembly/server/memory"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// The candidates of the benchmarks take about 525 bytes on the wire each: 400 of text (one in eight
// Chinese), a slot in every fourth, duplicates and low scores among them, in no order.
func benchCandidates(n int) []memory.Candidate {
	random := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("The user prefers deploys to run from main after tests pass and asked that reports stay short " +
		"with figures first; Alice reviews migrations, Bob owns billing. Use PostgreSQL 15 in staging & production, never SQLite <3.40>")
	chinese := []rune("用户希望报告简短先列数字再解释原因，部署只能从主分支进行。每周五上午评审数据库迁移，生产环境使用")
	candidates := make([]memory.Candidate, n)
	for i := range candidates {
		var text strings.Builder
		if i%8 == 7 {
			for text.Len() < 400 {
				text.WriteRune(chinese[random.IntN(len(chinese))])
			}
		} else {
			for text.Len() < 400 {
				text.WriteString(words[random.IntN(len(words))])
				text.WriteByte(' ')
			}
		}
		candidates[i] = memory.Candidate{
			ID:         fmt.Sprintf("mem-%06d", i),
			Text:       text.String(),
			Scope:      "tenant-7/user-42",
			Score:      float64(random.IntN(10000)) / 10000,
			SourceRank: uint32(i + 1),
			Provenance: memory.Provenance{
				SourceID:   fmt.Sprintf("conversation-%05d", random.IntN(100000)),
				SourceType: "conversation",
				Title:      "Weekly planning notes",
				CapturedAt: memory.Instant{Seconds: 1_700_000_000 + random.Int64N(1e7), Set: true},
			},
			Authority: memory.Authority(random.IntN(3)),
		}
		if i%4 == 0 {
			candidates[i].ConflictKey = fmt.Sprintf("preference:topic-%d", random.IntN(n))
		}
		if i%20 == 19 {
			candidates[i].Text = candidates[i-19].Text
		}
	}
	return candidates
}

// encoded returns the same candidates as a request on the wire.
func encoded(b *testing.B, candidates []memory.Candidate) []byte {
	b.Helper()
	req := &pb.SelectMemoryRequest{UserScope: "tenant-7/user-42"}
	for _, c := range candidates {
		req.Candidates = append(req.Candidates, &pb.MemoryContextCandidate{
			MemoryId:   c.ID,
			Text:       c.Text,
			UserScope:  c.Scope,
			Score:      &c.Score,
			SourceRank: c.SourceRank,
			Provenance: &pb.Provenance{
				SourceId:   c.Provenance.SourceID,
				SourceType: c.Provenance.SourceType,
				Title:      c.Provenance.Title,
				CapturedAt: &timestamppb.Timestamp{Seconds: c.Provenance.CapturedAt.Seconds},
			},
			ConflictKey: c.ConflictKey,
			Authority:   pb.Authority(c.Authority) + 1,
		})
	}
	data, err := proto.Marshal(req)
	if err != nil {
		b.Fatal(err)
	}
	return data
}

var policies = []struct {
	name   string
	policy memory.Policy
}{
	{"default", memory.DefaultPolicy()},
	{"wide", memory.Policy{MinScore: 0.35, TopK: 50, MaxChars: budget.Of(60_000), MaxTokens: budget.Of(20_000)}},
	{"unlimited", memory.Policy{TopK: 1 << 31, MaxChars: budget.Unlimited(), MaxTokens: budget.Unlimited()}},
}

// decode decodes a request and returns its candidates, with the strings that decoding made, and how
// long decoding alone took.
func decode(b *testing.B, data []byte) ([]memory.Candidate, time.Duration) {
	b.Helper()
	start := time.Now()
	req := new(pb.SelectMemoryRequest)
	if err := proto.Unmarshal(data, req); err != nil {
		b.Fatal(err)
	}
	took := time.Since(start)
	candidates := make([]memory.Candidate, len(req.GetCandidates()))
	for i, c := range req.GetCandidates() {
		p := c.GetProvenance()
		candidates[i] = memory.Candidate{
			ID:         c.GetMemoryId(),
			Text:       c.GetText(),
			Scope:      c.GetUserScope(),
			Score:      c.GetScore(),
			SourceRank: c.GetSourceRank(),
			Provenance: memory.Provenance{
				SourceID:   p.GetSourceId(),
				SourceType: p.GetSourceType(),
				Title:      p.GetTitle(),
				CapturedAt: memory.Instant{Seconds: p.GetCapturedAt().GetSeconds(), Set: true},
			},
			ConflictKey: c.GetConflictKey(),
			Authority:   memory.Authority(c.GetAuthority() - 1),
		}
	}
	return candidates, took
}

// BenchmarkSelect reports the time that Select takes for a candidate, its allocations, and the ratio
// of its time to that of decoding the same candidates. As in a call, each run selects from what was
// decoded just before, so that what else the machine does falls on both. ns/op is the whole.
func BenchmarkSelect(b *testing.B) {
	for _, p := range policies {
		for _, n := range []int{10, 100, 1000, 5000} {
			b.Run(fmt.Sprintf("%s/%d", p.name, n), func(b *testing.B) {
				req := memory.Request{Scope: "tenant-7/user-42", Candidates: benchCandidates(n), Policy: p.policy, Counter: tokens.Estimate{}}
				data := encoded(b, req.Candidates)
				selectFrom(req) // fills tables and scratch memory
				var selecting, decoding []float64
				for b.Loop() {
					candidates, took := decode(b, data)
					decoding = append(decoding, float64(took))
					req.Candidates = candidates
					start := time.Now()
					selectFrom(req)
					selecting = append(selecting, float64(time.Since(start)))
				}
				b.ReportMetric(median(selecting)/float64(n), "ns/candidate")
				b.ReportMetric(median(selecting)/median(decoding), "of-decoding")
				b.ReportMetric(testing.AllocsPerRun(20, func() { selectFrom(req) }), "allocs/select")
				b.ReportMetric(float64(len(data))/float64(n), "B/candidate")
			})
		}
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// BenchmarkSelectWorst has what could make a pipeline slow: one text as long as may be among 10,000
// candidates, 10,000 candidates for one slot, and 10,000 texts that differ only in their middle.
func BenchmarkSelectWorst(b *testing.B) {
	long := benchCandidates(10_000)
	long[5000].Text = strings.Repeat("Use <b>Go</b> & Rust\n---\n", 262_144/25)
	slot := benchCandidates(10_000)
	for i := range slot {
		slot[i].ConflictKey = "preference:editor"
	}
	alike := benchCandidates(10_000)
	for i := range alike {
		alike[i].Text = fmt.Sprintf("The user prefers %d reports a week", i)
	}
	for _, w := range []struct {
		name       string
		candidates []memory.Candidate
	}{{"long-text", long}, {"one-slot", slot}, {"alike", alike}} {
		b.Run(w.name, func(b *testing.B) {
			req := memory.Request{Scope: "tenant-7/user-42", Candidates: w.candidates, Policy: policies[2].policy, Counter: tokens.Estimate{}}
			for b.Loop() {
				selectFrom(req)
			}
		})
	}
}
