package incident

import "net/http"

// CI is a repository whose GitHub Actions may have used the same GPU.
type CI struct {
	Repository string       // owner/name
	API        string       // base URL of the API, "": GitHub's
	Token      string       // "": none, which is enough for a public repository
	Client     *http.Client // nil: http.DefaultClient
}
