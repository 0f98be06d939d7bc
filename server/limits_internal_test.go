package server

import (
	"reflect"
	"testing"
)

// Every field has a default, and every value that is set is kept.
func TestLimitsWithDefaults(t *testing.T) {
	if got := (Limits{}).withDefaults(); got != DefaultLimits() {
		t.Errorf("%+v, want %+v", got, DefaultLimits())
	}
	var set Limits
	fields := reflect.ValueOf(&set).Elem()
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		if reflect.ValueOf(DefaultLimits()).Field(i).IsZero() {
			t.Errorf("%s has no default", name)
		}
		switch field := fields.Field(i); {
		case field.CanInt():
			field.SetInt(int64(i + 1))
		case field.CanUint():
			field.SetUint(uint64(i + 1))
		case field.CanFloat():
			field.SetFloat(1 / float64(i+3))
		default:
			t.Errorf("%s is a %v", name, field.Kind())
		}
	}
	if got := set.withDefaults(); got != set {
		t.Errorf("%+v, want %+v", got, set)
	}
	if got := (Limits{MessageBytes: MaxMessageBytes + 1}).withDefaults().MessageBytes; got != MaxMessageBytes {
		t.Errorf("messages may have %d bytes, which the contract does not allow", got)
	}
}
