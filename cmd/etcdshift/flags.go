package main

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/snapshot"
)

const encryptionConfig = "encryption-config"

// readFlags are own and the flags of all reading commands; decrypts begins the text of one.
func readFlags(decrypts string, own ...cli.Flag) []cli.Flag {
	return append(own, prefixFlag("look"), encryptionFlag(decrypts), maxExpandFlag(), quietFlag())
}

// prefixFlag is --prefix. Reading commands see no other key; changing ones check the whole file.
func prefixFlag(does string) cli.Flag {
	return &cli.StringSliceFlag{Name: "prefix",
		Usage: does + " under storage prefix `P`, such as /registry, and no other; may be repeated (default: all that are found)"}
}

// readPrefixes reads --prefix as kube-apiserver reads its --etcd-prefix.
func readPrefixes(c *cli.Context) (prefixes []string) {
	for _, p := range c.StringSlice("prefix") {
		p = strings.TrimRight(path.Join("/", p), "/")
		if !slices.Contains(prefixes, p) {
			prefixes = append(prefixes, p)
		}
	}
	return prefixes
}

// codesFlag is a repeatable flag that takes codes of findings.
type codesFlag struct {
	*cli.StringSliceFlag
	codes []string
}

// newCodesFlag returns a flag that takes no codes but these; takes describes them.
func newCodesFlag(name, usage, takes string, codes []string) *codesFlag {
	codes = sorted(codes)
	return &codesFlag{&cli.StringSliceFlag{Name: name, Usage: usage, Action: func(c *cli.Context, given []string) error {
		for _, code := range given {
			if !slices.Contains(codes, code) {
				err := usagef(commandPath(c), "--%s is %q; it takes the code of %s: %s", name, code, takes, strings.Join(codes, ", "))
				return suggest(err, code, codes)
			}
		}
		return nil
	}}, codes}
}

func encryptionFlag(does string) cli.Flag {
	return &cli.StringFlag{Name: encryptionConfig, Usage: does + " the EncryptionConfiguration in `FILE` (not KMS v1)"}
}

func maxExpandFlag() cli.Flag {
	usage := "expand a compressed snapshot to no more than `SIZE`, such as 20GiB (default: %dGiB)"
	return &cli.StringFlag{
		Name:  "max-expand",
		Usage: fmt.Sprintf(usage, snapshot.DefaultMaxExpand>>30),
		Action: func(c *cli.Context, given string) error {
			if _, err := parseSize(given); err != nil {
				return usagef(commandPath(c), "--max-expand: %w", err)
			}
			return nil
		},
	}
}

// snapshotConfig is how a command opens its inputs.
func snapshotConfig(c *cli.Context) snapshot.Config {
	n, _ := parseSize(c.String("max-expand")) // 0, the default, where the flag is not given; the flag's Action has checked it
	return snapshot.Config{MaxExpand: n}
}

var sizeSyntax = regexp.MustCompile(`^([0-9]+)(?:([kmgt])(i?))?b?$`)

// parseSize reads a number of bytes such as 1000000, 500MB, 20GiB or 20Gi. Units with an i count by
// 1024, others by 1000, as in Kubernetes.
func parseSize(text string) (int64, error) {
	parts := sizeSyntax.FindStringSubmatch(strings.ToLower(text))
	if parts == nil {
		parts = make([]string, 4)
	}
	n, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is no size; it takes a number of bytes, such as 500MB or 20GiB", text)
	}
	base := int64(1000)
	if parts[3] != "" {
		base = 1024
	}
	for range strings.Index(" kmgt", parts[2]) {
		if n > math.MaxInt64/base {
			return 0, fmt.Errorf("%q is too large", text)
		}
		n *= base
	}
	return n, nil
}

func quietFlag() cli.Flag {
	return &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "say nothing on stderr but errors"}
}

func showSecretsFlag() cli.Flag {
	return &cli.BoolFlag{Name: "show-secrets",
		Usage: "print Secrets and other credentials as they are; without it they are \"<redacted 32 bytes>\""}
}

// outputFlag is -o with formats, each with an optional remark; the first is the default.
func outputFlag(formats ...string) cli.Flag {
	last := len(formats) - 1
	names := mapped(formats, func(f string) string { return strings.Fields(f)[0] })
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: names[0], Action: oneOf("output", names...),
		Usage: "print `FORMAT`: " + strings.Join(formats[:last], ", ") + " or " + formats[last]}
}

// textOrJSON is -o of most commands.
func textOrJSON() cli.Flag { return outputFlag("text", "json") }

// listFormats is -o of the commands that print one record after another.
func listFormats() cli.Flag {
	return outputFlag("text", "json (one document)", "jsonl (one line a record)")
}

func wantsJSON(c *cli.Context) bool { return c.String("output") == "json" }

// oneOf checks a flag that takes one of some words.
func oneOf(flag string, words ...string) func(*cli.Context, string) error {
	return func(c *cli.Context, value string) error {
		if !slices.Contains(words, value) {
			return usagef(commandPath(c), "--%s is %q; it takes %s", flag, value, strings.Join(words, " or "))
		}
		return nil
	}
}

// progress shows on a terminal, unless -q was given, that work goes on.
func progress(c *cli.Context) *render.Progress {
	if c.Bool("quiet") {
		return render.NewProgress(nil)
	}
	return render.NewProgress(c.App.ErrWriter)
}

// warn prints warnings on stderr unless -q was given.
func warn(c *cli.Context, warnings ...string) {
	for _, w := range warnings {
		if !c.Bool("quiet") {
			fmt.Fprintln(c.App.ErrWriter, "warning:", render.Printable(w))
		}
	}
}
