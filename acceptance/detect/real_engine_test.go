package detect

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/internal/realengine"
)

// onReal starts the real llama-server with a test model and returns what records requests to it.
func onReal(t *testing.T, model string, ctx int) (*recorder, *engine.Server, string) {
	t.Helper()
	tree := realengine.Require(t)
	port, err := engine.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "server.log")
	s, err := engine.StartServer(t.Context(), engine.ServerOptions{
		Program: tree.Program("llama-server"), Env: []string{"PATH=/usr/bin:/bin"}, LogPath: log,
		Args: []string{"-m", tree.Model(model), "--host", "127.0.0.1", "--port", fmt.Sprint(port), "--parallel", "4", "-kvu", "-c", fmt.Sprint(ctx), "-t", "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background(), 0); err != nil {
			t.Error(err)
		}
	})
	r := &recorder{t: t, client: &engine.Client{BaseURL: fmt.Sprintf("http://127.0.0.1:%d", port)}, gone: make(chan int, 1), deadline: time.Minute}
	ready, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.WaitReady(ready, r.client); err != nil {
		t.Fatal(err)
	}
	return r, s, log
}

// readLog adds the events of a log file.
func (r *recorder) readLog(path string) {
	raw, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if ev, ok := engine.ParseLogLine(line); ok {
			r.add(ev)
		}
	}
}

// counted counts findings by face.
func counted(found []Finding) map[string]int {
	n := map[string]int{}
	for _, f := range found {
		n[f.Face]++
	}
	return n
}

// requestsVariable asks for a longer look at a sound server, such as ten thousand requests before a release.
const requestsVariable = "DETECT_REQUESTS"

// A sound server has no fault in any face. Numeric differences under load are not told as corruption.
func TestRealServerIsSound(t *testing.T) {
	r, _, log := onReal(t, "plain", 8192)
	rounds := 30
	if n, err := strconv.Atoi(os.Getenv(requestsVariable)); err == nil {
		rounds = n / 4
	}
	const sentinel = "the keeper of the lighthouse wrote down in his book what the sea had brought him:"
	reference := r.ask(Sentinel, sentinel)
	r.add(Pair{reference, r.ask(Sentinel, sentinel)})
	for n := range rounds {
		things := r.unique(4)
		if n%4 == 3 {
			things[3] = func() { r.add(Comparison{reference, r.ask(Sentinel, sentinel), tau}) }
		}
		r.round(things...)
	}
	r.add(Pair{r.ask(Sentinel, sentinel), r.ask(Sentinel, sentinel)})
	r.readLog(log)
	_, _, found := replay(t, r.happened, nil)
	n := counted(found)
	t.Logf("%d requests: %v", r.next, n)
	for _, f := range found {
		if f.Grade != Warning && f.Face != Numeric || f.Face != Numeric && f.Face != Text {
			t.Errorf("%+v", f)
		}
	}
	if n[Text]*100 > r.next {
		t.Errorf("%d of %d sound answers have a shape: %v", n[Text], r.next, found)
	}
}

// Neither does it on the other paths, or as a stream.
func TestRealServerIsSoundOnEveryPath(t *testing.T) {
	first, _, log := onReal(t, "plain", 8192)
	for _, api := range []string{engine.APICompletion, engine.APICompletions, engine.APIChat} {
		for _, stream := range []bool{false, true} {
			r := &recorder{t: t, client: &engine.Client{BaseURL: first.client.BaseURL, API: api}, stream: stream, gone: make(chan int, 1), deadline: time.Minute}
			reference := r.ask(Sentinel, "what the sea had brought")
			r.add(Pair{reference, r.ask(Sentinel, "what the sea had brought")})
			for range 4 {
				r.round(append(r.unique(3), func() { r.add(Comparison{reference, r.ask(Sentinel, "what the sea had brought"), tau}) })...)
			}
			r.readLog(log)
			_, _, found := replay(t, r.happened, nil)
			if n := counted(found); len(found) != n[Numeric]+n[Text] {
				t.Errorf("%s, stream %v: %+v", api, stream, found)
			}
		}
	}
}

// NaN that no guard tells of is seen on the wire, on every path, and by no other face that decides.
func TestRealServerWithNaN(t *testing.T) {
	for model, tail := range map[string]string{"nan": "", "nan1": "", "trig": " ~"} {
		first, _, log := onReal(t, model, 8192)
		for _, api := range []string{engine.APICompletion, engine.APICompletions, engine.APIChat} {
			for _, stream := range []bool{false, true} {
				r := &recorder{t: t, client: &engine.Client{BaseURL: first.client.BaseURL, API: api}, stream: stream, tail: tail, gone: make(chan int, 1), deadline: time.Minute}
				r.round(r.unique(1)...)
				r.readLog(log)
				_, _, found := replay(t, r.happened, nil)
				if n := counted(found); n[NaNWire] != 1 || len(found) != 1+n[Text] {
					t.Errorf("%s, %s, stream %v: %+v", model, api, stream, found)
				}
				if _, _, found := replay(t, r.happened, map[string]string{NaNWire: "off"}); counted(found)[Text] != len(found) {
					t.Errorf("%s, %s, stream %v, that face off: %+v", model, api, stream, found)
				}
			}
		}
	}
}

// What is asked for beyond the context is the plan's doing, by either of the server's answers.
func TestRealServerWithTooLittleContext(t *testing.T) {
	r, _, log := onReal(t, "plain", 256)
	r.tail = strings.Repeat(" and more", 18)
	for range 3 {
		r.round(r.unique(4)...)
	}
	r.tail = strings.Repeat(" and more", 50)
	r.round(r.unique(1)...)
	r.readLog(log)
	_, grade, found := replay(t, r.happened, nil)
	if n := counted(found); n[Context] < 2 || len(n) != 1 || grade != Invalid {
		t.Errorf("%v as %s: %+v", n, grade, found)
	}
}

func TestRealServerThatIsKilled(t *testing.T) {
	r, s, log := onReal(t, "plain", 8192)
	r.round(append(r.unique(3), func() {
		time.Sleep(20 * time.Millisecond)
		if err := syscall.Kill(s.PID(), syscall.SIGSEGV); err != nil {
			t.Error(err)
		}
	})...)
	status, err := s.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.round(r.unique(1)...)
	r.add(Exit{Status: status})
	r.readLog(log)
	_, _, found := replay(t, r.happened, nil)
	n := counted(found)
	if n[Crash] != 1 || n[Transport] < 1 || len(n) != 2 || !strings.Contains(found[len(found)-1].Detail, "signal 11") {
		t.Errorf("%+v", found)
	}
}
