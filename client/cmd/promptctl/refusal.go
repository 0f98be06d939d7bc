package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// errorDomain marks the refusals of this service, as in google.rpc.ErrorInfo.
const errorDomain = "promptassembly"

// invalidRequest is the fixed message of every request that is refused with INVALID_REQUEST, also
// of one that this program cannot even send.
const invalidRequest = "the request is not valid"

// noSuchMessage is the refusal of a text that is no request: what the server answers to bytes that
// are none.
func noSuchMessage() *status.Status {
	reason := strings.TrimPrefix(pb.ErrorReason_ERROR_REASON_INVALID_REQUEST.String(), "ERROR_REASON_")
	st, err := status.New(codes.InvalidArgument, invalidRequest).
		WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: errorDomain})
	if err != nil {
		panic(err) // the message is a constant
	}
	return st
}

// unreadable is the refusal of a request that could not be read from the input: err is errTooLong,
// or says why it is no JSON or no such message. unit is what was read, for people.
func unreadable(err error, unit string) *status.Status {
	if errors.Is(err, errTooLong) {
		return status.Newf(codes.ResourceExhausted, "the %s is %v", unit, err)
	}
	return noSuchMessage()
}

// codeName is the canonical name, such as INVALID_ARGUMENT.
func codeName(st *status.Status) string {
	return code.Code(st.Code()).String()
}

// describe renders a refusal for people: a headline, then a line each for the violations, how many
// more there are, what else the service says, and what the user can do about it.
func describe(st *status.Status) string {
	refused := client.ErrorOf(st)
	var out strings.Builder
	line := func(format string, args ...any) {
		out.WriteString(printable(fmt.Sprintf(format, args...)) + "\n")
	}

	headline := codeName(st)
	if name := refused.ReasonName(); name != "" {
		headline += " (" + name + ")"
	}
	line("%s: %s", headline, st.Message())
	for _, violation := range refused.Violations {
		line("  %s: %s", violation.Path, violation.Description)
	}
	if refused.RetryAfter > 0 {
		line("  retry after %s", refused.RetryAfter)
	}
	if more := refused.ViolationCount - len(refused.Violations); more > 0 {
		line("  … and %d more", more)
	}
	for _, key := range slices.Sorted(maps.Keys(refused.Metadata)) {
		if key != "violation_count" {
			line("  %s: %s", key, refused.Metadata[key])
		}
	}
	if refused.Reason == pb.ErrorReason_ERROR_REASON_IDENTITY_MISSING {
		line("  say who calls with --cert and --key, or with --token-file")
	}
	return out.String()
}

// refusalJSON renders a refusal as one line: {"error":{"code":…,"message":…,"details":[…]}}.
func refusalJSON(st *status.Status) ([]byte, error) {
	type body struct {
		Code    string            `json:"code"`
		Message string            `json:"message"`
		Details []json.RawMessage `json:"details"`
	}
	refused := body{Code: codeName(st), Message: st.Message(), Details: []json.RawMessage{}}
	for _, detail := range st.Proto().GetDetails() {
		text, err := detailJSON(detail)
		if err != nil {
			return nil, err
		}
		refused.Details = append(refused.Details, text)
	}
	return encodeJSON(struct {
		Error body `json:"error"`
	}{refused})
}

// detailJSON renders a detail as protojson does, and one of a type that is not known here by its
// bytes.
func detailJSON(detail *anypb.Any) (json.RawMessage, error) {
	if text, err := protojson.Marshal(detail); err == nil {
		return text, nil
	}
	return json.Marshal(map[string]string{
		"@type": detail.GetTypeUrl(),
		"value": base64.StdEncoding.EncodeToString(detail.GetValue()),
	})
}
