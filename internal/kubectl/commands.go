package kubectl

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/cmd/apiresources"
	"k8s.io/kubectl/pkg/cmd/auth"
	"k8s.io/kubectl/pkg/cmd/describe"
	"k8s.io/kubectl/pkg/cmd/events"
	"k8s.io/kubectl/pkg/cmd/explain"
	"k8s.io/kubectl/pkg/cmd/get"
	"k8s.io/kubectl/pkg/cmd/options"
	"k8s.io/kubectl/pkg/cmd/rollout"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	// Before the kubectl packages, which request translations during initialization.
	_ "github.com/etcdshift/etcdshift/internal/kubectl/english"
)

// newRoot returns kubectl with its supported and refused commands. Supported commands call serve
// first.
func newRoot(
	client *client, streams genericiooptions.IOStreams, serve func(*cobra.Command, []string) error,
) *cobra.Command {
	root := &cobra.Command{Use: "kubectl", Short: "kubectl reads a snapshot", SilenceErrors: true, SilenceUsage: true,
		DisableSuggestions: true}
	addFlags(root.PersistentFlags(), client)
	f := cmdutil.NewFactory(client)
	groups := templates.CommandGroups{{Message: "Commands:", Commands: []*cobra.Command{
		get.NewCmdGet("kubectl", f, streams),
		describe.NewCmdDescribe("kubectl", f, streams),
		explain.NewCmdExplain("kubectl", f, streams),
		events.NewCmdEvents(f, streams),
		apiresources.NewCmdAPIResources(f, streams),
		apiresources.NewCmdAPIVersions(f, streams),
		group("auth", "Inspect authorization", canI(f, streams), auth.NewCmdWhoAmI(f, streams)),
		group("rollout", "View rollout history", rollout.NewCmdRolloutHistory(f, streams)),
	}}}
	groups.Add(root)
	root.AddCommand(options.NewCmdOptions(streams.Out))
	root.AddCommand(refused("")...)
	templates.ActsAsRootCommand(root, []string{"options"}, groups...)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return err }) // the caller adds its own hint
	for _, command := range groups[0].Commands {
		prepare(command, serve)
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	return root
}

// Flags returns the flags of a supported kubectl command: its own flags, and --namespace if the
// command has --all-namespaces.
func Flags(name string) (flags []*pflag.Flag) {
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}
	c, _, err := newRoot(newClient(nil, rest.NoWarnings{}), streams, nil).Find([]string{name})
	if err != nil {
		panic(err) // the name comes from newRoot
	}
	if c.LocalFlags().Lookup("all-namespaces") != nil {
		flags = append(flags, c.InheritedFlags().Lookup("namespace"))
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			flags = append(flags, f)
		}
	})
	return flags
}

// Commands returns the names of the supported commands.
func Commands() (names []string) {
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}
	for _, c := range newRoot(newClient(nil, rest.NoWarnings{}), streams, nil).Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return names
}

// group returns a command that has only subcommands.
func group(name, short string, served ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: name, Short: short, RunE: func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		return fmt.Errorf("unknown command %q for %q", args[0], c.CommandPath())
	}}
	c.AddCommand(served...)
	c.AddCommand(refused(name)...)
	return c
}

const warningsAsErrors = "warnings-as-errors"

// addFlags adds kubectl's global flags. Most select a cluster and are refused.
func addFlags(flags *pflag.FlagSet, client *client) {
	own := &genericclioptions.ConfigFlags{
		Namespace: &client.namespace, Timeout: &client.timeout, Impersonate: &client.user.UserName,
		ImpersonateGroup: &client.user.Groups,
	}
	own.AddFlags(flags)
	flags.Bool(warningsAsErrors, false, "Treat warnings received from the server as errors and exit with a "+
		"non-zero exit code")
	others := pflag.NewFlagSet("", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(false).WithDeprecatedPasswordFlag().AddFlags(others)
	cmdutil.NewMatchVersionFlags(client).AddFlags(others)
	for _, name := range []string{"kuberc", "profile", "profile-output"} {
		others.String(name, "", "")
	}
	others.VisitAll(func(f *pflag.Flag) {
		if flags.Lookup(f.Name) == nil {
			reason := "it chooses a cluster, or the way to it; this command reads SNAPSHOT"
			if strings.HasPrefix(f.Name, "as-") {
				reason = "RBAC rules name users and groups alone; give --as and --as-group"
			}
			f.Hidden, f.Value = true, &refusedFlag{f, reason}
			flags.AddFlag(f)
		}
	})
}

// prepare makes a command and its subcommands start the server before they run. It disables
// --watch, and refuses --watch-only, --kustomize (which may run git) and URLs as files.
func prepare(c *cobra.Command, serve func(*cobra.Command, []string) error) {
	if c.HasSubCommands() {
		for _, below := range c.Commands() {
			if !below.Hidden {
				prepare(below, serve)
			}
		}
		return
	}
	if only := c.Flags().Lookup("watch-only"); only != nil {
		only.Hidden, only.Value = true, &refusedFlag{only, "a snapshot does not change"}
	}
	if k := c.Flags().Lookup("kustomize"); k != nil {
		k.Hidden, k.Value = true, &refusedFlag{k,
			"it may write files and reach the network, and a snapshot needs neither; use kubectl itself"}
	}
	c.PreRunE = func(c *cobra.Command, args []string) error {
		files, _ := c.Flags().GetStringSlice("filename") // empty without such a flag
		if slices.ContainsFunc(files, isURL) {
			return &RefusedError{"--filename", "a URL needs the network; name a file"}
		}
		if name := impersonates(c); name != "" && c.Parent().Name() != "auth" {
			return &RefusedError{"--" + name, "objects are read as the reader of the file; \"auth can-i\" and \"auth " +
				"whoami\" take it"}
		}
		if err := serve(c, args); err != nil {
			return err
		}
		if watch, err := c.Flags().GetBool("watch"); err == nil && watch {
			return unset(c, "watch", "output-watch-events")
		}
		return nil
	}
}

// impersonates returns the flag that selects a user, or "".
func impersonates(c *cobra.Command) string {
	for _, name := range []string{"as", "as-group"} {
		if c.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// unset sets boolean flags of the command to false, if they exist.
func unset(c *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := c.Flags().Lookup(name); f != nil {
			if err := f.Value.Set("false"); err != nil {
				return err
			}
		}
	}
	return nil
}

// isURL reports whether kubectl would fetch file from the network.
func isURL(file string) bool {
	return strings.HasPrefix(file, "http://") || strings.HasPrefix(file, "https://")
}

// canI returns "auth can-i". kubectl's own command exits if the answer is no.
func canI(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	c := auth.NewCmdCanI(f, streams)
	c.Run = func(c *cobra.Command, args []string) {
		o := &auth.CanIOptions{
			IOStreams: streams, Subresource: cmdutil.GetFlagString(c, "subresource"),
			AllNamespaces: cmdutil.GetFlagBool(c, "all-namespaces"),
			Quiet:         cmdutil.GetFlagBool(c, "quiet"), List: cmdutil.GetFlagBool(c, "list"),
			NoHeaders: cmdutil.GetFlagBool(c, "no-headers"),
		}
		cmdutil.CheckErr(o.Complete(f, args))
		cmdutil.CheckErr(o.Validate())
		if o.List {
			cmdutil.CheckErr(o.RunAccessList())
			return
		}
		allowed, err := o.RunAccessCheck()
		if cmdutil.CheckErr(err); !allowed {
			cmdutil.CheckErr(cmdutil.ErrExit)
		}
	}
	return c
}
