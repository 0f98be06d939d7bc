package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// errorDomain marks the refusals of this service, as in google.rpc.ErrorInfo.
const errorDomain = "promptassembly"

// invalidRequest is the fixed message of every request that is refused with INVALID_REQUEST, also
// of one that this program cannot even send.
const invalidRequest = "the request is not valid"

// violationCount is the metadata key under which a refusal counts all faulty paths, those that
// were cut from its list included.
const violationCount = "violation_count"

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

// errorInfo returns the service's own account of a refusal, nil if there is none: then it comes
// from the transport, or from something between.
func errorInfo(st *status.Status) *errdetails.ErrorInfo {
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == errorDomain {
			return info
		}
	}
	return nil
}

// codeName is the canonical name, such as INVALID_ARGUMENT.
func codeName(st *status.Status) string {
	return code.Code(st.Code()).String()
}

// describe renders a refusal for people: a headline, then a line each for the violations, how many
// more there are, and what else the details hold.
func describe(st *status.Status) string {
	info := errorInfo(st)
	var out strings.Builder
	line := func(format string, args ...any) {
		out.WriteString(printable(fmt.Sprintf(format, args...)) + "\n")
	}

	headline := codeName(st)
	if info != nil {
		headline += " (" + info.GetReason() + ")"
	}
	line("%s: %s", headline, st.Message())

	listed := 0
	for _, detail := range st.Details() {
		switch detail := detail.(type) {
		case *errdetails.BadRequest:
			for _, violation := range detail.GetFieldViolations() {
				line("  %s: %s", violation.GetField(), violation.GetDescription())
				listed++
			}
		case *errdetails.RetryInfo:
			line("  retry after %s", detail.GetRetryDelay().AsDuration())
		}
	}
	metadata := info.GetMetadata()
	if count, err := strconv.Atoi(metadata[violationCount]); err == nil && count > listed {
		line("  … and %d more", count-listed)
	}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if key != violationCount {
			line("  %s: %s", key, metadata[key])
		}
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
