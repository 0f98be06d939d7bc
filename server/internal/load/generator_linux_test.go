package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// requestOf returns the encoding of a SelectMemoryRequest with n candidates of about 550 bytes.
func requestOf(n int) []byte {
	req := &pb.SelectMemoryRequest{QueryId: "query-1", UserScope: "tenant-7/user-42"}
	for i := range n {
		req.Candidates = append(req.Candidates, &pb.MemoryContextCandidate{
			MemoryId:   fmt.Sprintf("mem-%06d", i),
			Text:       fmt.Sprintf("%d %s", i, strings.Repeat("The user prefers short reports. ", 13)),
			UserScope:  "tenant-7/user-42",
			Score:      new(float64(n-i) / float64(n)),
			SourceRank: uint32(i + 1),
			Provenance: &pb.Provenance{
				SourceId: "conversation-00042", SourceType: "conversation", Title: "Weekly planning notes",
				CapturedAt: &timestamppb.Timestamp{Seconds: 1_700_000_000},
			},
		})
	}
	wire, err := proto.Marshal(req)
	if err != nil {
		panic(err) // the text above is no UTF-8
	}
	return wire
}

// encoded is a codec of messages that are encoded already. Answers are not decoded.
type encoded struct{}

func (encoded) Name() string { return "proto" }
func (encoded) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}
func (encoded) Unmarshal(mem.BufferSlice, any) error { return nil }

// generator makes calls over connections that it takes in turn.
type generator struct {
	connections []*grpc.ClientConn
	next        atomic.Uint64
	request     []byte
	tokens      []string // that calls send in turn; none: none
}

// dial returns a generator of calls with that request, for the length of the benchmark. It binds this
// process to the second processor.
func dial(b *testing.B, p *process, connections int, transport credentials.TransportCredentials, request []byte) *generator {
	b.Helper()
	g, err := newGenerator(p.address, connections, transport, request)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(g.close)
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		b.Fatal(err)
	}
	for _, thread := range threads {
		if id, err := strconv.Atoi(thread.Name()); err == nil {
			runOn(b, id, 1)
		}
	}
	return g
}

// newGenerator returns a generator that the caller closes; without transport it calls in plaintext.
func newGenerator(address string, connections int, transport credentials.TransportCredentials, request []byte) (*generator, error) {
	if transport == nil {
		transport = insecure.NewCredentials()
	}
	g := &generator{request: request}
	for range connections {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(transport), grpc.WithDisableRetry(),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(encoded{}), grpc.MaxCallRecvMsgSize(64<<20)))
		if err != nil {
			return nil, err
		}
		g.connections = append(g.connections, conn)
	}
	return g, nil
}

func (g *generator) close() {
	for _, conn := range g.connections {
		_ = conn.Close()
	}
}

// call makes one call and returns its code.
func (g *generator) call(ctx context.Context) codes.Code {
	turn := g.next.Add(1)
	conn := g.connections[turn%uint64(len(g.connections))]
	if n := uint64(len(g.tokens)); n > 0 {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+g.tokens[turn%n])
	}
	return status.Code(conn.Invoke(ctx, pb.PromptAssemblyService_SelectMemory_FullMethodName, &g.request, new([]byte)))
}

// closed makes calls, so many at a time, for a duration and returns how many were answered.
func (g *generator) closed(b *testing.B, concurrent int, d time.Duration) int {
	b.Helper()
	var answered, failed atomic.Int64
	var last atomic.Uint32 // code of a call that failed
	end := time.Now().Add(d)
	var all sync.WaitGroup
	for range concurrent {
		all.Go(func() {
			for time.Now().Before(end) {
				switch code := g.call(b.Context()); code {
				case codes.OK:
					answered.Add(1)
				case codes.ResourceExhausted: // as a client would, it comes back later
					time.Sleep(time.Duration(25+rand.IntN(50)) * time.Millisecond)
				default:
					failed.Add(1)
					last.Store(uint32(code))
				}
			}
		})
	}
	all.Wait()
	if failed.Load() > 0 {
		b.Fatalf("%d calls failed, one with %v", failed.Load(), codes.Code(last.Load()))
	}
	return int(answered.Load())
}

// outcome is what became of the calls of an open loop. Latencies count from when a call was due.
type outcome struct {
	answered, refused []time.Duration
	failed            int
	late              int // calls that were more than 10 ms late to be made
}

// open makes calls at a rate, at random intervals and whatever becomes of them, for a duration.
func (g *generator) open(ctx context.Context, perSecond float64, d time.Duration) outcome {
	var (
		mu  sync.Mutex
		o   outcome
		all sync.WaitGroup
	)
	random := rand.New(rand.NewPCG(1, 2))
	begin := time.Now()
	for due := time.Duration(0); due < d && ctx.Err() == nil; due += time.Duration(random.ExpFloat64() / perSecond * float64(time.Second)) {
		if early := due - time.Since(begin); early > 0 {
			time.Sleep(early)
		} else if early < -10*time.Millisecond {
			o.late++
		}
		all.Go(func() {
			code := g.call(ctx)
			took := time.Since(begin) - due
			mu.Lock()
			defer mu.Unlock()
			switch code {
			case codes.OK:
				o.answered = append(o.answered, took)
			case codes.ResourceExhausted:
				o.refused = append(o.refused, took)
			default:
				o.failed++
			}
		})
	}
	all.Wait()
	return o
}

// quantile returns the latency within which that part of the calls ended, in milliseconds.
func quantile(of []time.Duration, q float64) float64 {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[int(q*float64(len(of)-1))].Seconds() * 1000
}
