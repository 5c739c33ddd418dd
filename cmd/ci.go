package cmd

import (
	"cmp"

	"github.com/1bit-systems/pkg/fleet/incident"
)

// ci is the continuous integration that may use this host's GPU, nil where the configuration names none. The token comes
// from the environment alone, so that it is written nowhere.
func (a *app) ci() *incident.CI {
	if a.config.CIRepository == "" {
		return nil
	}
	return &incident.CI{
		Repository: a.config.CIRepository, API: a.config.CIAPI, Token: cmp.Or(a.getenv("GITHUB_TOKEN"), a.getenv("GH_TOKEN")),
	}
}
