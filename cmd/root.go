package cmd

import (
	"strings"

	"github.com/spf13/cobra"
)

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "1bit",
		Short: "Packages and services of the 1bit inference engine",
		Long: `1bit builds versioned engine packages, installs them side by side, soaks a release
candidate, and switches systemd services between packages with a drop-in that is
trivial to roll back. Only the owner restarts.`,
		Version:           Version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: a.setUp,
		Args:              noSubcommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("1bit {{.Version}}\n")
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%w", err) })
	f := root.PersistentFlags()
	f.StringVarP(&a.flags.output, "output", "o", "text", "output format: text or json")
	f.StringVar(&a.flags.config, "config", "", "configuration file (default $XDG_CONFIG_HOME/1bit/config.yaml, system /etc/1bit/config.yaml)")
	f.StringVar(&a.flags.scope, "scope", "", "systemd scope: user or system (default user, as root system)")
	f.StringVar(&a.flags.dataHome, "data-home", "", "folder of the packages (default $XDG_DATA_HOME, system /opt/1bit)")
	f.StringVar(&a.flags.stateHome, "state-home", "", "folder of journal and locks (default $XDG_STATE_HOME/1bit, system /var/lib/1bit)")
	f.BoolVar(&a.flags.yes, "yes", false, "answer yes to questions other than the owner's")
	f.BoolVar(&a.flags.quiet, "quiet", false, "no progress, and no notes on a build")
	f.BoolVar(&a.flags.noColor, "no-color", false, "no colours (also NO_COLOR)")
	f.StringVar(&a.flags.logLevel, "log-level", "warn", "log on standard error: debug, info, warn or error")
	for flag, values := range map[string][]string{
		"output": {"text", "json"}, "scope": {"user", "system"}, "log-level": {"debug", "info", "warn", "error"},
	} {
		_ = root.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	root.SetHelpCommand(newHelpCommand(root))
	root.AddCommand(newPkgCommand(a), newAcceptCommand(a), newIncidentCommand(a), newDoctorCommand(a), newClaimCommand(a), newExitCodesTopic())
	return root
}

func newPkgCommand(a *app) *cobra.Command {
	c := group("pkg", "Build, install and switch packages")
	c.AddCommand(
		newPkgBuildCommand(a), newPkgInspectCommand(a), newPkgDiffCommand(a), newPkgInstallCommand(a), newPkgImportCommand(a),
		newPkgListCommand(a), newPkgVerifyCommand(a), newPkgRemoveCommand(a), newPkgGCCommand(a),
		newPkgStatusCommand(a), newPkgSwitchCommand(a), newPkgRestartCommand(a), newPkgRollbackCommand(a),
		newPkgAdoptCommand(a), newPkgUnadoptCommand(a), newPkgServiceCommand(a),
		newPkgProposeCommand(a), newPkgHoldCommand(a), newPkgUnholdCommand(a), newPkgUnblockCommand(a), newPkgUnswitchCommand(a), newPkgHistoryCommand(a),
	)
	return c
}

func newAcceptCommand(a *app) *cobra.Command {
	c := group("accept", "Soak a package and judge it")
	c.AddCommand(
		newAcceptPlanCommand(a), newAcceptRunCommand(a), newAcceptResumeCommand(a), newAcceptWatchCommand(a),
		newAcceptVerdictCommand(a), newAcceptAuditCommand(a), newAcceptReportCommand(a),
	)
	return c
}

// group is a command that only holds others. It runs itself so that an unknown subcommand is wrong usage and
// not a page of help with exit status 0.
func group(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: noSubcommand, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}

func noSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	meant := ""
	close := cmd.SuggestionsFor(args[0])
	if len(close) == 0 {
		for _, below := range cmd.Commands() { // "1bit switch" is "1bit pkg switch"
			for _, c := range below.Commands() {
				if c.Name() == args[0] && !c.Hidden {
					close = append(close, c.CommandPath())
				}
			}
		}
	}
	if len(close) > 0 {
		meant = " (did you mean " + strings.Join(close, " or ") + "?)"
	}
	return usagef("unknown command %q for %q%s: see %s --help", args[0], cmd.CommandPath(), meant, cmd.CommandPath())
}

// exactly, atLeast and between are argument counts whose violation is wrong usage.
func between(low, high int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < low || high >= 0 && len(args) > high {
			return usagef("wrong number of arguments: usage is %s", cmd.UseLine())
		}
		return nil
	}
}

// newHelpCommand is cobra's, except that an unknown topic is wrong usage.
func newHelpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about any command, and about exit-codes",
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if found, rest, err := root.Find(args); err == nil && len(rest) == 0 {
				for _, c := range found.Commands() {
					if c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
						names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			if err != nil || found == nil || len(rest) > 0 {
				return usagef("no help on %q: 1bit --help lists the commands", strings.Join(args, " "))
			}
			return found.Help()
		},
	}
}
