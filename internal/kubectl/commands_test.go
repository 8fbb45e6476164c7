package kubectl

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/cmd"
)

// whole returns kubectl with all its commands.
func whole(t *testing.T) *cobra.Command {
	home := t.TempDir() // do not read the tester's preferences
	t.Setenv("HOME", home)
	t.Setenv("PATH", home)
	t.Setenv("KUBECONFIG", "")
	streams := genericiooptions.NewTestIOStreamsDiscard()
	return cmd.NewKubectlCommand(cmd.KubectlOptions{IOStreams: streams,
		ConfigFlags: genericclioptions.NewConfigFlags(false).WithDeprecatedPasswordFlag()})
}

func own() *cobra.Command {
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}
	return newRoot(newClient(nil, rest.NoWarnings{}), streams, func(*cobra.Command, []string) error { return nil })
}

// paths returns the paths of all commands below c without subcommands.
func paths(c *cobra.Command, above string) (out []string) {
	for _, below := range c.Commands() {
		if path := above + below.Name(); below.HasSubCommands() {
			out = append(out, paths(below, path+" ")...)
		} else {
			out = append(out, path)
		}
	}
	return out
}

// refusedPaths returns the refused commands and groups.
func refusedPaths() (out []string) {
	for _, some := range refusals() {
		out = append(out, some...)
	}
	return out
}

// TestCommands checks that every kubectl command is either supported or refused, and no other
// command exists.
func TestCommands(t *testing.T) {
	refused := refusedPaths()
	isRefused := func(path string) bool {
		return slices.ContainsFunc(refused, func(r string) bool { return r == path || strings.HasPrefix(path, r+" ") })
	}
	theirs := paths(whole(t), "")
	require.Greater(t, len(theirs), 80)
	var served []string
	for _, path := range theirs {
		if !isRefused(path) {
			served = append(served, path)
		}
	}
	var ours []string
	for _, path := range paths(own(), "") {
		if !isRefused(path) {
			ours = append(ours, path)
		}
	}
	slices.Sort(served)
	slices.Sort(ours)
	require.Equal(t, ours, served, "decide whether a new command is served or refused")
	for _, r := range refused {
		require.True(t, slices.ContainsFunc(theirs, func(path string) bool {
			return path == r ||
				strings.HasPrefix(path, r+" ")
		}) || r == "alpha",
			"kubectl has no %q", r)
		found, rest, err := own().Find(strings.Fields(r))
		require.NoError(t, err)
		require.Empty(t, rest, r)
		require.True(t, found.Hidden, r)
	}
}

// TestFlags checks that every flag of all kubectl commands is supported or refused.
func TestFlags(t *testing.T) {
	ours := own().PersistentFlags()
	var served []string
	ours.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			served = append(served, f.Name)
		}
	})
	require.Equal(t, []string{"as", "as-group", "namespace", "request-timeout", "warnings-as-errors"}, served)
	whole(t).PersistentFlags().VisitAll(func(f *pflag.Flag) {
		require.NotNil(t, ours.Lookup(f.Name), "decide whether --%s is served or refused", f.Name)
		require.Equal(t, f.Shorthand, ours.Lookup(f.Name).Shorthand)
		require.Equal(t, f.NoOptDefVal, ours.Lookup(f.Name).NoOptDefVal)
	})
}

// TestOwnFlags checks that a supported command has the same flags as in kubectl.
func TestOwnFlags(t *testing.T) {
	theirs := whole(t)
	for _, path := range paths(own(), "") {
		a, _, err := own().Find(strings.Fields(path))
		require.NoError(t, err)
		b, _, err := theirs.Find(strings.Fields(path))
		require.NoError(t, err)
		if !a.Hidden {
			require.Equal(t, b.LocalFlags().FlagUsages(), unhidden(a.LocalFlags()).FlagUsages(), path)
		}
	}
}

// unhidden returns the flags including refused flags.
func unhidden(flags *pflag.FlagSet) *pflag.FlagSet {
	if f := flags.Lookup("watch-only"); f != nil {
		f.Hidden, f.Value = false, flags.Lookup("watch").Value
	}
	if f := flags.Lookup("kustomize"); f != nil {
		f.Hidden = false
	}
	return flags
}
