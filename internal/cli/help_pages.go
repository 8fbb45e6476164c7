package cli

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/etcdshift/etcdshift/docs"
	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
)

// printPages prints the page named by a word, as "restore.md", "docs/guides/restore.md" or
// "restore", or the list of pages for "pages". Markdown is readable in a terminal, so only long
// lines are wrapped. said is false for any other word.
func printPages(w io.Writer, word string) (said bool, err error) {
	if page, is := docs.Page(word); is {
		if render.IsTerminal(w) {
			page = wrapPage(page)
		}
		_, err = io.WriteString(w, page)
		return true, err
	}
	if word != "pages" {
		return false, nil
	}
	p := render.NewPage(w)
	p.Table([]any{"PAGE", "TITLE"}, stream.Mapped(docs.Pages(), func(name string) []any {
		text, _ := docs.Page(name)
		title, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
		return []any{path.Base(name), title}
	})...)
	return true, p.Flush()
}

var (
	entryHead = pattern.New(`^ *([-*]|[0-9]+\.) +`) // of a list
	verbatim  = pattern.New(`^(    |[|#]|\s*$)`)    // a command, a row of a table, a title, an empty line
)

// wrapPage wraps the paragraphs and list entries of a page for a terminal.
func wrapPage(page string) string {
	out, head, text := "", "", ""
	end := func() {
		if text != "" {
			out += render.Wrap(head, text)
		}
		head, text = "", ""
	}
	for line := range strings.Lines(page) {
		begins, indent := entryHead().FindString(line), len(line)-len(strings.TrimLeft(line, " "))
		switch asIs := verbatim().MatchString(line); {
		case text != "" && begins == "" && indent == len(head) && !(asIs && indent < 4):
			text += line
		case asIs:
			end()
			out += line
		default:
			end()
			head = cmp.Or(begins, line[:indent])
			text = line[len(head):]
		}
	}
	end()
	return out
}

// runbooks are the pages about commands, by path. The other commands are fully explained in their
// help.
func runbooks() map[string]string {
	return map[string]string{
		"status": "restore-check.md", "verify": "restore-check.md", "doctor": "restore-check.md",
		"rehearse":     "rehearse.md",
		"policy check": "policies.md", "policy apply": "policies.md", "get": "investigate.md", "grep": "investigate.md",
		"history":  "investigate.md",
		"timeline": "investigate.md", "diff": "investigate.md", "keys": "investigate.md", "kubectl": "kubectl.md",
		"serve":  "serve.md",
		"export": "recover-objects.md", "report": "report.md", "sign": "sign.md", "save": "no-good-backup.md",
		"salvage": "no-good-backup.md",
		"restore": "restore.md",
		"sizes":   "space-exceeded.md",
		"compact": "space-exceeded.md", "fleet list": "fleet.md", "fleet run": "fleet.md", "fleet summary": "fleet.md",
		"delete": "change.md", "patch": "change.md", "run": "run.md", "explain": "codes.md",
		"migrate calico-v3":        "calico-v3.md",
		"migrate storage-versions": "storage-versions.md", "prepare-restore": "prepare-restore.md",
		"rename-node": "rename-a-node.md", "sanitize": "sanitize.md", "crop": "take-a-part.md",
		"extract":     "take-a-part.md",
		"import":      "take-a-part.md",
		"purge":       "take-a-part.md",
		"kcp list":    "repair-a-shard.md",
		"kcp extract": "move-a-logical-cluster.md", "kcp import": "move-a-logical-cluster.md",
		"kcp purge": "move-a-logical-cluster.md", "kcp verify": "move-a-logical-cluster.md",
	}
}

// runbookText returns the last line of a command's help.
func runbookText(path string) string {
	page := runbooks()[strings.TrimPrefix(path, programName+" ")]
	if page == "" {
		return ""
	}
	return fmt.Sprintf("\nRunbook:\n   etcdshift help %s\n", page)
}
