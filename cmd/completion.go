package cmd

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/acceptance"
)

// Shell completion knows the installed packages and the services. It waits for nobody: what cannot be had within a
// second is not offered.

const completionTime = time.Second

func (a *app) completePackages(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	var names []string
	if a.setUp(cmd, nil) == nil {
		if packages, err := a.store().List(ctx); err == nil {
			for _, p := range packages {
				names = append(names, p.Name)
			}
		}
	}
	directive := cobra.ShellCompDirectiveNoFileComp
	if cmd.Name() == "inspect" || cmd.Name() == "diff" {
		directive = cobra.ShellCompDirectiveDefault // an archive's path will do too
	}
	return names, directive
}

func (a *app) completeFixes(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	var ids []string
	if a.setUp(cmd, nil) == nil {
		if packages, err := a.store().List(ctx); err == nil {
			ids = knownFixes(packages)
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completeUnits(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	var units []string
	if (len(args) == 0 || cmd.Name() == "status") && a.setUp(cmd, nil) == nil {
		if services, err := a.host().Status(ctx); err == nil {
			for _, s := range services {
				units = append(units, s.Unit)
			}
		}
	}
	return units, cobra.ShellCompDirectiveNoFileComp
}

// completeBlocked knows of a unit the packages that are blocked for it.
func (a *app) completeBlocked(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return a.completeUnits(cmd, args, typed)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	var names []string
	if a.setUp(cmd, nil) == nil {
		if services, err := a.host().Status(ctx, args[0]); err == nil {
			for _, s := range services {
				for _, b := range s.Blocked {
					names = append(names, b.Package)
				}
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completeUnitThenPackage(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		units, _ := a.completeUnits(cmd, args, typed)
		names, directive := a.completePackages(cmd, args, typed)
		return append(units, names...), directive
	case 1:
		return a.completePackages(cmd, args, typed)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completeIncidents knows the folders of this host's incidents; a file, or another folder, will do too.
func (a *app) completeIncidents(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var folders []string
	if len(args) == 0 && a.setUp(cmd, nil) == nil {
		if entries, err := os.ReadDir(a.incidentsDir()); err == nil {
			for _, e := range slices.Backward(entries) { // their names begin with the time
				if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
					folders = append(folders, filepath.Join(a.incidentsDir(), e.Name()))
				}
			}
		}
	}
	return folders, cobra.ShellCompDirectiveDefault
}

// completePlans knows the plans that come with the program; a file will do too.
func completePlans(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return acceptance.ReadyPlans(), cobra.ShellCompDirectiveDefault
}

func completeFolders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}
