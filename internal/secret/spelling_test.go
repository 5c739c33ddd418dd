package secret

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A secret, in the spellings that it is found in; each has fishword in it, and what is kept of the text follows.
func TestSpellings(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		// Names.
		{"HF_TOKEN2=fishword", "HF_TOKEN2=#"}, {"API_KEY1=fishword", "API_KEY1=#"}, {"apikey2=fishword", "apikey2=#"},
		{"TOKEN1=fishword", "TOKEN1=#"}, {"PASS1=fishword", "PASS1=#"}, {"SMTP_PW=fishword", "SMTP_PW=#"}, {"DBPWD=fishword", "DBPWD=#"},
		{"PGPASS=fishword", "PGPASS=#"}, {"MYPASS=fishword", "MYPASS=#"}, {"OPENAIAPIKEY=fishword", "OPENAIAPIKEY=#"},
		{"apiKeys=fishword", "apiKeys=#"}, {"2FA_TOKEN=fishword", "2FA_TOKEN=#"}, {"SSH_PRIVATEKEY=fishword", "SSH_PRIVATEKEY=#"},
		{"KEY_1=fishword", "KEY_1=#"}, {"private_key_id: fishword", "private_key_id: #"}, {"api.key=fishword", "api.key=#"},
		{"llama-server -hft fishword -m x", "llama-server -hft # -m x"},
		{"curl -u me:fishword http://x", "curl -u me:# http://x"}, {"curl --user 'me:fishword x' http://x", "curl --user 'me:#' http://x"},
		{"/usr/bin/curl --proxy-user=me:fishword http://x", "/usr/bin/curl --proxy-user=me:# http://x"},
		{"sshpass -p fishword ssh h", "sshpass -p # ssh h"},
		// JSON, and JSON in JSON.
		{`{\"api_key\":\"fishword\",\"x\":1}`, `{\"api_key\":\"#\",\"x\":1}`},
		{`{"body":"{\"api_key\": \"fishword\",\"x\":1}"}`, `{"body":"{\"api_key\": \"#\",\"x\":1}"}`},
		{`{"a":"{\"b\":\"{\\\"token\\\":\\\"fishword\\\",\\\"x\\\":1}\"}"}`, `{"a":"{\"b\":\"{\\\"token\\\":\\\"#\\\",\\\"x\\\":1}\"}"}`},
		{`{"api_key":"a\"fishword","x":1}`, `{"api_key":"#","x":1}`}, {`{"api_key":"a\\","x":1}`, `{"api_key":"#","x":1}`},
		{`{\"api_key\":\"a\\\"fishword\",\"x\":1}`, `{\"api_key\":\"#\",\"x\":1}`},
		{`{"api_keys":["fishword","fishword"],"x":1}`, `{"api_keys":["#","#"],"x":1}`},
		{`{"password":{"value":"fishword"},"x":1}`, `{"password":{"value":"#"},"x":1}`},
		{`{"key":{"api_key":"fishword","x":1}}`, `{"key":{"api_key":"#","x":1}}`}, {`{"keys":["fishword123","model"]}`, `{"keys":["#","model"]}`},
		{`["x-api-key","fishword"]`, `["x-api-key","#"]`}, {`('Authorization', 'Bearer fishword')`, `('Authorization', '#')`},
		{`['--api-key', 'fishword', '-m']`, `['--api-key', '#', '-m']`},
		{`{"key":"fishword123","x":1}`, `{"key":"#","x":1}`}, {`{"header":"X-Api-Key","value":"fishword"}`, `{"header":"X-Api-Key","value":"#"}`},
		{`[{"name":"HF_TOKEN","value":"fishword"}]`, `[{"name":"HF_TOKEN","value":"#"}]`},
		{"map[Authorization:[Bearer fishword] Accept:[*/*]]", "map[Authorization:[# #] Accept:[*/*]]"},
		{`Environment="JSON={\"api_key\":\"fishword\"}" A=b`, `Environment="JSON={\"api_key\":\"#\"}" A=b`},
		{"set `HF_TOKEN=fishword`, then", "set `HF_TOKEN=#`, then"}, {"set `HF_TOKEN=(masked)`, then", "set `HF_TOKEN=#`, then"},
		// Headers.
		{"authorization=Bearer fishword x", "authorization=# x"}, {"AUTHORIZATION=fishword A=b", "AUTHORIZATION=# A=b"},
		{"HTTP_COOKIE=a=1; sid=fishword", "HTTP_COOKIE=#"}, {"Authorization Basic dXNlcjpmaXNo1==", "Authorization Basic #"},
		{"-H 'Authorization: Token fishword' x", "-H 'Authorization: #' x"}, {"authorization':'Bearer fishword'", "authorization':'#'"},
		// Quotes within a word, and lines that go on.
		{`Environment=HF_TOKEN=abc"fishword x" A=b`, `Environment=HF_TOKEN=# A=b`}, {`Environment=HF_TOKEN="abc"fishword A=b`, `Environment=HF_TOKEN=# A=b`},
		{`Environment=HF_TOKEN=a'fishword x' A=b`, `Environment=HF_TOKEN=# A=b`}, {`Environment="HF_TOKEN=""fishword"`, `Environment="HF_TOKEN=#`},
		{"Environment=MIXED_KEY=abc&fishword A=b", "Environment=MIXED_KEY=# A=b"}, {`Environment=KEY=aa\x22fishword A=b`, `Environment=KEY=# A=b`},
		{"Environment=MASTER_KEY=abc\\\nfishword", "Environment=MASTER_KEY=#\\\n"},
		{"x --api-key \\\n# comment\n  fishword \\\n -m x", "x --api-key \\\n# comment\n  # \\\n -m x"},
		{"x --api-key \\\r\n  fishword", "x --api-key \\\r\n  #"},
		{"SetCredential=id:two fishword\nA=b", "SetCredential=id:#\nA=b"},
		{"SetCredentialEncrypted=id: \\\n  fishword \\\n  fishword\nA=b", "SetCredentialEncrypted=id: \\\n  # \\\n  \nA=b"},
		{"SetCredential=id:two \\\n# fishword\nfishword\nA=b", "SetCredential=id:# \\\n\n\nA=b"},
		{`sh -c "x --api-key 'fish word' -m x"`, `sh -c "x --api-key '#' -m x"`}, {`sh -c "x --api-key \"fish word\" -m x"`, `sh -c "x --api-key \"#\" -m x"`},
		{"sh -c 'API_KEY=fishword exec llama-server'", "sh -c 'API_KEY=# exec llama-server'"},
		// URLs.
		{"https://fishword:x-oauth-basic@github.com/a", "https://#:x-oauth-basic@github.com/a"}, {"https://fishword:@host/", "https://#:@host/"},
		{"ftp://fishword@h/", "ftp://#@h/"}, {"postgres://u:fish/word@h/db", "postgres://u:#@h/db"}, {"https://u:a@fishword@h/", "https://u:#@h/"},
		{"redis://:fishword@h", "redis://:#@h"}, {"/v1?sig=fishword&a=1", "/v1?sig=#&a=1"}, {"/v1?a=1&session=fishword", "/v1?a=1&session=#"},
		{"X-Amz-Signature=fishword", "X-Amz-Signature=#"}, {"/v1?key=fishword&a=1", "/v1?key=#&a=1"},
		{"https://hooks.slack.com/services/T0/B0/fishword", "https://hooks.slack.com/services/#"},
		// Shapes.
		{"x glpat-0123456789fishword_-x y", "x # y"}, {"AIzaSy0123456789fishword0123456789abcdef", "#"}, {"x AKIAIOSFODNN7EXAMPLE y", "x # y"},
		{"npm_0123456789fishword0123456789abcd", "#"}, {"xoxe-0123456789fishword", "#"}, {"sk_live_0123456789fishword", "#"},
		{"-----BEGIN PGP PRIVATE KEY BLOCK-----\nfishword", "#\n"},
		// Sentences.
		{"API key fishword123 is not known", "API key # is not known"}, {"password is fishword123", "password is #"}, {"token => fishword", "token => #"},
		{"API Key: fishword", "API Key: #"}, {"Invalid access token: fishword", "Invalid access token: #"}, {"x-api-key, fishword123", "x-api-key, #"},
		// What is not seen.
		{"\x1b[31mapi_key\x1b[0m=\x1b[1mfishword\x1b[0m", "\x1b[31mapi_key\x1b[0m=\x1b[1m#\x1b[0m"}, {"api\u200b_key\u200b=fishword", "api\u200b_key\u200b=#"},
		{"x\x00--api-key\x00fishword\x00-m", "x\x00--api-key\x00#\x00-m"}, {"HF_TOKEN\x01=fish\x1b[1mword", "HF_TOKEN\x01=#"},
		{"<password>fish word</password>", "<password>#</password>"}, {"HF_TOKEN=(masked)fishword", "HF_TOKEN=#"},
	} {
		want := strings.ReplaceAll(test.want, "#", Mask)
		if strings.Contains(test.in, "# comment") {
			want = strings.Replace(want, Mask+" comment", "# comment", 1)
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

// What an owner needs to see.
func TestFactsStay(t *testing.T) {
	for _, text := range []string{
		"slot release: id 3 | task 187 | stop processing: n_tokens = 262, truncated = 0",
		"slot print_timing: n_prompt_tokens = 31, tokens_per_second = 12.5, tokens: 1024",
		`"usage":{"prompt_tokens":12,"completion_tokens":30,"total_tokens":42},"tokens_cached":7,"max_tokens":null`,
		`{"tokens":[1,2,151643],"token":5,"stop":true}`,
		"--override-kv tokenizer.ggml.add_bos_token=bool:false -m x.gguf",
		"--override-kv tokenizer.ggml.eos_token_id=int:151645,tokenizer.ggml.add_eos_token=bool:true",
		"--api-key-file /etc/llm/api.keys --port 8080", "--api-key-file keys/llm.txt", "--api-key-file ~/.keys --ssl-key-file=/etc/ssl/k.pem",
		"SSL_KEY=/etc/ssl/private/llm.pem HF_TOKEN_PATH=/home/ai/.cache/token CREDENTIALS_FILE=./creds.json",
		"--api-key ${LLAMA_API_KEY} --hf-token ${HF_TOKEN}",
		"LoadCredential=hf:/etc/credstore/hf", "ImportCredential=llm.*", "TOKENIZERS_PARALLELISM=false tokenizer_path=/m/tokenizer.json",
		"llama_model_loader: - kv  12: tokenizer.ggml.tokens arr[str,151936]  = [\"!\", \"\\\"\", \"#\", \"$\"]",
		"llama_model_loader: - kv  13: tokenizer.ggml.token_type arr[i32,151936]  = [1, 1, 1, 1]",
		"llama_model_loader: - kv   7: qwen3.attention.key_length u32 = 128",
		"llama_model_loader: - kv  20: tokenizer.ggml.add_bos_token bool = false",
		"llama_model_loader: - kv  21: tokenizer.ggml.bos_token_id u32 = 151643",
		"llama_model_loader: Dumping metadata keys/values. Note: KV overrides do not apply in this output.",
		"llama_model_loader: key = value", `{"key":"general.architecture","value":"qwen3"}`, `{"name":"n_ctx","value":"4096"}`, "missing key: general.architecture", "unknown key: blk.0.attn_k.weight",
		"print_info: EOS token        = 151645 '<|im_end|>'", "print_info: FIM PRE token    = 151659 '<|fim_prefix|>'", "print_info: max token length = 256",
		`"bos_token":"<s>","eos_token":"<|im_end|>","pad_token":"[PAD]"`, "eos_token: </s>",
		"load: special_eos_id is not in special_eog_ids", "load: special tokens cache size = 26", "load: token to piece cache size = 0.9311 MB",
		"n_embd_head_k = 128, n_embd_k_gqa = 1024, key_length = 128, cache_key_size: 448.00 MiB",
		"llama_kv_cache: K (f16):  224.00 MiB, keys: 224.00 MiB, prompt_cache_key=abc123def", "sort_key=name public_key=abcdef123456",
		"auth: disabled, api_key: none, api keys loaded: 2", "auth_type=basic KEY_TYPE=ed25519 password_length: 12 TOKEN_TTL=30m token_url=http://127.0.0.1/x",
		"GGML_HRX_BYPASS=1 GGML_HRX_SINGLE_PASS=sweep compass=north PWD=/home/ai OLDPWD=/srv/x",
		"nulls of 24 tokens: clean 0, n_tokens = unknown", `tensor("token_embd.weight", [WIDTH, VOCAB])`,
		`{"check":"misplaced-key","where":"/etc/x"}`, `["misplaced-key","no-restart"]`, "/etc/passwd: permission denied", "GET /v1/token: 404",
		`{"content":"","tokens_predicted":64,"tokens_evaluated":12}`, "reasoning budget: tokens=-1, start=0 toks", "cannot pass: the bound is lower", `["--api-key","--api-key-file"]`,
		"--- PASS: TestReal", "GGML_ASSERT(a.key == b.key) failed",
		"test-backend-ops: pass: 12, fail: 0", "12 passed, 0 failed", "docker run -u 1000:1000 x", "journalctl -u llm.service", "ssh://git@github.com/a/b",
		"http://127.0.0.1:8080/v1/@x", "see http://[::1]:8080/health", "basic authentication is off", "author: somebody, keepalive=30, monkey=x",
		"a task-0123456789abcdef0123 ran, disk-0123456789abcdef0123 is full", "the token is valid", "API key is missing", "password was changed",
		"hw-gate.yml at 744bd713d968 token 151643", "SHA256:0123456789abcdef", "don't stop: it's fine",
	} {
		if got := Text(text); got != text {
			t.Errorf("Text(%q) =\n%q", text, got)
		}
	}
}

func TestWordsOfPrograms(t *testing.T) {
	got := Words([]string{"curl", "-u", "me:fishword", "--user=me:fishword", "-H", "Authorization: Bearer fishword", "http://x/?a=1&token=fishword"})
	want := []string{"curl", "-u", "me:" + Mask, "--user=me:" + Mask, "-H", "Authorization: " + Mask, "http://x/?a=1&token=" + Mask}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	got = Words([]string{"llama-server", "-hft", "fishword", "--override-kv", "tokenizer.ggml.add_bos_token=bool:false", "--api-key-file", "/etc/k", "-c", "4096", "-u", "a:b"})
	want = []string{"llama-server", "-hft", Mask, "--override-kv", "tokenizer.ggml.add_bos_token=bool:false", "--api-key-file", "/etc/k", "-c", "4096", "-u", "a:b"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	got = Words([]string{"sh", "-c", "API_KEY=fishword exec curl -H 'X-Token: fishword' http://x?a=b"})
	want = []string{"sh", "-c", "API_KEY=" + Mask + " exec curl -H 'X-Token: " + Mask + "' http://x?a=b"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
