package cli

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
)

func grepCommand() *cli.Command {
	return &cli.Command{
		Name:      "grep",
		Usage:     "find the objects that mention a text, and the field",
		ArgsUsage: "SNAPSHOT TEXT [TYPE[/NAME]...]",
		Description: `etcdshift grep before.db registry.old.example.com
etcdshift grep before.db -i license cm,secrets -n shop --show-secrets
etcdshift grep before.db -E '10\.0\.(1|2)\.[0-9]+' nodes,services -o jsonl`,
		UsageText: `Searches the names and the values of all fields of all objects, as "get -o json" shows them, without managedFields. Numbers match
as JSON writes them; data of Secrets and binaryData of ConfigMaps are decoded. Of a value with several lines the first one that has
the text is shown. Objects of kinds that this build does not know are searched as bytes, and so are keys in no layout with their values.
Of a value that cannot be read, the name is searched.

Redacted values are not searched, or a search would guess them; the objects that have any are counted. --show-secrets searches
them too.

Exit status: 0 found, 1 not found, or a value could not be read, 2 usage or a TYPE that the snapshot lacks, 130 interrupted.`,
		Flags: readFlags("decrypt values with",
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"},
				Usage: "search in `NAMESPACE`, and objects without one if their TYPE is named (default: all)"},
			allNamespacesFlag(),
			&cli.StringFlag{Name: "cluster", Usage: "search in logical cluster `NAME` of kcp (default: all)"},
			&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "search objects whose labels fit `SELECTOR`"},
			&cli.BoolFlag{Name: "ignore-case", Aliases: []string{"i"}, Usage: "upper and lower case are the same"},
			&cli.BoolFlag{Name: "regexp", Aliases: []string{"E"}, Usage: "TEXT is a regular expression (RE2)"},
			&cli.Int64Flag{Name: "revision", Usage: "search the state at revision `N`, where the snapshot still has it"},
			atFlag("search"),
			showSecretsFlag(), outputFlag("text", "name (TYPE and name of each object)", "json (one document)", "jsonl (one line a record)")),
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
	reading := progress(c).Phase("searching " + args[0])
	defer reading.End()
	return readSnapshots(c, args[:1], func(files []*opened) error {
		s := files[0]
		if err := s.readAt(c); err != nil {
			return err
		}
		reading.Of(part(0, 1, s))
		r := s.Reader
		if c.IsSet("revision") {
			r = r.At(c.Int64("revision"))
		}
		found := &getter{c: c, opened: s, reader: r, met: map[[2]string]bool{}}
		g := &grepper{text: text, mark: redactedMark(), reading: reading, getter: found}
		g.options = newGetOptions(c, c.String("namespace"))
		if g.options.selector, err = objects.ParseSelector(c.String("selector"), ""); err != nil {
			return usagef(commandPath(c), "%w", err)
		}
		if err := g.choose(args[2:]); err != nil {
			return err
		}
		return g.print()
	})
}

// readPattern makes a regular expression of TEXT.
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

// grepper finds a text in objects.
type grepper struct {
	*getter
	text, mark *regexp.Regexp // mark is what stands for a secret
	everything bool           // no TYPE is given
	reading    *render.Progress
	yield      func(found) error
	count      int // of the fields found
	notLooked  int // objects with redacted values
}

// found is a field that has the text, of an object or of a key in no layout.
type found struct {
	compare.Subject
	compare.Mention // without a path where bytes were searched
}

// grepDocument is the head of grep -o json.
type grepDocument struct {
	documentHead
	At *stateAt `json:"at,omitempty"` // the state that --at asked for
}

// grepTail is the tail of grep -o json.
type grepTail struct {
	Count    int `json:"count"`
	Redacted int `json:"redacted"` // objects with redacted values, which were not searched
}

// choose reads the TYPEs; without one it takes all, with --namespace only those that have
// namespaces.
func (g *grepper) choose(words []string) (err error) {
	if g.everything = len(words) == 0; g.everything {
		words = []string{"*"}
	}
	asked, err := askedFor(g.c, words, g.reader)
	if err != nil {
		return err
	}
	for _, a := range asked {
		if !g.everything || g.options.namespace == "" || a.kind.Namespaced {
			g.asked = append(g.asked, a)
		}
	}
	if g.layouts, err = g.reader.Layouts(g.c.Context); err != nil {
		return err
	}
	return g.learn()
}

func (g *grepper) print() error {
	format, last := g.c.String("output"), ""
	var end func() error
	switch format {
	case "name":
		g.yield = func(f found) error {
			if f.Key == last {
				return nil
			}
			last = f.Key
			_, err := fmt.Fprintln(g.c.App.Writer, render.Printable(f.Subject.String()))
			return err
		}
		end = func() error { return nil }
	case "text":
		flow := render.NewFlow(g.c.App.Writer, "OBJECT", "FIELD", "TEXT")
		g.yield = func(f found) error { return flow.Row(f.Subject.String(), f.Path.String(), f.Line) }
		end = func() error {
			if g.count == 0 {
				return nil // no head without a row
			}
			return flow.Flush()
		}
	default:
		list := render.NewList(g.c.App.Writer, format)
		if format == "json" {
			in, err := g.opened.input(g.c.Context)
			if err != nil {
				return err
			}
			if err := list.Begin(grepDocument{document("Search", in), g.opened.at}, "found"); err != nil {
				return err
			}
		}
		g.yield = func(f found) error { return list.Add(f) }
		end = func() error { return list.End(grepTail{g.count, g.notLooked}) }
	}
	if err := errors.Join(g.search(), end()); err != nil {
		return err
	}
	return g.finish()
}

// finish counts the objects with redacted values on stderr. It returns an error if nothing was
// found, or a value was not read.
func (g *grepper) finish() error {
	if g.notLooked > 0 && !g.options.quiet {
		fmt.Fprintf(g.c.App.ErrWriter, "redacted values of %s were not searched; --show-secrets searches them\n",
			phrase.Count(g.notLooked, "object"))
	}
	g.shown = max(g.shown, 1) // nothing to say about objects of the types elsewhere
	if err := g.verdict(); err != nil || g.count > 0 {
		return err
	}
	return fmt.Errorf("no object mentions %q%s", g.c.Args().Get(1), g.where(true))
}

// search looks into all chosen objects, and into keys in no layout where everything is searched.
func (g *grepper) search() error {
	err := g.each(func(_ asking, o *gotten) error {
		subject := compare.NewSubject(o.Key, o.Parsed)
		switch {
		case o.Err != nil:
			return g.names(subject)
		case o.Partial:
			return g.bytes(subject, o.Entry)
		}
		if g.hide != nil && g.hide.Object(o.Key, o.Content) {
			g.notLooked++
		}
		unstructured.RemoveNestedField(o.Content, "metadata", "managedFields")
		decodeData(o.Content)
		return g.look(subject, o.Content)
	})
	if err != nil || !g.everything || g.options.namespace != "" || g.options.cluster != "" {
		return err
	}
	g.asked = nil // keys in no layout are searched too
	return stream.Each(g.reader.Raw(g.c.Context, nil), func(e inspect.Entry) error {
		if _, err := e.ParseKey(); err == nil || len(e.Key) == 0 {
			return nil
		}
		subject := compare.Subject{Key: string(e.Key)}
		if err := errors.Join(g.look(subject, subject.Key), g.reader.Decrypt(g.c.Context, &e)); err != nil {
			return err
		}
		if e.Undecryptable != nil {
			g.sayUnread(&gotten{Object: &inspect.Object{Entry: &e}}, e.Undecryptable)
			return nil
		}
		return g.bytes(subject, &e)
	})
}

// names searches the names of an object whose value cannot be read.
func (g *grepper) names(subject compare.Subject) error {
	meta := map[string]any{"name": subject.Name}
	if subject.Namespace != "" {
		meta["namespace"] = subject.Namespace
	}
	return g.look(subject, map[string]any{"metadata": meta})
}

// bytes searches a value that is not JSON content.
func (g *grepper) bytes(subject compare.Subject, e *inspect.Entry) error {
	if g.hide != nil && g.hide.Value(e.Key, e.Value) {
		g.notLooked++
		return nil
	}
	return g.look(subject, string(e.Value))
}

func (g *grepper) look(subject compare.Subject, content any) error {
	for m := range compare.Mentions(content, g.text, g.mark) {
		g.reading.End()
		g.count++
		if err := g.yield(found{subject, m}); err != nil {
			return err
		}
	}
	return nil
}

// decodeData decodes the data of a Secret and the binaryData of a ConfigMap. A redacted value is no
// base64.
func decodeData(content map[string]any) {
	kind, _ := content["kind"].(string)
	field := map[string]string{"Secret": "data", "ConfigMap": "binaryData"}[kind]
	data, _ := content[field].(map[string]any)
	for name, value := range data {
		text, _ := value.(string)
		if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
			data[name] = string(decoded)
		}
	}
}
