package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"

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

	// configHome is where unit drop-ins and the file itself lie.
	configHome string
	file       string
}

var configKeys = []string{"scope", "data_home", "state_home", "restart", "load_deadline"}

const (
	restartConfirm = "confirm"
	restartGrant   = "grant"
	restartFree    = "free"
)

func (a *app) loadConfig(flags *pflag.FlagSet) (config, error) {
	v := viper.NewWithOptions(viper.KeyDelimiter("::"))
	v.SetConfigType("yaml")
	v.SetDefault("restart", restartConfirm)
	v.SetDefault("load_deadline", 5*time.Minute)
	v.SetDefault("scope", a.defaultScope())
	v.SetDefault("data_home", "")
	v.SetDefault("state_home", "")
	for key, flag := range map[string]string{"scope": "scope", "data_home": "data-home", "state_home": "state-home", "load_deadline": ""} {
		if value := a.getenv("ONEBIT_PKG_" + strings.ToUpper(key)); value != "" {
			v.Set(key, value)
		}
		if f := flags.Lookup(flag); f != nil && f.Changed {
			v.Set(key, f.Value.String())
		}
	}
	var c config
	c.configHome = a.xdg("XDG_CONFIG_HOME", ".config")
	c.file = a.configFile(v.GetString("scope"))
	text, err := os.ReadFile(c.file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && a.flags.config == "":
	case err != nil:
		return c, fmt.Errorf("read the configuration: %w", err)
	default:
		if err := v.ReadConfig(strings.NewReader(string(text))); err != nil {
			return c, usagef("configuration %s: %w", c.file, err)
		}
	}
	for _, key := range v.AllKeys() {
		if name, _, _ := strings.Cut(key, "::"); !slices.Contains(configKeys, name) {
			return c, usagef("configuration %s: unknown key %q: it knows %s", c.file, name, strings.Join(configKeys, ", "))
		}
	}
	decode := viper.DecodeHook(mapstructure.StringToTimeDurationHookFunc())
	if err := v.UnmarshalExact(&c, decode); err != nil {
		return c, usagef("configuration %s: %w", c.file, err)
	}
	return c, a.complete(&c)
}

// complete checks the values and fills in the places that follow from the scope.
func (a *app) complete(c *config) error {
	switch c.Restart {
	case restartConfirm, restartGrant, restartFree:
	default:
		return usagef("configuration %s: restart is %q: it is confirm, grant or free", c.file, c.Restart)
	}
	if c.LoadDeadline <= 0 {
		return usagef("load_deadline is %v: it is a time such as 5m", c.LoadDeadline)
	}
	data, state := a.xdg("XDG_DATA_HOME", ".local/share"), filepath.Join(a.xdg("XDG_STATE_HOME", ".local/state"), "1bit")
	switch systemd.Scope(c.Scope) {
	case systemd.ScopeUser:
	case systemd.ScopeSystem:
		data, state = "/opt/1bit", "/var/lib/1bit"
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

func (a *app) configFile(scope string) string {
	switch {
	case a.flags.config != "":
		return a.flags.config
	case systemd.Scope(scope) == systemd.ScopeSystem:
		return "/etc/1bit/config.yaml"
	}
	return filepath.Join(a.xdg("XDG_CONFIG_HOME", ".config"), "1bit", "config.yaml")
}

// xdg is a folder of the XDG base directory specification; a relative value counts as unset, as it says.
func (a *app) xdg(variable, below string) string {
	if dir := a.getenv(variable); filepath.IsAbs(dir) {
		return dir
	}
	home := a.getenv("HOME")
	if home == "" {
		return ""
	}
	return filepath.Join(home, below)
}
