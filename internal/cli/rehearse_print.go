package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/rehearse"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/report"
	"github.com/etcdshift/etcdshift/internal/stream"
)

func (d *rehearsalDocument) print(c *cli.Context) error {
	switch c.String("output") {
	case "json":
		return render.JSON(c.App.Writer, d)
	case "junit":
		return d.printJUnit(c.App.Writer)
	}
	p := render.NewPage(render.Folding(c.App.Writer))
	d.rehearsal.print(p, d.Input)
	if d.After != nil {
		p.Printf("\n")
		d.After.print(p, d.After.Input)
		p.Printf("\nthe change breaks %d, mends %d\n", len(d.Differences.Broken), len(d.Differences.Mended))
		listFindings(p, "   broken: ", d.Differences.Broken)
		listFindings(p, "   mended: ", d.Differences.Mended)
	}
	return p.Flush()
}

func listFindings(p *render.Page, indent string, found []report.Finding) {
	lines := stream.Mapped(found, func(f report.Finding) string { return f.Code.Name + " " + about(f.Message, f.Key) })
	p.First(indent, lines, mostListed, len(lines), "; -o json lists them all")
}

// print prints the results of one file.
func (r *rehearsal) print(p *render.Page, in inputInfo) {
	verdict, colour := "PASSED", render.Green
	if !r.Passed {
		verdict, colour = "FAILED", render.Red
	}
	p.Line(colour, fmt.Sprintf("%s: %s", verdict, render.Printable(in.Path)))
	p.Printf("   SHA-256 %s, %s, revision %d\n", in.SHA256, render.Size(in.Bytes), in.Revision)
	p.Printf("   %s\n", servers(r.Versions))
	p.Printf("   %s\n\n", tool().Name+" "+tool().Version)
	for _, s := range r.Steps {
		mark := "ok"
		if !s.Passed {
			mark = "FAILED"
		}
		p.Printf("   %-22s %8.1f s  %-6s  %s\n", s.Name, s.Seconds, mark, s.Detail)
	}
	r.printKinds(p)
	if len(r.NotChecked) > 0 {
		p.Printf("\nnot checked\n")
		p.Lines("   ", stream.Mapped(r.NotChecked, func(n rehearse.NotChecked) string {
			return n.What + ": " +
				n.Reason
		}))
	}
	if len(r.Findings) > 0 {
		p.Printf("\n")
		printFindings(p, &r.done.Found)
	}
}

// printKinds lists the kinds with failed or unchecked objects, and counts the others.
func (r *rehearsal) printKinds(p *render.Page) {
	var odd []string
	for _, k := range r.Kinds {
		if k.Failed > 0 || k.NotChecked != "" {
			text := fmt.Sprintf("%s: %s, %d tried, %d failed", k.Resource, phrase.Count(k.Objects, "object"),
				k.Tried, k.Failed)
			if k.NotChecked != "" {
				text += "; " + k.NotChecked
			}
			odd = append(odd, text)
		}
	}
	if len(odd) > 0 {
		p.Printf("\nkinds, beside %d without a failure\n", len(r.Kinds)-len(odd))
		p.First("   ", odd, mostListed, len(odd), "; -o json lists them all")
	}
}

// servers names the releases that ran.
func servers(v rehearse.Versions) string {
	words := []string{"etcd " + v.Etcd}
	if v.APIServer != "" {
		words = append(words, v.APIServer+" "+v.Kubernetes)
	}
	if v.ControllerManager != "" {
		words = append(words, "kube-controller-manager "+v.ControllerManager)
	}
	return strings.Join(words, ", ")
}

func (d *rehearsalDocument) printJUnit(w io.Writer) error {
	suites := []junitSuite{d.suite(d.Input)}
	if d.After != nil {
		suites = append(suites, d.After.suite(d.After.Input))
	}
	return printSuites(w, suites...)
}

// suite has one case per step, with its time, and one per code.
func (r *rehearsal) suite(in inputInfo) junitSuite {
	s := newSuite("rehearse", in.Path)
	for _, step := range r.Steps {
		c := junitCase{Name: step.Name, Class: "etcdshift.rehearse.steps", Seconds: fmt.Sprintf("%.3f", step.Seconds)}
		if !step.Passed {
			c.Failure = &junitText{Message: render.Printable(step.Detail)}
		}
		s.add(c)
	}
	for _, n := range r.NotChecked {
		s.add(junitCase{Name: render.Printable(n.What), Class: "etcdshift.rehearse.coverage",
			Skipped: &junitText{Message: render.Printable(n.Reason)}})
	}
	all := func(*finding.Code) string { return "" }
	s.addCodes("etcdshift.rehearse", rehearse.Codes(), &r.done.Found, finding.Warning, all)
	return s
}
