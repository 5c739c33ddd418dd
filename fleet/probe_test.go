package fleet

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/engine"
)

// A server that gives no answer is excused only by others' work that goes on.
func TestProbeOfServerWithoutAnswers(t *testing.T) {
	slot := `[{"id":0,"id_task":%d,"is_processing":%v,"next_token":[{"n_decoded":%d}]}]`
	for name, tt := range map[string]struct {
		status         int
		slots          func(asked, count int) string
		unchecked, err string
		slotsHang      bool
	}{
		"it works on our question alone":    {slots: func(asked, _ int) string { return fmt.Sprintf(slot, asked, asked > 0, 0) }, err: "did not end within 2s"},
		"its slots do not answer either":    {slotsHang: true, err: "did not end within 2s"},
		"it says nothing of its slots":      {err: "did not end within 2s"},
		"another's question hangs too":      {slots: func(int, int) string { return fmt.Sprintf(slot, 7, true, 3) }, err: "did not end within 2s"},
		"another's question gets on":        {slots: func(_, count int) string { return fmt.Sprintf(slot, 7, true, count) }, unchecked: "busy with others' requests"},
		"others ask one question by one":    {slots: func(_, count int) string { return fmt.Sprintf(slot, count, true, 0) }, unchecked: "busy with others' requests"},
		"it wants a key":                    {status: http.StatusUnauthorized, unchecked: "a key that is not known"},
		"it wants another key":              {status: http.StatusForbidden, unchecked: "a key that is not known"},
		"it makes embeddings":               {status: http.StatusNotImplemented, unchecked: "does not do completions"},
		"it fails at every question":        {status: http.StatusInternalServerError, err: "status 500"},
		"it fails while others are served":  {status: http.StatusInternalServerError, slots: func(_, count int) string { return fmt.Sprintf(slot, count, true, 0) }, err: "status 500"},
		"it hangs where nothing was before": {slots: func(asked, count int) string { return fmt.Sprintf(slot, count, asked > 0, count) }, err: "did not end within 2s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked, count atomic.Int64
			ended := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/slots" && tt.slots != nil:
					fmt.Fprint(w, tt.slots(int(asked.Load()), int(count.Add(1))))
				case r.URL.Path == "/slots" && !tt.slotsHang:
					http.NotFound(w, r)
				case r.URL.Path != "/slots" && tt.status > 0:
					asked.Add(1)
					http.Error(w, "{}", tt.status)
				default:
					if r.URL.Path != "/slots" {
						asked.Add(1)
					}
					<-ended
				}
			}))
			defer server.Close()
			defer close(ended)
			h := &Host{LoadDeadline: 2 * time.Second}
			unchecked, err := h.probe(t.Context(), &engine.Client{BaseURL: server.URL})
			if !strings.Contains(unchecked, tt.unchecked) || tt.unchecked == "" && unchecked != "" {
				t.Errorf("unchecked %q, want %q", unchecked, tt.unchecked)
			}
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, want %q", err, tt.err)
			}
		})
	}
}
