package grant

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

var (
	grantDescriptor = new(pb.Grant).ProtoReflect().Descriptor()
	// within are the fields that carry grants, which none may do itself.
	within = map[protoreflect.FullName]bool{
		"promptassembly.v1.SelectMemoryRequest.grant": true,
		"promptassembly.v1.PlanPromptRequest.grant":   true,
	}
)

// known reports whether b is well-formed, and all of its fields, recursively, are those of the message, and
// none of them carries a grant.
func known(b []byte, m protoreflect.MessageDescriptor) bool {
	fields := m.Fields()
	for len(b) > 0 {
		number, wireType, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		b = b[n:]
		field := fields.ByNumber(number)
		if field == nil || wireType != wireTypes[field.Kind()] || field.Kind() == protoreflect.BytesKind && within[field.FullName()] {
			return false
		}
		if n = protowire.ConsumeFieldValue(number, wireType, b); n < 0 {
			return false
		}
		if inner := field.Message(); inner != nil {
			value, _ := protowire.ConsumeBytes(b)
			if !known(value, inner) {
				return false
			}
		}
		b = b[n:]
	}
	return true
}

// wireTypes are how the kinds of fields that requests have are encoded, -1 for all others. No list of
// them is packed.
var wireTypes = func() (types [protoreflect.Sint64Kind + 1]protowire.Type) {
	for kind := range types {
		types[kind] = -1
	}
	for _, kind := range []protoreflect.Kind{
		protoreflect.BoolKind, protoreflect.EnumKind, protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.Uint32Kind,
	} {
		types[kind] = protowire.VarintType
	}
	for _, kind := range []protoreflect.Kind{protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind} {
		types[kind] = protowire.BytesType
	}
	types[protoreflect.DoubleKind] = protowire.Fixed64Type
	return types
}()

// eachField calls f with each field of an encoded message that is well-formed: its number, all of it, and
// its value where that is length-delimited.
func eachField(b []byte, f func(number protowire.Number, field, value []byte)) {
	for len(b) > 0 {
		number, wireType, tag := protowire.ConsumeTag(b)
		n := tag + protowire.ConsumeFieldValue(number, wireType, b[tag:])
		var value []byte
		if wireType == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(b[tag:])
		}
		f(number, b[:n], value)
		b = b[n:]
	}
}
