package cli

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/kubectl"
	"github.com/etcdshift/etcdshift/transform/migrations"
)

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a script that completes commands, types and names",
		ArgsUsage: "bash|zsh|fish",
		Description: `source <(etcdshift completion bash)     # in ~/.bashrc
source <(etcdshift completion zsh)      # in ~/.zshrc, after compinit
etcdshift completion fish > ~/.config/fish/completions/etcdshift.fish`,
		Action: taking(func(c *cli.Context, args []string) error {
			script, ok := map[string]string{"bash": bashCompletion, "zsh": zshCompletion,
				"fish": fishCompletion}[args[0]]
			if !ok {
				return usagef(commandPath(c), "no completion for %q; there is one for bash, zsh and fish", args[0])
			}
			_, err := fmt.Fprint(c.App.Writer, script)
			return err
		}),
	}
}

// completeWord is the command by which shells ask for the possible last words of a command line.
// The output line otherFiles asks the shell to add files.
const (
	completeWord = "__complete"
	otherFiles   = ":files"
)

const (
	bashCompletion = `# Words that bash has broken at : and = are joined, and what is before them is not inserted again.
_etcdshift() {
	local words=() found=() word glue='' cur before
	for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
		if [[ ( $glue || $word =~ ^[:=]+$ ) && ${#words[@]} -gt 0 ]]; then
			words[${#words[@]}-1]+=$word
		else
			words+=("$word")
		fi
		glue=''
		[[ $word =~ ^[:=]+$ ]] && glue=1
	done
	cur=${words[${#words[@]}-1]}
	before=${cur%"${cur##*[:=]}"}
	compopt +o default +o bashdefault 2>/dev/null
	COMPREPLY=()
	while IFS= read -r word; do
		if [[ $word == :files ]]; then
			compopt -o default -o bashdefault 2>/dev/null
		else
			COMPREPLY+=("${word#"$before"}")
		fi
	done < <("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null)
}
complete -o bashdefault -o default -F _etcdshift etcdshift
`
	zshCompletion = `#compdef etcdshift
_etcdshift() {
	local -a found
	found=("${(@f)$("${(Q)words[1]}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ $found[-1] == :files ]]; then
		found[-1]=()
		[[ $words[CURRENT] == -*=* ]] && compset -P '*='
		_files
	fi
	[[ -n $found ]] && compadd -- "${(@)found}"
}
if [[ $funcstack[1] == _etcdshift ]]; then _etcdshift "$@"; else compdef _etcdshift etcdshift; fi
`
	fishCompletion = `function __etcdshift_complete
	set -l words (commandline -opc)
	set -l current (commandline -ct)
	for word in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
		if test "$word" = :files
			__fish_complete_path (string replace -r -- '^-[^=]*=' '' "$current")
		else
			printf '%s\n' $word
		end
	end
end
complete -c etcdshift -f -a '(__etcdshift_complete)'
`
)

// completer finds the possible last words of a command line.
type completer struct {
	app     *cli.App
	codes   []string                                    // codes accepted by "explain"
	objects func(file, kind string, in within) []string // types of a snapshot, or names of a kind; never fails
	found   []string
}

// printWords prints the possible last words. It never fails, since shells show errors.
func printWords(ctx context.Context, app *cli.App, words []string, stdout io.Writer) int {
	c := completer{app: app, codes: explainer{explanations(migrations.All())}.names()}
	c.objects = func(file, kind string, in within) []string { return completeObjects(ctx, file, kind, in) }
	for _, word := range c.complete(words) {
		fmt.Fprintln(stdout, word)
	}
	return exitDone
}

// complete returns candidates for the last of words, which may be empty. Candidates with a meaning
// for a shell are removed: names come from a possibly hostile file.
func (c completer) complete(words []string) []string {
	last := words[len(words)-1]
	read := c.objects
	c.objects = func(file, kind string, in within) []string { // a name must not be an option or a word of the script
		return slices.DeleteFunc(read(file, kind, in), func(name string) bool {
			return name == "" ||
				name == otherFiles || strings.HasPrefix(name, "-")
		})
	}
	c.line(words[:len(words)-1], last)
	plain := regexp.MustCompile(`^[A-Za-z0-9._:/,=@%+-]+$`)
	out := slices.DeleteFunc(c.found, func(word string) bool {
		return !plain.MatchString(word) || word != otherFiles && !strings.HasPrefix(word, last)
	})
	slices.Sort(out)
	if at := slices.Index(out, otherFiles); at >= 0 { // last, for the shells
		out = append(slices.Delete(out, at, at+1), otherFiles)
	}
	return slices.Compact(out)
}

// line completes last after words.
func (c *completer) line(words []string, last string) {
	command, _, at := commandOf(c.app, append([]string{programName}, words...))
	rest := words[at-1:]
	switch {
	case command.Name == "help":
		command, _, _ = commandOf(c.app, append([]string{programName}, rest...))
		c.addCommands(command.Subcommands)
		return
	case len(command.Subcommands) > 0:
		if len(rest) == 0 {
			c.addCommands(command.Subcommands)
			c.addFlags(command.Flags, last)
		}
		return
	}
	l := readLine(command, rest)
	name, _, valued := strings.Cut(last, "=")
	switch {
	case l.value != nil:
		c.value(l, l.value, "", last)
	case l.ended && strings.Contains(command.ArgsUsage, " -- COMMAND") &&
		len(l.arguments) > 0: // "fleet run" runs a command of etcdshift
		c.line(l.arguments[1:], last)
	case passesOn(command) && len(l.arguments) > 1:
		c.kubectl(l.arguments, last)
	case !l.ended && strings.HasPrefix(last, "-") && valued:
		if f := flagOf(command, nameOf(name)); f != nil {
			c.value(l, f, name+"=", last[len(name)+1:])
		}
	case !l.ended && strings.HasPrefix(last, "-"):
		c.addFlags(command.Flags, last)
	default:
		c.argument(l, last)
	}
}

// line is the part of a command line after the command's name.
type line struct {
	command   *cli.Command
	arguments []string
	value     cli.Flag // the flag that takes the next word as its value
	ended     bool     // "--" was given
	within
}

// within holds the namespace flags of a command line.
type within struct {
	namespace string
	all       bool
}

// readLine sorts words like split, but ignores errors.
func readLine(command *cli.Command, words []string) line {
	l := line{command: command}
	for i := 0; i < len(words); i++ {
		word := words[i]
		if l.ended || !strings.HasPrefix(word, "-") || word == "-" {
			if l.arguments = append(l.arguments, word); passesOn(command) {
				l.arguments = append(l.arguments, words[i+1:]...)
				break
			}
			continue
		}
		l.ended = word == "--"
		if short := attached(command, word); short != nil {
			words = slices.Concat(words[:i], short, words[i+1:])
			word = words[i]
		}
		f := flagOf(command, nameOf(word))
		_, value, hasValue := strings.Cut(word, "=")
		if _, isBool := f.(*cli.BoolFlag); f != nil && !isBool && !hasValue {
			if i++; i == len(words) {
				l.value = f
				break
			}
			value = words[i]
		}
		if f != nil {
			l.all = l.all || f.Names()[0] == "all-namespaces"
			if f.Names()[0] == "namespace" {
				l.namespace = value
			}
		}
	}
	return l
}

func (c *completer) add(before string, words ...string) {
	for _, word := range words {
		c.found = append(c.found, before+word)
	}
}

func (c *completer) addCommands(commands []*cli.Command) {
	for _, command := range commands {
		if !command.Hidden {
			c.add("", command.Name)
		}
	}
}

// addFlags adds long names, and a short name once typed.
func (c *completer) addFlags(flags []cli.Flag, last string) {
	for _, f := range append(slices.Clone(flags), cli.HelpFlag) {
		if isHidden(f) {
			continue
		}
		for _, name := range f.Names() {
			if len(name) > 1 && strings.HasPrefix(last, "-") {
				c.add("--", name)
			} else if last == "-"+name {
				c.add("-", name)
			}
		}
	}
}

// value completes the value of a flag.
func (c *completer) value(l line, f cli.Flag, before, last string) {
	if chosen, ok := f.(interface{ choices() []string }); ok {
		c.add(before, chosen.choices()...)
		return
	}
	usage := f.(cli.DocGenerationFlag).GetUsage()
	switch name := f.Names()[0]; {
	case name == "namespace" && len(l.arguments) > 0:
		c.add(before, c.objects(l.arguments[0], "namespaces", within{})...)
	case name == "on-conflict":
		c.conflict(l, before, last)
	case name == "for" && len(l.arguments) > 0:
		c.objectsOf(l, before, last)
	case regexp.MustCompile("`(FILE|PATH|OLD|REPORT|SHARD1)`").MatchString(usage):
		c.found = append(c.found, otherFiles)
	default:
		if _, list, ok := strings.Cut(usage, "One of: ("); ok { // kubectl's wording
			c.add(before, strings.Split(list[:strings.Index(list, ")")], ", ")...)
		}
	}
}

// objectsOf completes TYPE, the last of TYPE,TYPE, or TYPE/NAME.
func (c *completer) objectsOf(l line, before, last string) {
	kind, _, named := strings.Cut(last, "/")
	if named {
		c.add(before+kind+"/", c.objects(l.arguments[0], kind, l.within)...)
		return
	}
	c.add(before+last[:strings.LastIndex(last, ",")+1], c.objects(l.arguments[0], "", l.within)...)
}

// conflict completes keep, take, or one of them with TYPE/NAMESPACE/NAME.
func (c *completer) conflict(l line, before, last string) {
	does, object, single := strings.Cut(last, ":")
	kind, name, named := strings.Cut(object, "/")
	namespace, _, inside := strings.Cut(name, "/")
	switch before += does + ":"; {
	case !single || len(l.arguments) == 0:
		c.add(strings.TrimSuffix(before, does+":"), "keep", "keep:", "take", "take:")
	case inside:
		c.add(before+kind+"/"+namespace+"/", c.objects(l.arguments[0], kind, within{namespace: namespace})...)
	case named:
		for _, space := range c.objects(l.arguments[0], "namespaces", within{}) {
			c.add(before+kind+"/", space+"/")
		}
	default:
		c.objectsOf(l, before, object)
	}
}

// kubectl completes the arguments of kubectl commands like those of etcdshift; describe takes the
// arguments of get.
func (c *completer) kubectl(arguments []string, last string) {
	switch name := arguments[1]; {
	case strings.HasPrefix(last, "-"):
		for _, f := range kubectl.Flags(name) {
			c.add("--", f.Name)
		}
	case name == "get" || name == "describe":
		c.line(slices.Concat([]string{"get", arguments[0]}, arguments[2:]), last)
	}
}

// argument completes an argument by its name in the command's usage.
func (c *completer) argument(l line, last string) {
	names := strings.Fields(strings.Split(l.command.ArgsUsage, "  or  ")[0])
	if len(names) == 0 {
		return
	}
	at := len(l.arguments)
	for i, name := range names {
		repeated := func(i int) bool { return i >= 0 && strings.Contains(names[i], "...") }
		if i == at || i < at && repeated(i) || i < at && repeated(i-1) {
			c.named(l, strings.Trim(name, "[]."), last)
		}
	}
}

// named completes an argument called name.
func (c *completer) named(l line, name, last string) {
	switch {
	case strings.HasPrefix(name, "CODE"):
		c.add("", c.codes...)
	case strings.Contains(name, "TYPE") && len(l.arguments) > 0:
		c.objectsOf(l, "", last)
	case name == "NAME" && len(l.arguments) > 1:
		if kind := l.arguments[1]; strings.Contains(kind, "/") {
			c.objectsOf(l, "", last)
		} else {
			c.add("", c.objects(l.arguments[0], kind, l.within)...)
		}
	case name == "COMMAND":
		c.add("", kubectl.Commands()...)
	case name == strings.ToLower(name):
		c.add("", strings.Split(name, "|")...)
	case name != "PREFIX" && name != "NAME" && name != "TEXT":
		c.add("", otherFiles)
	}
}
