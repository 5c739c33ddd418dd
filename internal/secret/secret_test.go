package secret

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestText(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"Environment=HF_TOKEN=abcdef", "Environment=HF_TOKEN=(masked)"},
		{`Environment="API_KEY=two words" A=b`, `Environment="API_KEY=(masked)" A=b`},
		{`Environment='API_KEY=it"s' A=b`, `Environment='API_KEY=(masked)' A=b`},
		{"Environment=\"API_KEY=two \\\n words\" A=b", "Environment=\"API_KEY=(masked) \\\n \" A=b"},
		{`Environment=API_KEY=two\ words A=b`, `Environment=API_KEY=(masked) A=b`},
		{`Environment=API_KEY="two words" A=b`, `Environment=API_KEY="(masked)" A=b`},
		{"Environment=\"API_KEY=never closed\nRestart=always", "Environment=\"API_KEY=(masked)\nRestart=always"},
		{"ExecStart=llama-server --api-key xyzzy --port 1", "ExecStart=llama-server --api-key (masked) --port 1"},
		{"ExecStart=llama-server --api-key \\\n  xyzzy --port 1", "ExecStart=llama-server --api-key \\\n  (masked) --port 1"},
		{`ExecStart=llama-server --api-key "xy zzy" --port 1`, `ExecStart=llama-server --api-key "(masked)" --port 1`},
		{`ExecStart="llama-server" "--api-key" "xyzzy"`, `ExecStart="llama-server" "--api-key" "(masked)"`},
		{"--api-key=xyzzy", "--api-key=(masked)"},
		{"SetCredential=cert:private", "SetCredential=cert:(masked)"},
		{`{"api_key": "xyzzy", "n": 1}`, `{"api_key": "(masked)", "n": 1}`},
		{`{'password':'xy,zzy'}`, `{'password':'(masked)'}`},
		{"Authorization: Bearer abcdef and more", "Authorization: (masked)"},
		{`curl -H "Authorization: Basic dXNlcg==" http://x`, `curl -H "Authorization: (masked)" http://x`},
		{"Cookie: a=b; c=d", "Cookie: (masked)"},
		{"X-Api-Key: abcdef rest", "X-Api-Key: (masked) rest"},
		{"got bearer abcdef12 here", "got bearer (masked) here"},
		{"GET https://me:p@ss@host/x?api_key=abc&n=1", "GET https://me:(masked)@host/x?api_key=(masked)&n=1"},
		{"clone https://0123abcd@github.com/a/b", "clone https://(masked)@github.com/a/b"},
		{"clone ssh://git@github.com/a/b", "clone ssh://git@github.com/a/b"},
		{"sent ghp_0123456789abcdefABCD to it", "sent (masked) to it"},
		{"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nnext", "(masked)\n\n\nnext"},
		{"(token=abcdef)", "(token=(masked))"},
		// What an engine writes is no secret.
		{"slot      release: id 3 | task 187 | stop processing: n_tokens = 262", "same"},
		{"print_info: EOS token        = 151645 '<|im_end|>'", "same"},
		{"prompt eval time = 210.74 ms / 175 tokens (830.42 tok/s)", "same"},
		{"HRX returned NaN logits: count=151936 of 151936, index range [0..151935], contiguous=yes, continuing=no", "same"},
		{"llama_model_loader: - kv 20: tokenizer.ggml.model str = gpt2", "same"},
		{"print_info: EOG token        = 151643 '<|endoftext|>'", "same"},
		{"slot update_slots: id  0 | task 0 | new prompt, n_ctx_slot = 4096, n_keep = 0, task.n_tokens = 175", "same"},
		{"llama_kv_cache: size =  448.00 MiB (  4096 cells,  28 layers,  4/1 seqs), K (f16):  224.00 MiB", "same"},
		{"srv  log_server_r: request: POST /v1/chat/completions 127.0.0.1 200", "same"},
		{"llm.service: Main process exited, code=exited, status=1/FAILURE", "same"},
		{"--max-tokens 32 --cache-type-k f16", "same"},
		{"http://127.0.0.1:8080/v1", "same"},
		{"", "same"},
	} {
		want := test.want
		if want == "same" {
			want = test.in
		}
		got := Text(test.in)
		if got != want {
			t.Errorf("Text(%q) =\n%q, want\n%q", test.in, got, want)
		}
		if again := Text(got); again != got {
			t.Errorf("Text of its own answer %q is %q", got, again)
		}
	}
}

func TestNamed(t *testing.T) {
	for _, name := range []string{
		"HF_TOKEN", "hftoken", "--api-key", "apiKey", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "db-pass",
		"MYSQL_PWD", "authToken", "Proxy-Authorization", "Set-Cookie", "GH_PAT", "CREDENTIALS_FILE", "ssl.key", "TOKENS",
	} {
		if !Named(name) {
			t.Errorf("%s names no secret", name)
		}
	}
	for _, name := range []string{
		"ONEBIT_LLAMA_SERVER", "HSA_USERPTR_FOR_PAGED_MEM", "--parallel", "-m", "TOKENIZERS_PARALLELISM", "KEEPALIVE",
		"GGML_HRX_NAN_CONTINUE", "PATH", "compass", "author", "",
	} {
		if Named(name) {
			t.Errorf("%s names a secret", name)
		}
	}
}

func TestWords(t *testing.T) {
	got := Words([]string{"llama-server", "--api-key", "--odd", "-m", "model.gguf", "--hf-token=abc", "--max-tokens", "32", "-H", "Authorization: Bearer x", "KEY=ab c"})
	want := []string{"llama-server", "--api-key", Mask, "-m", "model.gguf", "--hf-token=" + Mask, "--max-tokens", "32", "-H", "Authorization: " + Mask, "KEY=" + Mask}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestKnown(t *testing.T) {
	var k Known
	k.Add("API_KEY", "swordfish")
	k.Add("OTHER_KEY", "swordfish-and-more")
	k.Add("SHORT_KEY", "abc")
	k.Add("MODEL", "something")
	k.Add("TOKEN_HOME", "/home/ai")
	if got, want := k.Text("abc something /home/ai/x swordfish-and-more, swordfish"), "abc something /home/ai/x (masked), (masked)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A secret that is known is found as it is, as JSON and URLs have it, and line by line.
func TestKnownForms(t *testing.T) {
	var k Known
	k.Add("SIGN_KEY", "/9j4fishword==")
	k.Add("QUOTED_KEY", `fish"wo&rd`)
	k.Add("PEM_KEY", "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANfishword\n-----END PRIVATE KEY-----\n")
	k.AddWords([]string{"curl", "-u", "me:fishword1", "-hft", "fishword2", "--api-key-file", "/etc/fishword"})
	for in, want := range map[string]string{
		"got /9j4fishword==, once": "got #, once", "as %2F9j4fishword%3D%3D": "as #", `{"x":"fish\"wo\u0026rd"}`: `{"x":"#"}`, "fish%22wo%26rd": "#",
		"it said MIIEvQIBADANfishword": "it said #", "me and fishword1, fishword2": "me and #, #", "/etc/fishword": "/etc/fishword",
	} {
		if got := k.Text(in); got != strings.ReplaceAll(want, "#", Mask) {
			t.Errorf("%q is %q", in, got)
		}
	}
}

func TestKeyLines(t *testing.T) {
	const body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7"
	lines := []string{"start", body, "-----BEGIN RSA PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED", "", body, "10:00:03 I " + body, "slot release: n_tokens = 262", "c2hvcnQ=",
		"-----END RSA PRIVATE KEY-----", body, "-----BEGIN PRIVATE KEY-----\\n" + body + "\\n-----END PRIVATE KEY-----", body, "-----BEGIN CERTIFICATE-----", body}
	want := []string{"start", body, Mask, Mask, "", Mask, "10:00:03 I " + Mask, "slot release: n_tokens = 262", Mask,
		"-----END RSA PRIVATE KEY-----", body, Mask, body, "-----BEGIN CERTIFICATE-----", body}
	var k KeyLines
	for i, line := range lines {
		if got := Text(k.Text(line)); got != want[i] {
			t.Errorf("line %d: %q, want %q", i, got, want[i])
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("ExecStart=x --api-key", "key")
	f.Add("Environment=\"HF_TOKEN=", "a b")
	f.Add(`{"api_key": "`, "\\")
	f.Add(`{\"api_keys\": [\"`, `\\\"`)
	f.Add("SetCredential=a:b \\\n# c\n", "\x1b[1m")
	f.Add("curl -u a:b \\\r\n https://u:p@h/?sig=", "-----BEGIN PRIVATE KEY-----")
	f.Fuzz(func(t *testing.T, text, value string) {
		got := Text(text + value)
		if strings.Count(got, "\n") != strings.Count(text+value, "\n") {
			t.Errorf("Text(%q) has other lines: %q", text+value, got)
		}
		// Masking may join what stood apart; it must never bring a secret back.
		if again := Text(got); strings.Count(again, Mask) < strings.Count(got, Mask) && !strings.Contains(text+value, "mask") {
			t.Errorf("Text(%q) is masked less the second time: %q", got, again)
		}
		Known{"swordfish"}.Text(text + value)
		Words([]string{text, value, text + value})
		if len(value) > 1 && !strings.HasPrefix(value, Mask) && !harmless("X_KEY", strings.TrimRight(value, ".")) && strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/=_-~.%") == "" {
			for _, form := range []string{"X_KEY=%", "x --api-key %", `{"api_key":"%"}`, `{\"a\":{\"api_key\":\"%\"}}`, `Environment="X_KEY=%" A=b`, "X-Api-Key: %", "http://h/?x=1&api_key=%&y"} {
				if out := Text(strings.Replace(form, "%", value, 1)); out != strings.Replace(form, "%", Mask, 1) {
					t.Errorf("%s: Text shows %q: %q", form, value, out)
				}
			}
		}
	})
}

func BenchmarkText(b *testing.B) {
	line := strings.Repeat("slot print_timing: id  3 | task 187 | prompt eval time = 210.74 ms / 175 tokens (830.42 tok/s), n_tokens = 262\n", 100)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		Text(line)
	}
}
