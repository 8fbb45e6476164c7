package main

import (
	"bufio"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/transform/kcp/verify"
)

// moveVerification is what cluster verify -o json prints.
type moveVerification struct {
	APIVersion     string      `json:"apiVersion"`
	Kind           string      `json:"kind"`
	Tool           toolInfo    `json:"tool"`
	Archive        inputInfo   `json:"archive"` // empty but for the path where the file could not be opened; so are the others
	OriginOut      inputInfo   `json:"originOut"`
	DestinationOut inputInfo   `json:"destinationOut"`
	Origin         *inputInfo  `json:"origin,omitempty"`      // the input of extract and purge, where it was given
	Destination    *inputInfo  `json:"destination,omitempty"` // the input of import, where it was given
	Caches         []inputInfo `json:"caches"`
	CachesBefore   []inputInfo `json:"cachesBefore,omitempty"` // inputs of the purge of caches, in their order
	Sound          bool        `json:"sound"`                  // everything was checked and nothing found: every answer is "no"
	*verify.Verdict
}

func printMove(c *cli.Context, m *moveFiles, v *verify.Verdict) error {
	if !wantsJSON(c) {
		return printMoveText(c, v)
	}
	doc := moveVerification{APIVersion: apiVersion, Kind: "MoveVerification", Tool: tool(), Caches: []inputInfo{}, Sound: v.Sound(), Verdict: v}
	for _, o := range m.all() {
		in, err := o.input(c.Context)
		if err != nil && !isDamage(err) {
			return err
		}
		if slices.Contains(m.cachesBefore, o) {
			doc.CachesBefore = append(doc.CachesBefore, in)
			continue
		}
		switch o {
		case m.archive:
			doc.Archive = in
		case m.originOut:
			doc.OriginOut = in
		case m.destinationOut:
			doc.DestinationOut = in
		case m.origin:
			doc.Origin = &in
		case m.destination:
			doc.Destination = &in
		default:
			doc.Caches = append(doc.Caches, in)
		}
	}
	return render.JSON(c.App.Writer, doc)
}

func printMoveText(c *cli.Context, v *verify.Verdict) error {
	out := bufio.NewWriter(c.App.Writer)
	for _, moved := range v.Clusters {
		fmt.Fprintf(out, "%s %s: %s from %s to %s\n", render.Printable(moved.Name), render.Printable(moved.Path), render.Plural(moved.Keys, "record"), shardCalled(v.From), shardCalled(v.To))
	}
	if len(v.Clusters) > 0 {
		fmt.Fprintln(out)
	}
	t := render.NewTable(out)
	t.Row("QUESTION", "ANSWER", "CHECKED", "FINDINGS")
	for _, a := range v.Answers {
		t.Row(a.Question, a.Answer, a.Checked, a.Findings)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	printMoveFindings(out, v.Findings)
	for i, u := range v.Unjudged {
		if i == 0 {
			fmt.Fprintln(out, "\nnot judged:")
		}
		if i == mostListed {
			fmt.Fprintf(out, "   ... and %d more; -o json lists them all\n", len(v.Unjudged)-i)
			break
		}
		fmt.Fprintf(out, "   %s: %s\n", fileAndKey(u.File, u.Key), render.Printable(u.Reason))
	}
	for i, note := range v.Notes {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, "note:", render.Printable(note))
	}
	if v.Sound() {
		fmt.Fprintln(out, "\nthe move is sound")
		fmt.Fprintln(out, "   -> with all front-proxies stopped, restore; start the etcds, the cache server and the shards, and the front-proxies last")
	}
	return out.Flush() // its error is the first of any of the above
}

// printMoveFindings prints those of one code together.
func printMoveFindings(out *bufio.Writer, findings []verify.Finding) {
	const most = 5
	for len(findings) > 0 {
		n := slices.IndexFunc(findings, func(f verify.Finding) bool { return f.Code != findings[0].Code })
		if n < 0 {
			n = len(findings)
		}
		fmt.Fprintf(out, "\n%s: %s\n", findings[0].Question, findings[0].Code)
		for _, f := range findings[:min(n, most)] {
			fmt.Fprintf(out, "   %s: %s\n", fileAndKey(f.File, f.Key), render.Printable(f.Message))
		}
		if n > most {
			fmt.Fprintf(out, "   ... and %d more; -o json lists them all\n", n-most)
		}
		findings = findings[n:]
	}
}

// fileAndKey names a key in a file; "" for the file itself.
func fileAndKey(file, key string) string {
	if key == "" {
		return render.Printable(file)
	}
	return render.Printable(file) + " " + render.Printable(key)
}

func shardCalled(name string) string {
	if name == "" {
		return "a shard that no file names"
	}
	return "shard " + render.Printable(name)
}
