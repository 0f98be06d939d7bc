package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// few calls at a time leave none waiting for so long that there is no room for it: some take a while.
const few = 8

// BenchmarkTokenizer compares the processor time that a call takes with o200k_base with that of one with
// the estimate, in alternating rounds: warm is the ratio where the same memories come in every call,
// cold where none ever came before. With the default policy few memories are counted, with the other
// one all that no gate rejects.
func BenchmarkTokenizer(b *testing.B) {
	unlimited := &pb.Budget{Bound: &pb.Budget_Unlimited{Unlimited: true}}
	for _, p := range []struct {
		name   string
		policy *pb.MemorySelectionPolicy
	}{
		{"default", nil},
		{"unlimited", &pb.MemorySelectionPolicy{TopK: new(uint32(1 << 30)), MaxChars: unlimited, MaxTokens: unlimited}},
	} {
		for _, n := range []int{100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", p.name, n), func(b *testing.B) {
				estimate, exact := mixedRequest(n, p.policy, "estimate"), mixedRequest(n, p.policy, "o200k_base")
				for b.Loop() {
					for _, against := range []struct {
						name string
						kind kind
					}{{"warm", whole}, {"cold", cold}} {
						servers := []*process{start(b, against.kind, ""), start(b, against.kind, "")}
						costs, ratios := compare(b, servers, []*generator{
							dial(b, servers[0], spread, nil, estimate), dial(b, servers[1], spread, nil, exact),
						}, few)
						b.ReportMetric(median(ratios), against.name)
						b.ReportMetric(median(costs[0]), "µs/estimate-call")
						b.ReportMetric(median(costs[1]), "µs/"+against.name+"-call")
					}
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// mixedRequest returns the encoding of a SelectMemoryRequest with n candidates of about 525 bytes, one in
// eight of them Chinese.
func mixedRequest(n int, policy *pb.MemorySelectionPolicy, tokenizer string) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("The user prefers deploys to run from main after tests pass and asked that reports stay short " +
		"with figures first; Alice reviews migrations, Bob owns billing. Use PostgreSQL 15 in staging & production, never SQLite <3.40>")
	chinese := []rune("用户希望报告简短先列数字再解释原因，部署只能从主分支进行。每周五上午评审数据库迁移，生产环境使用")
	req := &pb.SelectMemoryRequest{UserScope: "tenant-7/user-42", Policy: policy, Tokenizer: tokenizer}
	for i := range n {
		var text strings.Builder
		for text.Len() < 400 {
			if i%8 == 7 {
				text.WriteRune(chinese[random.IntN(len(chinese))])
			} else {
				text.WriteString(words[random.IntN(len(words))] + " ")
			}
		}
		req.Candidates = append(req.Candidates, &pb.MemoryContextCandidate{
			MemoryId: fmt.Sprintf("mem-%06d", i), Text: text.String(), UserScope: req.GetUserScope(),
			Score: new(float64(random.IntN(10000)) / 10000), SourceRank: uint32(i + 1),
			Provenance: &pb.Provenance{
				SourceId: fmt.Sprintf("conversation-%05d", i), SourceType: "conversation", Title: "Weekly planning notes",
				CapturedAt: &timestamppb.Timestamp{Seconds: 1_700_000_000 + random.Int64N(1e7)},
			},
		})
	}
	wire, err := proto.Marshal(req)
	if err != nil {
		panic(err) // the text above is no UTF-8
	}
	return wire
}

// strange makes every call one of a scope that was never there before, so that no count is remembered.
func strange() grpc.UnaryServerInterceptor {
	var calls atomic.Int64
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if r, ok := req.(*pb.SelectMemoryRequest); ok {
			r.UserScope = "tenant-7/" + strconv.FormatInt(calls.Add(1), 10)
			for _, c := range r.GetCandidates() {
				c.UserScope = r.GetUserScope()
			}
		}
		return next(ctx, req)
	}
}
