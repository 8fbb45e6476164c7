package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/doctor"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/policy"
	"github.com/etcdshift/etcdshift/internal/rehearse"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/transform"
)

func explainCommand(specs []transform.Spec) *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "explain an error message or a finding, and its remedy",
		ArgsUsage: "[CODE|MESSAGE...]",
		Description: `etcdshift explain conflict undecodable
etcdshift explain 'must appear in spec.versions'
kubectl apply -f crd.yaml 2>&1 | etcdshift explain -
etcdshift explain -o json \
    | jq -r '.codes[] | select(.level == "error") | .code'`,
		UsageText: `Explains the codes of findings: their meaning, the remedy, and the effect of --allow. MESSAGE is
an unchanged error message of kubectl, an API server or etcd, or search words; "-" reads it from standard input.
Without arguments it lists all codes. docs/reference/codes.md lists them too.

Exit status: 0 done, 1 failed, 2 usage, such as an unknown code.`,
		Flags: []cli.Flag{textOrJSON()},
		Action: taking(func(c *cli.Context, args []string) error {
			return explainer{explanations(specs)}.run(c, args)
		}),
	}
}

// codeList is the document of explain -o json.
type codeList struct {
	answerHead
	Codes []explanation `json:"codes"`           // by name
	Pages []pageText    `json:"pages,omitempty"` // for a message without a code
}

// pageText is a paragraph of a page about a message.
type pageText struct {
	Page string `json:"page"` // accepted by "etcdshift help"
	Text string `json:"text"`
}

// explanation is a code with the commands that report it.
type explanation struct {
	Code     *finding.Code   `json:"code"`
	Level    finding.Level   `json:"level"`           // of the gravest findings
	Warns    string          `json:"warns,omitempty"` // when an error is only a warning
	Title    string          `json:"title"`
	Meaning  string          `json:"meaning"`
	Remedy   string          `json:"remedy"`
	Allow    string          `json:"allow,omitempty"`   // what --allow does; absent if --allow does not accept the code
	Allowed  finding.Outcome `json:"allowed,omitempty"` // the decision in a report after --allow
	Commands []string        `json:"commands"`          // that report the code
}

// explanations returns the codes of all commands, by name, then by command.
func explanations(specs []transform.Spec) (all []explanation) {
	add := func(command string, codes []*finding.Code) {
		for _, code := range codes {
			i := slices.IndexFunc(all, func(e explanation) bool { return e.Code.Name == code.Name })
			if i < 0 {
				i, code = len(all), finding.Lookup(code.Name) // commands may use another level
				all = append(all, explanation{
					code, code.Level, code.Warns, code.Title, code.Meaning, code.Remedy, allowText(code),
					code.Allowed, nil,
				})
			}
			if !slices.Contains(all[i].Commands, command) {
				all[i].Commands = append(all[i].Commands, command)
			}
		}
	}
	for _, spec := range specs {
		if spec.Of != nil {
			continue // it reports the codes of its steps
		}
		add(spec.Command(), slices.Concat(spec.Codes, spec.RunCodes()))
	}
	add("kcp list", []*finding.Code{kcp.CodeEncrypted, kcp.CodeUndecodable, kcp.CodeKeyMismatch})
	add("kcp verify", move.Codes())
	add("doctor", doctor.Codes())
	add("rehearse", rehearse.Codes())
	add("policy check", policy.Codes())
	slices.SortStableFunc(all, func(a, b explanation) int { return cmp.Compare(a.Code.Name, b.Code.Name) })
	return all
}

// allowText describes the effect of --allow and the exit status of an allowed run.
func allowText(code *finding.Code) string {
	switch code.Allowed {
	case "":
		return ""
	case finding.WentOn:
		return fmt.Sprintf("%s The exit status is %d.", code.Allow, exitDone)
	}
	return fmt.Sprintf("%s The exit status is %d.", code.Allow, exitAllowed)
}

type explainer struct{ all []explanation }

func (x explainer) names() []string {
	return slices.Compact(stream.Mapped(x.all, func(e explanation) string { return e.Code.Name }))
}

func (x explainer) run(c *cli.Context, args []string) error {
	list := codeList{answerHead: answerTo("CodeList"), Codes: x.all}
	var failed error
	if len(args) > 0 {
		list.Codes, list.Pages, failed = x.choose(c, args)
	}
	switch {
	case failed != nil && len(list.Codes) == 0:
		return failed
	case wantsJSON(c):
		return cmp.Or(render.JSON(c.App.Writer, list), failed)
	case len(args) == 0:
		return printCodes(c.App.Writer, list.Codes)
	}
	return cmp.Or(printExplanations(c.App.Writer, list), failed)
}

// choose returns the meanings of codes, in argument order, and an error about unknown codes; or the
// matches of a message made of all arguments.
func (x explainer) choose(c *cli.Context, args []string) (chosen []explanation, pages []pageText, err error) {
	var others []string
	for _, code := range codesOf(args) {
		before := len(chosen)
		for _, e := range x.all {
			if e.Code.Name == code {
				chosen = append(chosen, e)
			}
		}
		if len(chosen) == before {
			others = append(others, code)
		}
	}
	if others == nil {
		return chosen, nil, nil
	}
	text, err := messageOf(c, args)
	if err != nil {
		return nil, nil, err
	}
	if about, pages := x.search(text); len(about)+len(pages) > 0 {
		return about, pages, nil
	}
	if len(chosen) > 0 {
		text = others[0]
	}
	return chosen, nil, x.unknown(commandPath(c), text)
}

// codesOf splits arguments at commas, except messages: they contain spaces.
func codesOf(args []string) (codes []string) {
	for _, arg := range args {
		if strings.Contains(arg, " ") {
			codes = append(codes, arg)
			continue
		}
		codes = append(codes, strings.Split(strings.Trim(arg, ","), ",")...)
	}
	return codes
}

func printCodes(w io.Writer, all []explanation) error {
	p := render.NewPage(w)
	for _, e := range all {
		text := fmt.Sprintf("%s: %s (%s)", e.Level, e.Title, strings.Join(e.Commands, ", "))
		_, _ = p.WriteString(entry(flagColumn, e.Code.Name, text))
	}
	return p.Flush()
}

func printExplanations(w io.Writer, list codeList) error {
	p := render.NewPage(w)
	for i, page := range list.Pages {
		if i > 0 {
			p.Printf("\n")
		}
		p.Printf("etcdshift help %s\n", page.Page)
		p.Wrapped("   ", page.Text)
	}
	for i, e := range list.Codes {
		if i > 0 {
			p.Printf("\n")
		}
		p.Printf("%s %s: %s\n", e.Level, e.Code.Name, e.Title)
		for _, line := range [][2]string{
			{"commands", strings.Join(e.Commands, ", ")}, {"warning", e.Warns}, {"meaning", e.Meaning},
			{"remedy", e.Remedy}, {"--allow", e.Allow},
		} {
			if line[1] != "" {
				_, _ = p.WriteString(entry(13, line[0], line[1]))
			}
		}
	}
	return p.Flush()
}
