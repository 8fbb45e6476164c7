package cli

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/serve"
)

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the release and the versions of its libraries",
		Description: `etcdshift version
etcdshift version -o json | jq -r .commit`,
		UsageText: `Shows the tag, the commit and its time, and the versions of the Go, Kubernetes and etcd code in
this program: kinds and fields of a newer Kubernetes are reported as unknown.

Exit status: 0 done, 1 failed, 2 usage.`,
		Flags: []cli.Flag{textOrJSON()},
		Action: taking(func(c *cli.Context, _ []string) error {
			of := builtWith()
			if wantsJSON(c) {
				return render.JSON(c.App.Writer, of)
			}
			p := render.NewPage(c.App.Writer)
			p.Table(nil, []any{programName, of.Tool.Version}, []any{"commit", cmp.Or(of.Commit, "not known")},
				[]any{"date", cmp.Or(of.Date, "not known")},
				[]any{"go", of.Go}, []any{"kubernetes", of.Kubernetes}, []any{"etcd", of.Etcd},
				[]any{"platform", of.Platform})
			return p.Flush()
		}),
	}
}

// release is the document of version -o json.
type release struct {
	answerHead        // tool.version is the tag
	Commit     string `json:"commit,omitempty"`   // of the build; absent if unknown
	Date       string `json:"date,omitempty"`     // of the commit, RFC 3339
	Modified   bool   `json:"modified,omitempty"` // files were changed after the commit
	Go         string `json:"go"`
	Kubernetes string `json:"kubernetes"` // version of the linked kinds and rules
	Etcd       string `json:"etcd"`       // version of the server started by "rehearse"
	Platform   string `json:"platform"`   // in Go's form, such as linux/amd64
}

func builtWith() release {
	r := release{answerHead: answerTo("Version"), Go: runtime.Version(), Kubernetes: serve.KubernetesVersion(),
		Etcd: "not known", Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, _ := debug.ReadBuildInfo()
	if build == nil {
		return r
	}
	for _, module := range build.Deps {
		if module.Path == "go.etcd.io/etcd/server/v3" {
			r.Etcd = module.Version
		}
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			r.Commit = s.Value
		case "vcs.time":
			r.Date = s.Value
		case "vcs.modified":
			r.Modified = s.Value == "true"
		}
	}
	return r
}
