package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"time"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// serve runs a server on this machine and returns its address.
func serve() (address string, stop func()) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	s := server.New(server.Config{Logger: slog.New(slog.DiscardHandler)})
	go func() { _ = s.Serve(listener) }()
	return listener.Addr().String(), s.Stop
}

// Which of two memories that contradict each other enters the prompt.
func ExampleDial() {
	address, stop := serve()
	defer stop()

	c, err := client.Dial(address)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	answer, err := c.SelectMemory(context.Background(), client.SelectRequest("user:mei", []client.Memory{
		{
			ID: "python-usual", Text: "Prefers Python for scripts.", Score: 0.96,
			SourceID: "profile-7", SourceType: "profile",
			CapturedAt:  time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
			ConflictKey: "preference:automation-language",
		},
		{
			ID: "go-this-time", Text: "Please use Go this time.", Score: 0.72,
			SourceID: "turn-42", SourceType: "conversation",
			ConflictKey: "preference:automation-language",
			Authority:   pb.Authority_AUTHORITY_CURRENT_TURN,
		},
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, decision := range answer.GetPlan().GetDecisions() {
		fmt.Println(decision.GetMemoryId(), decision.GetReason())
	}
	// Output:
	// go-this-time MEMORY_DECISION_REASON_SELECTED
	// python-usual MEMORY_DECISION_REASON_AUTHORITY_LOSER
}

// A prompt out of two segments and what is remembered.
func ExampleClient_PlanPrompt() {
	address, stop := serve()
	defer stop()
	c, err := client.Dial(address)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	memory := client.SelectRequest("user:mei", []client.Memory{
		{ID: "m1", Text: "Prefers Go.", Score: 0.9, SourceID: "profile-7", SourceType: "profile"},
	})
	memory.Policy = &pb.MemorySelectionPolicy{Rendering: pb.MemoryRendering_MEMORY_RENDERING_COMPACT}
	answer, err := c.PlanPrompt(context.Background(), &pb.PlanPromptRequest{
		Segments: []*pb.PromptSegment{
			client.Segment(pb.SegmentKind_SEGMENT_KIND_BASE_INSTRUCTIONS, "Be careful."),
			client.Segment(pb.SegmentKind_SEGMENT_KIND_WORKING_MODE, "Ask before you write."),
		},
		Memory:   memory,
		MaxChars: client.Limit(2_000),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.GetPlan().GetPrompt())
	// Output:
	// Be careful.
	//
	// ---
	//
	// <recalled_memory user_scope="user:mei" selected="1">
	// <memory_hit n="1">Prefers Go.</memory_hit>
	// </recalled_memory>
	//
	// ---
	//
	// Ask before you write.
}

// What a refusal says.
func ExampleError() {
	address, stop := serve()
	defer stop()
	c, err := client.Dial(address)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	_, err = c.SelectMemory(context.Background(), client.SelectRequest("user:mei", []client.Memory{
		{ID: "m1", Text: "Prefers Go.", Score: 90, SourceID: "profile-7", SourceType: "profile"},
	}))
	var refused *client.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Code, refused.Reason)
		for _, violation := range refused.Violations {
			fmt.Println(violation.Path)
		}
	}
	// Output:
	// InvalidArgument ERROR_REASON_INVALID_REQUEST
	// candidates[0].score
}

// Two servers: when one is gone, the other answers.
func ExampleDialAll() {
	first, stopFirst := serve()
	second, stopSecond := serve()
	defer stopSecond()

	c, err := client.DialAll([]string{first, second}, client.WithTimeout(10*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	for range 4 {
		answer, err := c.ListTokenizers(context.Background(), &pb.ListTokenizersRequest{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(len(answer.GetTokenizers()) > 0)
		stopFirst()
	}
	// Output:
	// true
	// true
	// true
	// true
}
