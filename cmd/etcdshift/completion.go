package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print what makes a shell complete commands and flags",
		ArgsUsage: "bash|zsh|fish",
		Description: `source <(etcdshift completion bash)
etcdshift completion fish > ~/.config/fish/completions/etcdshift.fish`,
		Action: runCompletion,
	}
}

// The scripts ask the program itself: the parser answers --generate-bash-completion with what may come next.
const (
	bashCompletion = `_etcdshift() {
	local cur="${COMP_WORDS[COMP_CWORD]}" words=("${COMP_WORDS[@]:0:COMP_CWORD}")
	[[ $cur == -* ]] && words+=("$cur")
	COMPREPLY=($(compgen -W "$("${words[@]}" --generate-bash-completion 2>/dev/null)" -- "$cur"))
}
complete -o bashdefault -o default -F _etcdshift etcdshift
`
	zshCompletion = `#compdef etcdshift
_etcdshift() {
	local -a before found
	before=("${(@)words[1,CURRENT-1]}")
	[[ $words[CURRENT] == -* ]] && before+=("$words[CURRENT]")
	found=("${(@f)$("${(@)before}" --generate-bash-completion 2>/dev/null)}")
	if [[ -n $found[1] ]]; then compadd -- "${(@)found}"; else _files; fi
}
compdef _etcdshift etcdshift
`
)

func runCompletion(c *cli.Context) error {
	args, err := arguments(c)
	if err != nil {
		return err
	}
	script := ""
	switch args[0] {
	case "bash":
		script = bashCompletion
	case "zsh":
		script = zshCompletion
	case "fish":
		if script, err = c.App.ToFishCompletion(); err != nil {
			return err
		}
		script = strings.ReplaceAll(script, "' -f -l ", "' -l ") // -f would keep files from being completed
	default:
		return usagef(commandPath(c), "no completion for %q; there is one for bash, zsh and fish", args[0])
	}
	_, err = fmt.Fprint(c.App.Writer, script)
	return err
}

// manCommand is for packagers.
func manCommand() *cli.Command {
	return &cli.Command{
		Name:        "man",
		Usage:       "print the manual page",
		Hidden:      true,
		Description: "etcdshift man > etcdshift.1",
		Action: func(c *cli.Context) error {
			if _, err := arguments(c); err != nil {
				return err
			}
			page, err := c.App.ToManWithSection(1)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(c.App.Writer, page)
			return err
		},
	}
}
