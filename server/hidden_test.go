package server_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc/status"
)

// forms are what the canary looks like in each encoding, in lower case.
var forms = func() []string {
	forms := []string{"canary", hex.EncodeToString([]byte("canary")), url.PathEscape("é")}
	for i := range 3 { // wherever it begins within three bytes
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", i) + canary))
		forms = append(forms, encoded[4:12])
	}
	percent := ""
	for _, c := range []byte("canary") {
		percent += fmt.Sprintf("%%%02x", c)
	}
	return append(forms, percent)
}()

// betrays returns the form of the canary that a text holds, or "".
func betrays(text string) string {
	lower := strings.ToLower(text)
	for i, form := range forms {
		if strings.Contains(lower, strings.ToLower(form)) && (i < 3 || i > 5 || strings.Contains(text, form)) {
			return form
		}
	}
	return ""
}

// watch is what has been checked of a server for the canary.
type watch struct {
	*observed
	lines, spans int
}

// hides waits until the call that was just made has ended, and checks that nothing of it shows but
// what may: its identifiers in the log, and in its status the names that are given.
func (w *watch) hides(t *testing.T, err error, logged map[string]any, names ...string) {
	t.Helper()
	eventually(t, "the call is logged and its span has ended", func() bool {
		return len(w.observed.lines(t)) > w.lines && len(w.observed.spans.Ended()) > w.spans
	})
	lines, spans := w.observed.lines(t)[w.lines:], w.observed.spans.Ended()[w.spans:]
	w.lines += len(lines)
	w.spans += len(spans)
	for _, line := range lines {
		for name, value := range logged {
			if line[name] != value && line["msg"] == "call" {
				t.Errorf("%s is logged as %v, want %v", name, line[name], value)
			}
			delete(line, name)
		}
		w.hidden(t, "the log", fmt.Sprint(line))
	}
	for _, s := range spans {
		w.hidden(t, "a span", fmt.Sprint(
			s.Name(), s.Attributes(), s.Events(), s.Status(), s.Links(), s.Resource(), s.SpanContext().TraceState()))
	}
	w.hiddenInMetrics(t)

	s := status.Convert(err).Proto()
	text := fmt.Sprint(s.GetMessage(), status.Convert(err).Details(), " ", string(marshal(t, s)))
	if len(names) > 0 {
		info, violations := refusalOf(err)
		for _, violation := range violations {
			if i := slices.Index(names, violation.GetField()); i >= 0 {
				names = slices.Delete(slices.Clone(names), i, i+1)
				violation.Field = ""
			}
		}
		for key, value := range info.GetMetadata() {
			if i := slices.Index(names, key+"="+value); i >= 0 {
				names = slices.Delete(slices.Clone(names), i, i+1)
				info.Metadata[key] = ""
			}
		}
		text = fmt.Sprint(s.GetMessage(), info, violations)
		if len(names) > 0 {
			t.Errorf("the status does not name %q: %v", names, s)
		}
	}
	w.hidden(t, "the status", text)
}

func (w *watch) hiddenInMetrics(t *testing.T) {
	t.Helper()
	answer := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	promhttp.HandlerFor(w.metrics, promhttp.HandlerOpts{}).ServeHTTP(answer, request)
	if answer.Body.Len() < 1000 {
		t.Errorf("metrics of %d bytes", answer.Body.Len())
	}
	w.hidden(t, "a metric", answer.Body.String())
}

func (*watch) hidden(t *testing.T, where, text string) {
	t.Helper()
	if form := betrays(text); form != "" {
		t.Errorf("%s holds %q: %s", where, form, text)
	}
}

func TestFormsOfTheCanary(t *testing.T) {
	for _, text := range []string{
		"a CANARY", "%63%61%6E%61%72%79", hex.EncodeToString([]byte("x" + canary)),
		base64.StdEncoding.EncodeToString([]byte("abc" + canary)),
		base64.StdEncoding.EncodeToString([]byte("1" + canary)),
		base64.RawURLEncoding.EncodeToString([]byte("ab" + canary)),
	} {
		if betrays(text) == "" {
			t.Errorf("%q is not found out", text)
		}
	}
}
