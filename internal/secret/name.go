package secret

import (
	"slices"
	"strings"
	"unicode"
)

// Named tells whether the value of a variable, an option or a header of this name is a secret.
func Named(name string) bool {
	if name == "-hft" { // llama-server's own short form of --hf-token
		return true
	}
	if !slices.ContainsFunc(stems, func(stem string) bool { return holds(name, stem) }) {
		return false // this is quicker than to divide it: logs are full of names
	}
	p := parts(name)
	if len(p) == 0 || about[p[len(p)-1]] || slices.Contains(p, "tokenizer") && strings.Contains(name, ".") {
		return false
	}
	for i, part := range p {
		before := ""
		if i > 0 {
			before = p[i-1]
		}
		if names(part, before) {
			return true
		}
	}
	return false
}

// stems are in all names of secrets.
var stems = []string{"key", "token", "pass", "pw", "auth", "secret", "cred", "cookie", "bearer", "pat", "jwt"}

// names tells whether a part of a name says secret, given the part before it.
func names(part, before string) bool {
	switch part {
	case "auth", "bearer", "cred", "creds", "pat", "jwt", "pw":
		return true
	case "pass", "passes", "passed":
		return part == "pass" && !counted[before]
	case "key", "keys":
		return !lookedUp[before]
	case "token", "tokens":
		return !vocabulary[before]
	case "pwd", "oldpwd":
		return part == "pwd" && before != "" // alone it is a shell's folder
	}
	for _, word := range []string{"secret", "password", "passwd", "passphrase", "passcode", "credential", "authorization", "cookie", "apikey", "apitoken", "privatekey"} {
		if strings.Contains(part, word) {
			return true
		}
	}
	for _, end := range []string{"key", "keys", "token", "tokens", "pass", "pwd", "dbpw"} {
		if strings.HasSuffix(part, end) && !plainWord[part] {
			return true
		}
	}
	return false
}

func set(words string) map[string]bool {
	all := map[string]bool{}
	for _, w := range strings.Fields(words) {
		all[w] = true
	}
	return all
}

var (
	// Last words of names that tell something about a secret, and not the secret.
	about = set(`length len size sizes count counts type types name names limit budget ttl timeout expiry expires age per rate second seconds
		ms bytes bits dim head heads embd embeddings idx index pos position format algorithm method enabled required mode scores merges
		logprobs ids piece weight weights text url uri endpoint env usage space ring board`)
	// Words in front of "token" that make it one of a vocabulary, or a number of them.
	vocabulary = set(`n bos eos eot eom eog pad unk sep cls msk fim pre suf mid rep nl lf mask special added stop start end first last next max
		min num total prompt completion input output cached draft drafted accepted reasoning generated image audio media eval decoded
		sampled predicted invalid unexpected unknown empty`)
	// Words in front of "key" that make it one that things are found by.
	lookedUp = set(`public pub primary foreign sort cache partition map dict lookup routing unique duplicate missing unknown invalid
		metadata gguf attn rope`)
	// Words in front of "pass" that make it one over data.
	counted = set(`single two one multi first second last n num no sub render pre forward backward band low high all by did will`)
	// Words that end like the name of a secret.
	plainWord = set(`monkey donkey turkey hockey jockey whiskey hotkey pubkey publickey bypass compass encompass trespass surpass overpass
		underpass multipass singlepass twopass onepass prepass subpass renderpass npass maxtokens mintokens ntokens numtokens prompttokens
		completiontokens eostoken bostoken padtoken unktoken septoken clstoken eottoken stoptoken stoptokens inputtokens outputtokens
		totaltokens cachekey hashkey sortkey primarykey foreignkey`)
	// Words in front of a lone "key" or "token", as prose has them, that make it a secret beyond doubt.
	beyondDoubt = set(`api access secret private auth hf bearer session refresh encryption signing ssh license service account
		github gitlab openai huggingface anthropic master subscription client`)
)

// parts divides a name at what is no letter, and where a capital follows a small letter. They come in small letters.
func parts(name string) []string {
	var b strings.Builder
	small := false
	for _, c := range name {
		switch {
		case !unicode.IsLetter(c):
			c = ' '
		case unicode.IsUpper(c) && small:
			b.WriteByte(' ')
		}
		small = unicode.IsLower(c)
		b.WriteRune(unicode.ToLower(c))
	}
	return strings.Fields(b.String())
}

// place tells whether a name is of a file or a folder where a secret lies.
func place(name string) bool {
	p := parts(name)
	if len(p) == 0 {
		return false
	}
	last := p[len(p)-1]
	for _, end := range []string{"file", "path", "dir", "directory", "folder", "home", "socket", "sock"} {
		if strings.HasSuffix(last, end) {
			return true
		}
	}
	return false
}

// only tells whether a name is one word and no more, such as key or TOKEN.
func only(name string, words ...string) bool {
	return slices.Contains(words, strings.ToLower(name))
}

// programOf remembers that a command line is of a program whose options have a password in them.
func programOf(before, word string) string {
	switch base := word[strings.LastIndexByte(word, '/')+1:]; base {
	case "curl", "sshpass":
		return base
	}
	return before
}

// pairOption is the name that an option of a program stands for, "" for none: user is of a user and a password with a
// colon between.
func pairOption(program, option string) string {
	switch {
	case program == "curl" && slices.Contains([]string{"-u", "-U", "--user", "--proxy-user"}, option):
		return userOption
	case program == "sshpass" && option == "-p":
		return "password"
	}
	return ""
}

const userOption = "user:password"

func credentials(name string) bool { return name == userOption }

// userPassword is where the password of user:password is.
func userPassword(value string) (from, to int) {
	i := strings.IndexByte(value, ':')
	if i < 0 || i+1 == len(value) || strings.HasPrefix(value[i+1:], strings.TrimSuffix(Mask, ")")) {
		return 0, 0
	}
	return i + 1, len(value)
}
