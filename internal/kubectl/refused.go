package kubectl

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// RefusedError reports a command or flag that a file cannot support.
type RefusedError struct {
	What   string // the command or the flag
	Reason string
}

func (e *RefusedError) Error() string { return e.What + ": " + e.Reason }

// refusals returns the refused kubectl commands, including all their subcommands, by reason.
func refusals() map[string][]string {
	return map[string][]string{
		"it changes objects, and a snapshot is only read; restore it, and use kubectl on that cluster": {
			"annotate", "apply", "auth reconcile", "autoscale", "certificate", "cordon", "create", "delete", "drain",
			"edit", "expose", "label",
			"patch", "replace", "rollout pause", "rollout restart", "rollout resume", "rollout undo", "run", "scale",
			"set", "taint", "uncordon",
		},
		"it needs running containers, and a snapshot has none; \"describe\" and \"events\" show what the cluster " +
			"noted about them": {
			"attach", "cp", "debug", "exec", "logs", "port-forward",
		},
		"it waits for changes, and a snapshot has none; \"get\" and \"describe\" show the state": {
			"rollout status", "wait"},
		"it needs a server that would apply the files; \"etcdshift diff OLD NEW\" compares two snapshots": {"diff"},
		"a snapshot has no metrics of what runs; \"etcdshift sizes\" tells what fills it":                 {"top"},
		"a snapshot has no server with an address; \"etcdshift status\" tells what it is": {
			"cluster-info", "proxy", "version"},
		"it needs no cluster; use kubectl itself": {
			"alpha", "completion", "config", "kuberc", "kustomize", "plugin",
		},
	}
}

// refused returns the refused commands below a group, or below kubectl itself for "".
func refused(group string) (out []*cobra.Command) {
	for reason, paths := range refusals() {
		for _, path := range paths {
			if at := strings.LastIndex(path, " "); path[:max(at, 0)] == group {
				out = append(out, refuse(path, path[at+1:], reason))
			}
		}
	}
	slices.SortFunc(out, func(a, b *cobra.Command) int { return strings.Compare(a.Use, b.Use) })
	return out
}

func refuse(path, name, reason string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true, Args: cobra.ArbitraryArgs,
		Short: "refused: " + reason,
		RunE:  func(*cobra.Command, []string) error { return &RefusedError{path, reason} },
	}
}

// refusedFlag is the value of a refused flag.
type refusedFlag struct {
	*pflag.Flag
	reason string
}

// String returns the default, not shown in help.
func (f *refusedFlag) String() string { return "" }

// Type returns a type that is never shown.
func (f *refusedFlag) Type() string { return "string" }

// Set refuses the flag.
func (f *refusedFlag) Set(string) error { return &RefusedError{"--" + f.Name, f.reason} }
