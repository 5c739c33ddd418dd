package incident

import (
	"bytes"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/engine/claim"
	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/internal/secret"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// Secrets stand everywhere in what is gathered, and nowhere in what is written.
func TestNoSecretIsWritten(t *testing.T) {
	const word = "sw0rdf1sh" // each of them has it
	dir := t.TempDir()
	unit, dropIn, env := filepath.Join(dir, stageUnit), filepath.Join(dir, stageUnit+".d", "hrx.conf"), filepath.Join(dir, "llm.env")
	putFile(t, unit, `[Service]
ExecStart=/usr/bin/llama-server -m x.gguf --api-key `+word+`arg --parallel 4 \
  --hf-token "`+word+` hf" -hft `+word+`hft --override-kv tokenizer.ggml.add_bos_token=bool:false --api-key-file /etc/llm.keys
ExecStartPre=/usr/bin/curl -u me:`+word+`curl http://127.0.0.1/
`)
	putFile(t, dropIn, `[Service]
# Environment=OLD_API_KEY=`+word+`old
Environment="HF_TOKEN=`+word+`1 with words" MODEL=x "PROXY=http://me:`+word+`proxy@host:3128"
Environment=DB_PASSWORD=`+word+`2
EnvironmentFile=`+env+`
SetCredential=key:`+word+`cred `+word+`more
SetCredentialEncrypted=box: \
  `+word+`box1 \
  `+word+`box2
Environment=HF_TOKEN2=`+word+`5 SIGN_KEY=/`+word+`== MIXED_KEY=a"`+word+` 6"
Restart=always
`)
	putFile(t, env, "LLAMA_API_KEY="+word+"3\nPLAIN=1\n")
	u := &systemd.Unit{ID: stageUnit, FragmentPath: unit, DropInPaths: []string{dropIn}, SearchPath: []string{dir}}
	settings, err := systemd.ReadSettings(u, systemd.Specifiers{})
	if err != nil {
		t.Fatal(err)
	}
	begin, end := stageNow.Add(-time.Hour), stageNow.Add(-time.Minute)
	s := &stageHost{
		inspection: &fleet.Inspection{Service: fleet.Service{Unit: stageUnit, Armed: &fleet.Armed{Package: "hrx-bbbbbbb", Path: "/data/1bit-hrx-bbbbbbb"}}, Loaded: u, Settings: settings},
		packages:   []*store.Package{stagePackage("hrx-bbbbbbb", "", begin)},
	}
	s.life("a", begin, end,
		"main: api_key = "+word+"log", "request: Authorization: Bearer "+word+"header", `{"headers":{"x-api-key":"`+word+`json"}}`,
		"GET http://u:"+word+"url@127.0.0.1/", "the key "+word+"3 was taken", "it is "+word+"1 with words, as given", "slot release: n_tokens = 262",
		`{"body":"{\"api_key\":\"`+word+`esc\"}"}`, "signed with /"+word+"==", "\x1b[31mapi_key\x1b[0m="+word+"colour",
		"-----BEGIN PRIVATE KEY-----", word+"0pem", "-----END PRIVATE KEY-----")
	s.journal[1].Identifier = "a --token " + word
	s.journal[2].Fields["_CMDLINE"] = "llama-server --api-key " + word + "arg"
	s.journal[3].Fields["COREDUMP_ENVIRON"] = "X=" + word
	s.journal = append(s.journal, kernelLines(end, "Out of memory: Killed process 1 (a --token="+word+"k) total-vm:1kB\n")...)

	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		run := recordedRun(1, "completed", end.Add(-time.Minute).Format(time.RFC3339), end.Format(time.RFC3339))
		run = strings.Replace(run, "gpu-kernels 744bd713d968", "deploy with password="+word+"ci", 1)
		_, _ = w.Write([]byte(`{"total_count":1,"workflow_runs":[` + run + `]}`))
	}))
	defer api.Close()
	e := s.gather(t, func(o *GatherOptions) {
		putFile(t, filepath.Join(o.Root, "proc/cmdline"), "root=/dev/x rd.luks.key="+word+"boot quiet\n")
		o.CI = &CI{Repository: "a/b", API: api.URL, Token: word + "token", Client: api.Client()}
	})
	if len(e.Runs) != 1 || len(e.Actions) != 1 || len(e.Files) != 2 || len(e.OOM) != 1 {
		t.Fatalf("%d runs, %d files, %d kills", len(e.Runs), len(e.Files), len(e.OOM))
	}
	e.Kernels[0].Fields["_CMDLINE"] = "a --token " + word
	g := &gatherer{e: e}
	e.Claims = []claim.Record{{Label: "soak", Command: "run --password " + word + "claim"}}
	g.mask()
	out := filepath.Join(t.TempDir(), "incident")
	if err := Write(out, e, Analyse(e)); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		for line := range bytes.Lines(b) {
			if bytes.Contains(line, []byte(word)) {
				t.Errorf("%s: %s", path, line)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// What is no secret is still there.
	if got := strings.Join(e.Command, " "); got != "/usr/bin/llama-server -m x.gguf --api-key "+secret.Mask+" --parallel 4 --hf-token "+secret.Mask+
		" -hft "+secret.Mask+" --override-kv tokenizer.ggml.add_bos_token=bool:false --api-key-file /etc/llm.keys" {
		t.Errorf("command: %s", got)
	}
	if e.Files[0].Masked != 4 || e.Files[1].Masked != 9 || !strings.Contains(e.Files[1].Text, " MODEL=x ") || !strings.HasSuffix(e.Files[1].Text, "\nRestart=always\n") {
		t.Errorf("%d and %d are masked: %s%s", e.Files[0].Masked, e.Files[1].Masked, e.Files[0].Text, e.Files[1].Text)
	}
	values := map[string]string{}
	for _, v := range e.Settings {
		values[v.Key] = v.Value
	}
	if values["MODEL"] != "x" || values["HF_TOKEN"] != secret.Mask || values["LLAMA_API_KEY"] != secret.Mask || values["PLAIN"] != "1" {
		t.Errorf("%v", values)
	}
	if all := strings.Join(messages(e), "\n"); !strings.Contains(all, "slot release: n_tokens = 262") {
		t.Errorf("%s", all)
	}
}
