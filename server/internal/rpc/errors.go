package rpc

import (
	"context"
	"errors"
	"sort"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/grant"
	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/observe"
	"github.com/promptassembly/promptassembly/server/internal/policy"
	"github.com/promptassembly/promptassembly/server/prompt"
)

// domain is the ErrorInfo.domain of every refusal.
const domain = "promptassembly"

// maxStatusBytes bounds a serialised google.rpc.Status: details travel in HTTP/2 trailers, and
// several clients fail on more than 8 KiB of them.
const maxStatusBytes = 4 << 10

// errInternal is all that a caller gets to know of a bug.
var errInternal = status.Error(codes.Internal, "internal error")

// refusal is the code and the fixed message of a reason.
type refusal struct {
	reason  pb.ErrorReason
	code    codes.Code
	message string
}

var (
	refusedInvalid = refusal{
		pb.ErrorReason_ERROR_REASON_INVALID_REQUEST, codes.InvalidArgument,
		"the request is not valid",
	}
	refusedTokenizer = refusal{
		pb.ErrorReason_ERROR_REASON_UNKNOWN_TOKENIZER, codes.InvalidArgument,
		"there is no tokenizer of that name",
	}
	refusedEmpty = refusal{
		pb.ErrorReason_ERROR_REASON_REQUIRED_SEGMENT_EMPTY, codes.FailedPrecondition,
		"a required segment is blank",
	}
	refusedBudget = refusal{
		pb.ErrorReason_ERROR_REASON_REQUIRED_SEGMENTS_EXCEED_BUDGET, codes.FailedPrecondition,
		"the required segments alone exceed a budget",
	}
	refusedUnidentified = refusal{
		pb.ErrorReason_ERROR_REASON_IDENTITY_MISSING, codes.Unauthenticated,
		"the call carries no identity",
	}
	refusedIdentity = refusal{
		pb.ErrorReason_ERROR_REASON_IDENTITY_INVALID, codes.Unauthenticated,
		"the call carries an identity that does not hold",
	}
	refusedScope = refusal{
		pb.ErrorReason_ERROR_REASON_SCOPE_NOT_PERMITTED, codes.PermissionDenied,
		"the caller may not speak for the scope",
	}
	refusedAuthority = refusal{
		pb.ErrorReason_ERROR_REASON_AUTHORITY_NOT_PERMITTED, codes.PermissionDenied,
		"the caller may not assert the authority",
	}
	refusedRequired = refusal{
		pb.ErrorReason_ERROR_REASON_REQUIRED_NOT_PERMITTED, codes.PermissionDenied,
		"the caller may not make the segment required",
	}
	refusedPolicy = refusal{
		pb.ErrorReason_ERROR_REASON_POLICY_NOT_PERMITTED, codes.PermissionDenied,
		"the selection policy is outside the caller's bounds",
	}
	refusedMandatory = refusal{
		pb.ErrorReason_ERROR_REASON_MANDATORY_SEGMENT_MISSING, codes.FailedPrecondition,
		"a segment that the caller's prompts must hold is missing or blank",
	}
	refusedGrant = refusal{
		pb.ErrorReason_ERROR_REASON_GRANT_INVALID, codes.PermissionDenied,
		"the signed grant does not hold for this request",
	}
	refusedOverloaded = refusal{
		pb.ErrorReason_ERROR_REASON_OVERLOADED, codes.ResourceExhausted,
		"too much work is in flight",
	}
)

// retryAfter is when a call that was refused as OVERLOADED may be repeated. Clients add jitter.
const retryAfter = 50 * time.Millisecond

var (
	errOverloaded = status.FromProto(refusedOverloaded.status(nil,
		&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)})).Err()
	retryPushback = metadata.Pairs("grpc-retry-pushback-ms", strconv.FormatInt(retryAfter.Milliseconds(), 10))
)

var (
	errIdentityMissing = status.FromProto(refusedUnidentified.status(nil)).Err()
	errIdentityInvalid = status.FromProto(refusedIdentity.status(nil)).Err()
)

// errCompressed refuses messages that are compressed: 16 KiB can hold 16 MiB.
var errCompressed = status.Error(codes.Unimplemented, "compressed messages are not accepted")

// errTooLarge refuses messages that are too large for a method of another service.
var errTooLarge = status.Error(codes.ResourceExhausted, "the message is too large for this method")

// errUnknownMethod answers calls of methods that there are not.
var errUnknownMethod = status.Error(codes.Unimplemented, "there is no such method")

// ended is the status of a call whose context has.
func ended(ctx context.Context) error { return status.FromContextError(ctx.Err()).Err() }

// denials are the refusals of what a caller may not assert.
var denials = map[pb.ErrorReason]refusal{}

func init() {
	for _, r := range []refusal{refusedScope, refusedAuthority, refusedRequired, refusedPolicy, refusedMandatory} {
		denials[r.reason] = r
	}
}

// denied refuses what a caller, or the issuer of a grant, may not assert, and says what applies of it.
func denied(who *identity.Caller, d *policy.Denial) error {
	info := make(map[string]string)
	at := d.Path
	if at != "" && who.Source == identity.Grant {
		at = grantField + "." + at
	}
	for _, applies := range []struct{ key, value string }{
		{"path", at}, {"scope", d.Scope}, {"segment", d.Segment}, {"field", d.Field}, {"bound", d.Bound},
	} {
		if applies.value != "" {
			info[applies.key] = applies.value
		}
	}
	info["identity"] = who.Name
	if d.Authority != 0 {
		info["authority"] = d.Authority.String()
	}
	if d.Kind != 0 {
		info["kind"] = d.Kind.String()
	}
	return status.FromProto(denials[d.Reason].status(info)).Err()
}

// grantRefused refuses a signed grant by the check that failed.
func grantRefused(ctx context.Context, check grant.Check) error {
	observe.From(ctx).Unidentified(string(identity.Grant), string(check))
	return status.FromProto(refusedGrant.status(map[string]string{"path": grantField, "check": string(check)})).Err()
}

// relayRefused refuses a grant for the scope, empty where it has none, that the caller may not carry.
func relayRefused(ctx context.Context, caller *identity.Caller, scope string) error {
	observe.From(ctx).Unidentified(string(identity.Grant), string(grant.Relay))
	info := map[string]string{"path": grantField, "check": string(grant.Relay), "identity": caller.Name}
	if scope != "" {
		info["scope"] = scope
	}
	return status.FromProto(refusedGrant.status(info)).Err()
}

// overloaded refuses a call for which there is no room, and says in a trailer, too, when to repeat it.
func overloaded(ctx context.Context) error {
	_ = grpc.SetTrailer(ctx, retryPushback) // it fails only once the trailer was sent
	return errOverloaded
}

// invalidRequest refuses a request that breaks rules, with as many violations as fit.
func invalidRequest(f *faults) error {
	count := map[string]string{"violation_count": strconv.Itoa(f.count)}
	return largest(len(f.listed), func(n int) *statuspb.Status {
		return refusedInvalid.status(count, &errdetails.BadRequest{FieldViolations: f.listed[:n]})
	})
}

// undecodable refuses bytes that are no message of the method's request type.
func undecodable() error { return status.FromProto(refusedInvalid.status(nil)).Err() }

// unknownTokenizer refuses a tokenizer's name; known are those there are, in byte order.
func unknownTokenizer(known []string) error {
	return largest(len(known), func(n int) *statuspb.Status {
		return refusedTokenizer.status(map[string]string{"known": strings.Join(known[:n], ",")})
	})
}

// refusedPlan turns the planner's errors into refusals.
func refusedPlan(err error) error {
	if empty, ok := errors.AsType[*prompt.EmptyError](err); ok {
		return status.FromProto(refusedEmpty.status(map[string]string{"segment": empty.Segment})).Err()
	}
	if over, ok := errors.AsType[*prompt.BudgetError](err); ok {
		return largest(len(over.Segments), func(n int) *statuspb.Status {
			return refusedBudget.status(map[string]string{
				"needed":        strconv.Itoa(over.Needed),
				"limit":         strconv.FormatUint(uint64(over.Limit), 10),
				"unit":          over.Unit,
				"segments":      strings.Join(over.Segments[:n], ","),
				"segment_count": strconv.Itoa(len(over.Segments)),
			})
		})
	}
	return errInternal
}

// status returns the refusal as a status whose first detail is its ErrorInfo.
func (r refusal) status(info map[string]string, details ...proto.Message) *statuspb.Status {
	first := &errdetails.ErrorInfo{
		Reason:   strings.TrimPrefix(r.reason.String(), "ERROR_REASON_"),
		Domain:   domain,
		Metadata: info,
	}
	s := &statuspb.Status{Code: int32(r.code), Message: r.message}
	for _, detail := range append([]proto.Message{first}, details...) {
		packed := new(anypb.Any)
		// Deterministic, for the metadata is a map. It fails only on invalid UTF-8, which no
		// decoded request holds.
		if err := anypb.MarshalFrom(packed, detail, proto.MarshalOptions{Deterministic: true}); err != nil {
			return status.Convert(errInternal).Proto()
		}
		s.Details = append(s.Details, packed)
	}
	return s
}

// largest returns the error of build(n) for the greatest n up to most whose status is within
// maxStatusBytes. build(0) is.
func largest(most int, build func(n int) *statuspb.Status) error {
	n := sort.Search(most, func(n int) bool { return proto.Size(build(n+1)) > maxStatusBytes })
	return status.FromProto(build(n)).Err()
}
