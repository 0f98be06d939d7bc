package server_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"strconv"
	"testing"

	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // for the whole process, as an exporter of traces does
	"google.golang.org/protobuf/encoding/protowire"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// checkGrowth fails if the heap grows by more than a number of MiB while f runs.
func checkGrowth(t *testing.T, most uint64, f func()) {
	t.Helper()
	grown := heapGrowth(f)
	t.Logf("the heap grew by %d KiB", grown>>10)
	if grown > most<<20 {
		t.Errorf("the heap grew by %d MiB, want at most %d", grown>>20, most)
	}
}

// Matched terms, of which a request may hold millions, are checked and left out.
func TestMatchedTermsTakeLittleMemory(t *testing.T) {
	const hits, terms = 8000, 1000
	var request []byte
	for i := range hits {
		hit := hitOf(candidate(strconv.Itoa(i), "t"))
		breakdown := append(marshal(t, hit.GetScoreBreakdown()), bytes.Repeat([]byte{0x32, 0}, terms)...)
		hit.ScoreBreakdown = nil
		request = append(request, nest(append(marshal(t, hit), nest(breakdown, 6)...), 3, 2)...)
	}
	scope := marshal(t, &pb.SelectMemoryRequest{UserScope: "u"})
	if len(request) > 16<<20-100 {
		t.Fatalf("%d bytes, more than a message may have", len(request))
	}
	o := observe(t, server.Config{}, false)
	conn := dial(t, o.address)
	for name, test := range map[string]struct {
		request []byte
		code    codes.Code
	}{
		"valid":   {append(scope, request...), codes.OK},
		"invalid": {request, codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			checkGrowth(t, 96, func() {
				_, err := callBytes(t, conn, "SelectMemory", test.request)
				checkCode(t, err, test.code)
				o.isAlive(t)
			})
			o.isEmpty(t)
		})
	}
}

// The length prefix is enough to refuse a message that is too large.
func TestTooLargeMessagesAreNotReceived(t *testing.T) {
	o := observe(t, server.Config{}, false)
	p := dialPeer(t, o.address)
	checkGrowth(t, 8, func() {
		for _, size := range []uint32{16<<20 + 1, 17 << 20, 1<<32 - 1} {
			stream := p.open(false, headersOf(servicePath+"SelectMemory")...)
			p.data(stream, false, binary.BigEndian.AppendUint32([]byte{0}, size))
			if a := p.wait(stream); a.code() != codes.ResourceExhausted || a.header["grpc-status-details-bin"] != "" {
				t.Errorf("%d bytes: %v, want RESOURCE_EXHAUSTED without details", size, a.header)
			}
		}
		o.isAlive(t)
	})
	o.isEmpty(t)
}

// A smaller limit of messages is kept, too.
func TestLimitOfMessages(t *testing.T) {
	o := observe(t, server.Config{Limits: server.Limits{MessageBytes: 1000}}, false)
	conn := dial(t, o.address)
	for size, code := range map[int]codes.Code{998: codes.InvalidArgument, 999: codes.ResourceExhausted} {
		field := protowire.AppendVarint([]byte{0x12}, uint64(size-1)) // two bytes of length
		_, err := callBytes(t, conn, "SelectMemory", append(field, make([]byte, size-1)...))
		checkCode(t, err, code)
	}
}

// A compression that the process knows is not accepted either: 16 KiB can hold 16 MiB.
func TestGzipBomb(t *testing.T) {
	bomb := compress(make([]byte, 16<<20))
	t.Logf("%d bytes for 16 MiB", len(bomb))
	o := observe(t, server.Config{}, false)
	client := http2Client(t)
	for _, method := range []string{"SelectMemory", "PlanPrompt", "ListTokenizers"} {
		checkGrowth(t, 8, func() {
			body := bytes.NewReader(framed(1, bomb))
			code := post(t, client, o.address, method, body, map[string][]string{"Grpc-Encoding": {"gzip"}})
			if code != codes.Unimplemented {
				t.Errorf("%s: %v, want UNIMPLEMENTED", method, code)
			}
			o.isAlive(t)
		})
	}
	o.isEmpty(t)
}

// What is named as not compressed is as good as what names nothing.
func TestIdentityEncoding(t *testing.T) {
	o := observe(t, server.Config{}, false)
	message := marshal(t, &pb.SelectMemoryRequest{UserScope: "u"})
	var body io.Reader = bytes.NewReader(framed(0, message))
	code := post(t, http2Client(t), o.address, "SelectMemory", body, map[string][]string{"Grpc-Encoding": {"identity"}})
	if code != codes.OK {
		t.Errorf("%v, want OK", code)
	}
}
