package cli

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/docs"
	"github.com/etcdshift/etcdshift/internal/pattern"
)

// longestMessage limits the text read by explain from standard input.
const longestMessage = 64 << 10

// inPages returns the paragraphs of the pages that quote a plain message, or otherwise at least
// three of its words in one quote.
func inPages(text string) []pageText {
	words := strings.Fields(text)
	if found := paragraphs(func(paragraph string) bool { return quoted(paragraph, text) > 0 }); found != nil {
		return found
	}
	return paragraphs(func(paragraph string) bool {
		return len(words) > 2 && slices.ContainsFunc(quotes().FindAllString(paragraph, -1), func(quote string) bool {
			quote = plainMessage(quote)
			return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(quote, word) })
		})
	})
}

// paragraphs returns the paragraphs selected by is.
func paragraphs(is func(paragraph string) bool) (found []pageText) {
	for _, name := range docs.Pages() {
		page, _ := docs.Page(name)
		for _, paragraph := range strings.Split(page, "\n\n") {
			if !strings.HasPrefix(paragraph, "    ") && is(paragraph) {
				found = append(found, pageText{path.Base(name), strings.Join(strings.Fields(paragraph), " ")})
			}
		}
	}
	return found
}

// messageOf returns the text to explain: the arguments, with or without quotes around all of them,
// or the beginning of standard input for "-".
func messageOf(c *cli.Context, args []string) (string, error) {
	text := strings.Join(args, " ")
	if text != "-" {
		return text, nil
	}
	read, err := io.ReadAll(io.LimitReader(c.App.Reader, longestMessage))
	if err != nil {
		return "", fmt.Errorf("standard input: %w", err)
	}
	return strings.TrimSpace(string(read)), nil
}

// search returns the meanings that quote the message, the longest quote first; otherwise the pages
// that quote it; otherwise the meanings with all words of the text.
func (x explainer) search(text string) (codes []explanation, pages []pageText) {
	text = plainMessage(text)
	lengths := map[string]int{}
	quoting := slices.DeleteFunc(slices.Clone(x.all), func(e explanation) bool {
		n := quoted(e.Meaning, text)
		lengths[e.Meaning] = n
		return n == 0
	})
	slices.SortStableFunc(quoting, func(a, b explanation) int {
		return cmp.Compare(lengths[b.Meaning],
			lengths[a.Meaning])
	})
	if len(quoting) > 0 {
		return quoting, nil
	}
	if pages = inPages(text); pages != nil {
		return []explanation{}, pages
	}
	words := strings.Fields(text)
	return slices.DeleteFunc(slices.Clone(x.all), func(e explanation) bool {
		in := plainMessage(strings.Join([]string{e.Code.Name, e.Title, e.Meaning, e.Warns, e.Remedy, e.Allow}, " "))
		return len(words) == 0 || slices.ContainsFunc(words,
			func(word string) bool { return !strings.Contains(in, word) })
	}), nil
}

// unknown returns the error for a text without a match: an unknown code, or a message.
func (x explainer) unknown(path, text string) error {
	if strings.Contains(text, " ") {
		err := usagef(path, "no code is about the message %q", text)
		return &failure{exitUsage, err,
			`give one or two words of it; "etcdshift doctor SNAPSHOT" looks for everything that it knows`}
	}
	err := usagef(path, "there is no code %q", text)
	return suggest(&failure{exitUsage, err, `"etcdshift explain" lists all codes`}, text, x.names())
}

// plainMessage returns a message in lower case, without escapes added by logs.
func plainMessage(text string) string {
	return strings.ToLower(strings.Join(strings.Fields(strings.ReplaceAll(text, `\"`, `"`)), " "))
}

var (
	quotes = pattern.New("`[^`]+`")
	varies = pattern.New(`\.\.\.|"[^"]*"|\[\d+\]|\bv\d+((alpha|beta)\d+)?\b`) // varies between clusters
)

// quoted returns the length of the longest quoted message that contains the text or is contained in
// it; 0 for none. A message has several words.
func quoted(meaning, text string) (longest int) {
	for _, quote := range quotes().FindAllString(meaning, -1) {
		quote = plainMessage(strings.Trim(quote, "`"))
		if !strings.Contains(quote, " ") || len(quote) <= longest || strings.HasPrefix(quote, "etcdshift ") {
			continue
		}
		within := strings.Contains(text, " ") && len(text) <= len(quote) && likeText(text).MatchString(quote)
		if within || likeText(quote).MatchString(text) {
			longest = len(quote)
		}
	}
	return longest
}

// likeText matches texts equal except for parts that vary between clusters.
func likeText(text string) *regexp.Regexp {
	parts := varies().Split(text, -1)
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(strings.Join(parts, ".*?"))
}
