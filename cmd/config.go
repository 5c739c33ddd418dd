package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/1bit-systems/pkg/fleet/incident"
	"github.com/1bit-systems/pkg/internal/procfs"
	"github.com/1bit-systems/pkg/systemd"
)

// config is what the configuration file, the environment (ONEBIT_PKG_…) and the flags say, in rising order of
// force. The owner's policy alone comes from the file and from nowhere else.
type config struct {
	// Scope is "user" or "system".
	Scope string `mapstructure:"scope"`
	// DataHome holds the packages, StateHome the journal and the locks.
	DataHome  string `mapstructure:"data_home"`
	StateHome string `mapstructure:"state_home"`
	// Restart is the owner's policy: confirm (asks on a terminal), grant or free. File only.
	Restart string `mapstructure:"restart"`
	// LoadDeadline bounds the time a restarted service may take to answer.
	LoadDeadline time.Duration `mapstructure:"load_deadline"`
	// ClaimLock is the file that whoever uses the GPU locks, ClaimFloorGiB the memory that must be left. Unset they
	// are the host's, in the system's file, else the built-in ones.
	ClaimLock     string   `mapstructure:"claim_lock"`
	ClaimFloorGiB *float64 `mapstructure:"claim_floor_gib"`
	// CIRepository is the repository, owner/name, whose GitHub Actions may use this host's GPU; "": none is asked.
	// CIAPI is the base URL of the API, "": GitHub's.
	CIRepository string `mapstructure:"ci_repository"`
	CIAPI        string `mapstructure:"ci_api"`

	// configHome is where unit drop-ins and the file itself lie.
	configHome string
	// file was read; policyFile is where the policy in force stands.
	file, policyFile string
}

var configKeys = []string{"scope", "data_home", "state_home", "restart", "load_deadline", "claim_lock", "claim_floor_gib", "ci_repository", "ci_api"}

const (
	restartConfirm = "confirm"
	restartGrant   = "grant"
	restartFree    = "free"
)

var scopes = []string{string(systemd.ScopeUser), string(systemd.ScopeSystem)}

// policies in rising order of strictness.
var policies = []string{restartFree, restartConfirm, restartGrant}

// systemConfigFile is the configuration of the system's scope.
const systemConfigFile = "/etc/1bit/config.yaml"

// loadConfig reads the file that --config names, else the scope's own. What the scope's own file says of the
// owner's policy, if only by saying nothing, holds in either case: another file can only be stricter.
func (a *app) loadConfig(flags *pflag.FlagSet) (config, error) {
	own := a.ownConfigFile(flags)
	file := own
	if a.flags.config != "" {
		file = a.flags.config
	}
	c, err := a.readConfig(file, file != own, flags)
	if err != nil {
		return c, err
	}
	if file != own {
		owners, err := a.readConfig(own, false, flags)
		if err != nil {
			return c, err
		}
		if slices.Index(policies, owners.Restart) > slices.Index(policies, c.Restart) {
			c.Restart, c.policyFile = owners.Restart, own
		}
	}
	return c, a.complete(&c)
}

// readConfig reads one file, under what the environment and the flags say. A file that need not be there counts as
// empty when it is missing.
func (a *app) readConfig(file string, mustExist bool, flags *pflag.FlagSet) (c config, err error) {
	v := viper.NewWithOptions(viper.KeyDelimiter("::"))
	v.SetConfigType("yaml")
	v.SetDefault("restart", restartConfirm)
	v.SetDefault("load_deadline", 5*time.Minute)
	v.SetDefault("scope", a.defaultScope())
	v.SetDefault("data_home", "")
	v.SetDefault("state_home", "")
	for _, key := range []string{"scope", "data_home", "state_home", "load_deadline", "claim_lock", "claim_floor_gib", "ci_repository", "ci_api"} {
		if value := a.override(key, flags); value != "" {
			v.Set(key, value)
		}
	}
	c = config{configHome: a.xdg("XDG_CONFIG_HOME", ".config"), file: file, policyFile: file}
	text, err := procfs.Read(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !mustExist:
	case err != nil:
		return c, fmt.Errorf("read the configuration: %w", err)
	default:
		if err := v.ReadConfig(strings.NewReader(string(text))); err != nil {
			return c, usagef("configuration %s: %s", file, configProblem(err))
		}
	}
	for _, key := range v.AllKeys() {
		if name, _, _ := strings.Cut(key, "::"); !slices.Contains(configKeys, name) {
			return c, usagef("configuration %s: unknown key %q: it knows %s", file, name, strings.Join(configKeys, ", "))
		}
	}
	decode := viper.DecodeHook(mapstructure.DecodeHookFuncType(timeHook))
	if err := v.UnmarshalExact(&c, decode); err != nil {
		return c, usagef("configuration %s: %s", file, configProblem(err))
	}
	if a.override("scope", flags) == "" && !slices.Contains(scopes, c.Scope) {
		return c, usagef("configuration %s: scope is %q: it is %s", file, c.Scope, strings.Join(scopes, " or "))
	}
	if !slices.Contains(policies, c.Restart) {
		return c, usagef("configuration %s: restart is %q: it is confirm, grant or free", file, c.Restart)
	}
	if c.ClaimLock != "" && !filepath.IsAbs(c.ClaimLock) {
		return c, usagef("claim_lock is %q: it is the absolute path of a file", c.ClaimLock)
	}
	if c.ClaimFloorGiB != nil && !(*c.ClaimFloorGiB >= 0) { // NaN is no number
		return c, usagef("claim_floor_gib is %v: it is 0 for none, or more", *c.ClaimFloorGiB)
	}
	if ci := (&incident.CI{Repository: c.CIRepository, API: c.CIAPI}); c.CIRepository != "" || c.CIAPI != "" {
		if err := ci.Check(); err != nil {
			return c, usagef("ci_repository and ci_api: %v", err)
		}
	}
	return c, nil
}

// configProblem is what the readers of the file say, on one line. That of YAML leaves the number of the first line out.
func configProblem(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		if _, ok := err.(viper.ConfigParseError); ok {
			err = inner
		}
	}
	text := err.Error()
	if _, after, ok := strings.Cut(text, "error(s):"); ok {
		text = after
	}
	text = strings.Join(strings.Fields(text), " ")
	if yaml, ok := strings.CutPrefix(text, "yaml: "); ok && !strings.Contains(yaml, "line ") {
		text = "yaml: line 1: " + yaml
	}
	return text
}

// timeHook reads a time, which has a unit: a bare number would be taken for nanoseconds.
func timeHook(_, to reflect.Type, value any) (any, error) {
	if to != reflect.TypeFor[time.Duration]() {
		return value, nil
	}
	switch v := value.(type) {
	case time.Duration:
		return v, nil
	case string:
		if d, err := time.ParseDuration(v); err == nil {
			return d, nil
		}
	}
	return nil, fmt.Errorf("%v is no time: it is one such as 5m or 90s", value)
}

// override is what a flag, else the environment, says of a key; "" is nothing.
func (a *app) override(key string, flags *pflag.FlagSet) string {
	if f := flags.Lookup(strings.ReplaceAll(key, "_", "-")); f != nil && f.Changed {
		return f.Value.String()
	}
	return a.getenv("ONEBIT_PKG_" + strings.ToUpper(key))
}

// complete checks the values and fills in the places that follow from the scope.
func (a *app) complete(c *config) error {
	if c.LoadDeadline <= 0 {
		return usagef("load_deadline is %v: it is a time such as 5m", c.LoadDeadline)
	}
	data, state := a.xdg("XDG_DATA_HOME", ".local/share"), a.xdg("XDG_STATE_HOME", ".local/state")
	if state != "" {
		state = filepath.Join(state, "1bit")
	}
	switch systemd.Scope(c.Scope) {
	case systemd.ScopeUser:
	case systemd.ScopeSystem:
		data, state = systemDataHome, systemStateHome
	default:
		return usagef("unknown scope %q: it is user or system", c.Scope)
	}
	if c.DataHome == "" {
		c.DataHome = data
	}
	if c.StateHome == "" {
		c.StateHome = state
	}
	for _, dir := range []*string{&c.DataHome, &c.StateHome} {
		if *dir == "" {
			return usagef("neither HOME nor --data-home and --state-home say where packages and state are kept")
		}
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return err
		}
		*dir = abs
	}
	return nil
}

func (a *app) defaultScope() string {
	if a.uid == 0 {
		return string(systemd.ScopeSystem)
	}
	return string(systemd.ScopeUser)
}

// ownConfigFile is the file of the scope's owner.
func (a *app) ownConfigFile(flags *pflag.FlagSet) string {
	scope := a.override("scope", flags)
	if scope == "" {
		scope = a.defaultScope()
	}
	if systemd.Scope(scope) == systemd.ScopeSystem {
		return systemConfigFile
	}
	return filepath.Join(a.xdg("XDG_CONFIG_HOME", ".config"), "1bit", "config.yaml")
}

// xdg is a folder of the XDG base directory specification; a relative value counts as unset, as it says.
func (a *app) xdg(variable, below string) string {
	if dir := a.getenv(variable); filepath.IsAbs(dir) {
		return dir
	}
	home := a.getenv("HOME")
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, below)
}
