package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/inspect/redact"
	"github.com/etcdshift/etcdshift/internal/manifest"
	"github.com/etcdshift/etcdshift/internal/render"
)

// printExport prints YAML that can be applied, in order of dependence. Objects with secrets need
// --show-secrets: a redacted Secret would overwrite a good one.
func (g *getter) printExport() error {
	slices.SortStableFunc(g.asked, func(a, b asking) int { return manifest.Rank(a.kind) - manifest.Rank(b.kind) })
	made, printed := 0, 0
	for _, a := range g.asked {
		for o, err := range g.objects(g.c.Context, a) {
			if err != nil {
				return err
			}
			if o.Err != nil {
				continue
			}
			if len(a.names) == 0 && manifest.MadeAgain(o.Content) {
				made++
				continue
			}
			if err := g.export(o, &printed); err != nil {
				return err
			}
		}
	}
	if made > 0 && !g.c.Bool("quiet") {
		fmt.Fprintf(g.c.App.ErrWriter, "not exported, because a controller makes them: %s; name one to export it\n", render.Plural(made, "object"))
	}
	return nil
}

func (g *getter) export(o *gotten, printed *int) error {
	if o.Partial {
		g.shown--
		g.sayUnread(o, errors.New("this build does not know the kind, only its metadata could be read; -o raw has the bytes"))
		return nil
	}
	content, err := manifest.Export(o.Type, o.Content)
	if err != nil {
		g.shown--
		g.sayUnread(o, err)
		return nil
	}
	text, err := render.YAML(content)
	if err != nil {
		return fmt.Errorf("%s: %w", o.Key, err)
	}
	if !g.options.secrets && redact.Object(o.Key, content) {
		g.shown--
		g.kept++
		fmt.Fprintf(g.c.App.ErrWriter, "%s: not exported: its secrets need --show-secrets\n", render.Printable(string(o.Key)))
		return nil
	}
	return g.writeExport(text, printed)
}

func (g *getter) writeExport(text []byte, printed *int) error {
	if *printed++; *printed > 1 {
		text = append([]byte("---\n"), text...)
	}
	_, err := g.c.App.Writer.Write(text)
	return err
}
