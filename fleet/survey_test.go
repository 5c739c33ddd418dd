package fleet

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

// A manager of somebody else's that hangs, or is none, keeps nobody from a look at the others.
func TestSurveyOfHostile(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	hangs := &Host{Owner: "eve", Connect: func(context.Context) (*systemd.Manager, error) { <-end; return nil, systemd.ErrNoBus }}
	if s, err := within(t.Context(), time.Millisecond, hangs.Survey); s != nil || err == nil || !strings.Contains(err.Error(), "within 1ms") {
		t.Errorf("%+v, %v", s, err)
	}
	odd := errors.New("it talks nonsense")
	talks := func(owner string) *Host {
		return &Host{Owner: owner, Connect: func(context.Context) (*systemd.Manager, error) { return nil, odd }}
	}
	none := &Host{Connect: func(context.Context) (*systemd.Manager, error) { return nil, systemd.ErrNoBus }}
	if _, err := SurveyAll(t.Context(), none, talks("eve")); !errors.Is(err, systemd.ErrNoBus) {
		t.Errorf("of somebody else's: %v", err)
	}
	if _, err := SurveyAll(t.Context(), none, talks("")); !errors.Is(err, odd) {
		t.Errorf("of one's own: %v", err)
	}
}
