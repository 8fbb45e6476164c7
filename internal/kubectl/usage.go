package kubectl

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// usageTexts lists parts of kubectl's messages about wrong command lines. Its fatal errors have no
// type.
func usageTexts() []string {
	return []string{
		"unable to match a printer", "unrecognized format", "error parsing jsonpath", "error parsing template",
		"custom columns given", "unexpected custom-columns spec", "Invalid timeout value", "you must specify",
		"You must specify",
		"resource not specified", "may not be specified", "may not be passed", "may not have more",
		"can only be used with",
		"option cannot be used", "cannot be provided when", "cannot be retrieved by", "must be a ",
		"mutually exclusive", "valid --types are",
		"accepts only",
	}
}

// isUsage reports whether a fatal error of kubectl concerns the command line: by its text, or
// because the server rejects the request as bad, for example for its selector.
func isUsage(text string) bool {
	if strings.HasPrefix(text, "Error from server (BadRequest):") ||
		strings.Contains(text, "-h' for help and examples") {
		return true
	}
	text, _, _ = strings.Cut(text, "\n") // an object may follow
	return strings.HasPrefix(text, "error: ") && slices.ContainsFunc(usageTexts(),
		func(part string) bool { return strings.Contains(text, part) })
}

// similar returns a command similar to the first unknown word, or "".
func similar(root *cobra.Command, args []string) string {
	c, rest, _ := root.Find(args)
	if len(rest) == 0 || !c.HasSubCommands() {
		return ""
	}
	c.SuggestionsMinimumDistance = 2
	return append(c.SuggestionsFor(rest[0]), "")[0]
}
