package cmd

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

const defaultWatch = time.Minute

// watchFlag adds --watch to a command that restarts a service.
func watchFlag(f *pflag.FlagSet, to *time.Duration) {
	*to = defaultWatch
	f.Var((*span)(to), "watch", "how long to watch the service after its restart")
}

// span is a time that is not negative, such as 60s, as the value of a flag.
type span time.Duration

func (s *span) String() string { return time.Duration(*s).String() }
func (s *span) Type() string   { return "duration" }

func (s *span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("it is a time such as 60s or 5m")
	}
	*s = span(d)
	return nil
}
