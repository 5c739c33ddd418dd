package acceptance

// leaks finds marks of other requests in answers. It knows every nonce so far,
// also of requests that are not answered yet.
type leaks map[string]int

// find returns the request whose nonce stands in the text, other than its own.
func (l leaks) find(text string, own int) (int, bool) {
	for i := 0; i+nonceLength <= len(text); i++ {
		if id, known := l[text[i:i+nonceLength]]; known && id != own {
			return id, true
		}
	}
	return 0, false
}
