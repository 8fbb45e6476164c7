package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/get"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/render"
)

func grepCommand() *cli.Command {
	return &cli.Command{
		Name:      "grep",
		Usage:     "find objects and fields that contain a text",
		ArgsUsage: "SNAPSHOT TEXT [TYPE[/NAME]...]",
		Description: `etcdshift grep before.db registry.old.example.com
etcdshift grep before.db -i license cm,secrets -n shop --show-secrets
etcdshift grep before.db -E '10\.0\.(1|2)\.[0-9]+' nodes,services -o jsonl`,
		UsageText: `Searches the names and the values of all fields of all objects, as "get -o json" shows them,
without managedFields. Numbers match their JSON form; data of Secrets and binaryData of ConfigMaps are decoded. For a
value with several lines, the first matching line is shown. Objects of kinds unknown to this build are searched as
bytes, and so are keys in no layout and their values. If a value cannot be read, only its name is searched.

Redacted values are not searched, because a search could guess them; objects with redacted values are counted.
--show-secrets searches them too.

Exit status: 0 found, 1 not found, or a value could not be read, 2 usage, or the snapshot lacks a TYPE, 130
interrupted.`,
		Flags: readFlags("decrypt values with",
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"},
				Usage: "search in `NAMESPACE`, and in cluster-scoped objects of a given TYPE (default: all)"},
			allNamespacesFlag(),
			&cli.StringFlag{Name: "cluster", Usage: "search in logical cluster `NAME` of kcp (default: all)"},
			&cli.StringFlag{Name: "selector", Aliases: []string{"l"},
				Usage: "search objects with labels that match `SELECTOR`"},
			&cli.BoolFlag{Name: "ignore-case", Aliases: []string{"i"}, Usage: "ignore the difference between " +
				"upper and lower case"},
			&cli.BoolFlag{Name: "regexp", Aliases: []string{"E"}, Usage: "read TEXT as a regular expression (RE2)"},
			&cli.Int64Flag{Name: "revision", Usage: "search the state at revision `N`, if the snapshot " +
				"still has it"},
			atFlag("search"),
			showSecretsFlag(), outputFlag("text", "name (TYPE and name of each object)", "json (one document)",
				"jsonl (one line a record)")),
		Action: taking(runGrep),
	}
}

func runGrep(c *cli.Context, args []string) error {
	text, err := readPattern(c, args[1])
	if err != nil {
		return err
	}
	if c.IsSet("revision") && (c.IsSet("at") || c.Int64("revision") < 1) {
		return usagef(commandPath(c), "--revision takes a revision from 1, and not beside --at")
	}
	o := getOptions(c, c.String("namespace"))
	if o.Selector, err = objects.ParseSelector(c.String("selector"), ""); err != nil {
		return usagef(commandPath(c), "%w", err)
	}
	reading := progress(c).Phase("searching " + args[0])
	defer reading.End()
	return readSnapshots(c, args[:1], func(files []*opened) error {
		r, err := files[0].readState(c)
		if err != nil {
			return err
		}
		reading.Of(part(0, 1, files[0]))
		s := &get.Search{Text: text, Everything: len(args) == 2}
		asked, err := searched(c, args[2:], o, r)
		if err != nil {
			return err
		}
		end, err := printFound(c, files[0], s)
		if err != nil {
			return err
		}
		add := s.Yield
		s.Yield = func(f get.Found) error {
			reading.End()
			return add(f)
		}
		if err := errors.Join(s.Run(c.Context, r, asked, o), end()); err != nil {
			return err
		}
		return s.Verdict(args[1])
	})
}

// readPattern compiles TEXT to a regular expression.
func readPattern(c *cli.Context, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, usagef(commandPath(c), "TEXT is empty")
	}
	if !c.Bool("regexp") {
		text = regexp.QuoteMeta(text)
	}
	if c.Bool("ignore-case") {
		text = "(?i)" + text
	}
	compiled, err := regexp.Compile("(?m)" + text)
	if err != nil {
		return nil, usagef(commandPath(c), "TEXT: %w", err)
	}
	return compiled, nil
}

// searched returns the given TYPEs; by default all types, with --namespace only namespaced ones.
func searched(c *cli.Context, words []string, o get.Options, r *inspect.Reader) ([]get.Asked, error) {
	if len(words) > 0 {
		return askedFor(c, words, r)
	}
	asked, err := askedFor(c, []string{"*"}, r)
	return slices.DeleteFunc(asked, func(a get.Asked) bool { return o.Namespace != "" && !a.Type.Namespaced }), err
}

// grepDocument is the head of grep -o json.
type grepDocument struct {
	documentHead
	At *stateAt `json:"at,omitempty"` // the state selected by --at
}

// grepTail is the tail of grep -o json.
type grepTail struct {
	Count    int `json:"count"`
	Redacted int `json:"redacted"` // objects with redacted values, which were not searched
}

// printFound makes a search print its results in a format of -o. end completes the output.
func printFound(c *cli.Context, in *opened, s *get.Search) (end func() error, err error) {
	switch format, last := c.String("output"), ""; format {
	case "name":
		s.Yield = func(f get.Found) error {
			if f.Key == last {
				return nil
			}
			last = f.Key
			_, err := fmt.Fprintln(c.App.Writer, render.Printable(f.Subject.String()))
			return err
		}
		return func() error { return nil }, nil
	case "text":
		flow := render.NewFlow(c.App.Writer, "OBJECT", "FIELD", "TEXT")
		s.Yield = func(f get.Found) error { return flow.Row(f.Subject.String(), f.Path.String(), f.Line) }
		return func() error {
			if s.Count == 0 {
				return nil // no head without a row
			}
			return flow.Flush()
		}, nil
	default:
		list := render.NewList(c.App.Writer, format)
		if format == "json" {
			head, err := in.document(c.Context, "Search")
			if err != nil {
				return nil, err
			}
			if err := list.Begin(grepDocument{head, in.at}, "found"); err != nil {
				return nil, err
			}
		}
		s.Yield = func(f get.Found) error { return list.Add(f) }
		return func() error { return list.End(grepTail{s.Count, s.Redacted}) }, nil
	}
}
