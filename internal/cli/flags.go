package cli

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

const encryptionConfig = "encryption-config"

// readFlags returns own and the flags of all reading commands; decrypts begins the usage of
// --encryption-config.
func readFlags(decrypts string, own ...cli.Flag) []cli.Flag {
	return append(own, prefixFlag("look"), encryptionFlag(decrypts), maxExpandFlag(), quietFlag())
}

// prefixFlag returns --prefix. Reading commands see no other keys; changing commands check the
// whole file.
func prefixFlag(does string) cli.Flag {
	return &cli.StringSliceFlag{Name: "prefix",
		Usage: does + " only under storage prefix `P`, such as /registry; may be repeated (default: all prefixes " +
			"found)"}
}

// readPrefixes reads --prefix like kube-apiserver its --etcd-prefix.
func readPrefixes(c *cli.Context) (prefixes []string) {
	for _, p := range c.StringSlice("prefix") {
		p = strings.TrimRight(path.Join("/", p), "/")
		if !slices.Contains(prefixes, p) {
			prefixes = append(prefixes, p)
		}
	}
	return prefixes
}

// codesFlag is a repeatable flag for codes of findings.
type codesFlag struct{ *wordsFlag }

// newCodesFlag returns a flag that accepts only the given codes; takes describes them.
func newCodesFlag(name, usage, takes string, codes []string) *codesFlag {
	return &codesFlag{newWordsFlag(name, usage, "the code of "+takes, sorted(codes))}
}

// wordsFlag is a repeatable flag for a fixed set of words.
type wordsFlag struct {
	*cli.StringSliceFlag
	words []string
}

func (f *wordsFlag) choices() []string { return f.words }

// newWordsFlag returns a flag that accepts only the given words; takes describes them.
func newWordsFlag(name, usage, takes string, words []string) *wordsFlag {
	return &wordsFlag{&cli.StringSliceFlag{Name: name, Usage: usage,
		Action: func(c *cli.Context, given []string) error {
			for _, word := range given {
				if !slices.Contains(words, word) {
					err := usagef(commandPath(c), "--%s is %q; it takes %s: %s", name, word, takes,
						strings.Join(words, ", "))
					return suggest(err, word, words)
				}
			}
			return nil
		}}, words}
}

func encryptionFlag(does string) cli.Flag {
	return &cli.StringFlag{Name: encryptionConfig, Usage: does + " the EncryptionConfiguration in `FILE` (not KMS v1)"}
}

func maxExpandFlag() cli.Flag {
	check := func(c *cli.Context, given string) error {
		if _, err := parseSize(given); err != nil {
			return usagef(commandPath(c), "--max-expand: %w", err)
		}
		return nil
	}
	return &cli.StringFlag{Name: "max-expand", Action: check,
		Usage: fmt.Sprintf("expand a compressed snapshot to at most `SIZE`, such as 20GiB (default: %dGiB)",
			snapshot.DefaultMaxExpand>>30)}
}

// freePagesFlag is the flag for records found in free pages; shown names them.
func freePagesFlag(shown string) cli.Flag {
	return &cli.BoolFlag{Name: "free-pages", Usage: "also show " + shown + " that a compaction removed and free " +
		"pages still hold"}
}

func snapshotConfig(c *cli.Context) snapshot.Config {
	// 0, the default, if the flag is absent; the flag's Action has checked the value
	n, _ := parseSize(c.String("max-expand"))
	// These commands seldom print the digest.
	late := slices.Contains([]string{"get", "kubectl"}, c.Command.Name)
	return snapshot.Config{MaxExpand: n, LateDigest: late, FreePages: c.Bool("free-pages") || c.IsSet("wal")}
}

var sizeSyntax = pattern.New(`^([0-9]+)(?:([kmgt])(i?))?b?$`)

// parseSize parses a number of bytes such as 1000000, 500MB, 20GiB or 20Gi. Units with an i count
// by 1024, others by 1000, as in Kubernetes.
func parseSize(text string) (int64, error) {
	parts := sizeSyntax().FindStringSubmatch(strings.ToLower(text))
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

func atFlag(does string) cli.Flag {
	return &cli.StringFlag{Name: "at", Usage: does + " the state at `REVISION` or at a time: " + timeForms}
}

func quietFlag() cli.Flag {
	return &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print only errors on stderr"}
}

func showSecretsFlag() cli.Flag {
	return &cli.BoolFlag{Name: "show-secrets",
		Usage: "print Secrets and other credentials in plain text, not as \"<redacted 32 bytes>\""}
}

// outputFlag returns -o with formats, each with an optional remark; the first is the default.
func outputFlag(formats ...string) cli.Flag {
	last := len(formats) - 1
	names := stream.Mapped(formats, func(f string) string { return strings.Fields(f)[0] })
	return oneOf(&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: names[0],
		Usage: "print `FORMAT`: " + strings.Join(formats[:last], ", ") + " or " + formats[last]}, names...)
}

func textOrJSON() cli.Flag { return outputFlag("text", "json") }

func listFormats() cli.Flag {
	return outputFlag("text", "json (one document)", "jsonl (one line a record)")
}

func wantsJSON(c *cli.Context) bool { return c.String("output") == "json" }

// choiceFlag is a flag with a fixed set of words.
type choiceFlag struct {
	*cli.StringFlag
	words []string
	bare  string // the value without "=VALUE"; "" if a value is required
}

func (f *choiceFlag) choices() []string { return f.words }

// oneOf restricts a flag to the given words.
func oneOf(f *cli.StringFlag, words ...string) *choiceFlag {
	f.Action = func(c *cli.Context, value string) error {
		if !slices.Contains(words, value) {
			return usagef(commandPath(c), "--%s is %q; it takes %s", f.Name, value, strings.Join(words, " or "))
		}
		return nil
	}
	return &choiceFlag{StringFlag: f, words: words}
}

// progress returns the progress display of a terminal, silent with -q.
func progress(c *cli.Context) *render.Progress {
	if c.Bool("quiet") {
		return render.NewProgress(nil)
	}
	return render.NewProgress(c.App.ErrWriter)
}

// part returns a function for the part of files read so far; see Progress of package snapshot for
// passes and the measured cost.
func part(passes int, cost float64, files ...*opened) func() float64 {
	return func() (done float64) {
		for _, o := range files {
			done += o.Snapshot().Progress(passes, cost) / float64(len(files))
		}
		return done
	}
}

// warn prints warnings on stderr, except with -q.
func warn(c *cli.Context, warnings ...string) {
	for _, w := range warnings {
		if !c.Bool("quiet") {
			fmt.Fprintln(c.App.ErrWriter, "warning:", render.Printable(w))
		}
	}
}

// arrange puts flags before arguments: the parser stops at the first argument. Unknown, repeated,
// misplaced, empty and invalid flags are usage errors. "--" ends the flags; a flag with a value
// takes any next word.
func arrange(app *cli.App, args []string) ([]string, error) {
	command, name, at := commandOf(app, args)
	if len(command.Subcommands) > 0 {
		if at == len(args) || !strings.HasPrefix(args[at], "-") {
			return args, nil
		}
		f := flagOf(command, nameOf(args[at]))
		if f == nil {
			return nil, usagef(name, "unknown flag %q here; the flags of a command stand after its name", args[at])
		}
		return args, checkValue(name, f, args[at])
	}
	flags, arguments, err := split(command, name, args[at:])
	if err != nil {
		return nil, err
	}
	return slices.Concat(args[:at], flags, []string{"--"}, arguments), nil
}

// commandOf returns the named command, its path, and the index of the first word after it.
func commandOf(app *cli.App, args []string) (command *cli.Command, path string, at int) {
	command = &cli.Command{Subcommands: app.Commands, Flags: []cli.Flag{cli.VersionFlag}}
	var names []string
	for at = 1; at < len(args); at++ {
		i := slices.IndexFunc(command.Subcommands, func(c *cli.Command) bool { return c.HasName(args[at]) })
		if i < 0 {
			break
		}
		command = command.Subcommands[i]
		names = append(names, command.Name)
	}
	return command, strings.Join(names, " "), at
}

// split sorts the words after a command's name into flags, with their values, and arguments.
func split(command *cli.Command, path string, words []string) (flags, arguments []string, err error) {
	given := map[cli.Flag]bool{}
	for len(words) > 0 {
		if attached := attached(command, words[0]); attached != nil {
			words = append(attached, words[1:]...)
		}
		word := words[0]
		words = words[1:]
		switch {
		case word == "--":
			return flags, append(arguments, words...), nil
		case word == "-" || !strings.HasPrefix(word, "-"):
			if arguments = append(arguments, word); passesOn(command) {
				if len(words) > 0 && words[0] == "--" {
					words = words[1:]
				}
				return flags, append(arguments, words...), nil
			}
			continue
		}
		name, value, hasValue := strings.Cut(word, "=")
		f := flagOf(command, nameOf(word))
		slice, isSlice := f.(cli.DocGenerationSliceFlag)
		switch {
		case f == nil:
			return nil, nil, unknownFlag(path, word, command)
		case f == cli.HelpFlag: // without arguments: the parser would look for their help
			return []string{word}, nil, checkValue(path, f, word)
		case given[f] && !(isSlice && slice.IsSliceFlag()): // the parser would use the last one
			return nil, nil, usagef(path, "flag %q is given twice", name)
		}
		given[f] = true
		if bare, is := f.(*choiceFlag); is && bare.bare != "" && !hasValue {
			if len(words) > 0 && slices.Contains(bare.words, words[0]) {
				return nil, nil, usagef(path, "write %s=%s: as in kubectl, the word after %s is a NAME",
					word, words[0], word)
			}
			word, value, hasValue = word+"="+bare.bare, bare.bare, true
		}
		flags = append(flags, word)
		if _, isBool := f.(*cli.BoolFlag); !isBool && !hasValue {
			if len(words) == 0 {
				return nil, nil, usagef(path, "flag %q needs a value", word)
			}
			value, words = words[0], words[1:]
			flags = append(flags, value)
		} else if isBool && !hasValue {
			continue
		}
		if value == "" { // from an unset shell variable; it would mean the same as no flag
			return nil, nil, usagef(path, "flag %q has an empty value", name)
		}
		if err := checkValue(path, f, name+"="+value); err != nil {
			return nil, nil, err
		}
	}
	return flags, arguments, nil
}

// attached splits short flags in one word, as in -Aojson, from each other and from their values: -A
// and -o=json. It returns nil for any other word.
func attached(command *cli.Command, word string) []string {
	if len(word) < 3 || word[0] != '-' || word[1] == '-' || word[2] == '-' || flagOf(command, nameOf(word)) != nil {
		return nil
	}
	switch flagOf(command, word[1:2]).(type) {
	case nil:
		return nil
	case *cli.BoolFlag:
		return []string{word[:2], "-" + word[2:]}
	}
	return []string{word[:2] + "=" + word[2:]}
}

// passesOn reports whether the words after the first argument, including flags, belong to another
// program.
func passesOn(command *cli.Command) bool { return strings.HasSuffix(command.ArgsUsage, " COMMAND...") }

// checkValue checks the value, if any, of a flag in the form "--top=3".
func checkValue(path string, f cli.Flag, word string) (err error) {
	name, value, given := strings.Cut(word, "=")
	takes := ""
	switch f.(type) {
	case *cli.BoolFlag:
		takes = "true or false"
		_, err = strconv.ParseBool(value)
	case *cli.IntFlag, *cli.Int64Flag:
		takes = "a whole number"
		if _, err = strconv.ParseInt(value, 0, 64); errors.Is(err, strconv.ErrRange) {
			takes = fmt.Sprintf("a whole number up to %d", math.MaxInt64)
		}
	case *cli.DurationFlag:
		takes = "a time such as 30s"
		_, err = time.ParseDuration(value)
	}
	if err == nil || !given {
		return nil
	}
	return usagef(path, "%s is %q; it takes %s", name, value, takes)
}

// nameOf returns the name of a flag in the form "--top=3".
func nameOf(word string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(word[1:], "-"), "=")
	return name
}

// flagOf returns the command's flag of a name without dashes, nil for none.
func flagOf(command *cli.Command, name string) cli.Flag {
	for _, f := range append(slices.Clone(command.Flags), cli.HelpFlag) {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}
