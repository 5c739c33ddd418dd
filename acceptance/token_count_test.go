package acceptance

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/internal/realengine"
)

// What the real server's answers say of their prompts is what its tokenizer
// says: to the token, whatever the template of its chats.
func TestCountsByAnswersAreTheTokenizers(t *testing.T) {
	tree := realengine.Require(t)
	port, err := engine.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := engine.StartServer(t.Context(), engine.ServerOptions{
		Program: tree.Program("llama-server"), Env: []string{"PATH=/usr/bin:/bin"}, LogPath: filepath.Join(t.TempDir(), "server.log"),
		Args: []string{"-m", tree.Model("plain"), "--host", "127.0.0.1", "--port", fmt.Sprint(port), "-c", "4096", "-t", "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background(), 0); err != nil {
			t.Error(err)
		}
	})
	base := fmt.Sprintf("http://127.0.0.1:%d", port)
	if err := s.WaitReady(t.Context(), &engine.Client{BaseURL: base}); err != nil {
		t.Fatal(err)
	}
	for _, api := range []string{"", engine.APICompletions, engine.APIChat} {
		asked, err := newTokenCounter(t.Context(), &engine.Client{BaseURL: base, API: api}, time.Minute)
		if err != nil || asked.byAnswer {
			t.Fatal(err)
		}
		told := &tokenCounter{client: asked.client, deadline: time.Minute, byAnswer: true}
		if err := told.measureTemplate(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"a", "able acid age", "b7kx able umbrella", "one two three four five six seven"} {
			want, err := asked.count(t.Context(), text)
			if err != nil {
				t.Fatal(err)
			}
			// The text of a chat has no token of its own to begin it.
			n, err := told.count(t.Context(), text)
			if d := want - n; err != nil || d != 0 && !(api == engine.APIChat && d == 1) {
				t.Errorf("%s: %q has %d tokens by the tokenizer, %d by an answer, %v", api, text, want, n, err)
			}
		}
		if (told.template > 0) != (api == engine.APIChat) {
			t.Errorf("%s: %d tokens of a template", api, told.template)
		}
	}
}
