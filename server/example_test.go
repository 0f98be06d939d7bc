package server_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// A program that holds the service in its own process and calls it over memory.
func ExampleNew() {
	listener := bufconn.Listen(1 << 20)
	s := server.New(server.Config{})
	go func() { _ = s.Serve(listener) }()

	conn, err := grpc.NewClient("passthrough:///in-process",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	answer, err := pb.NewPromptAssemblyServiceClient(conn).ListTokenizers(ctx, &pb.ListTokenizersRequest{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tokenizer := range answer.GetTokenizers() {
		if !tokenizer.GetExact() {
			fmt.Println(tokenizer.GetName())
		}
	}

	_ = conn.Close()
	s.Drain(ctx, 0)
	// Output: estimate
}
