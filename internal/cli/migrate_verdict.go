package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/transform"
)

// verdict returns the error with a run's exit status, nil for 0.
func (m migration) verdict(r *transform.Report, err error) error {
	switch {
	case err == nil:
		left, _ := r.Errors()
		if left == 0 {
			return nil
		}
		then := "restore"
		if m.NotForRestore {
			then = "hand OUT over"
		}
		return &failure{exitAllowed, fmt.Errorf("%s allowed by --allow", phrase.Count(left, "problem")),
			"each is listed with its decision; check them before you " + then}
	case errors.Is(err, transform.ErrRefused):
		_, refusing := r.Errors()
		err = fmt.Errorf("refused: %s; nothing was written", phrase.Count(refusing, "problem"))
		return &failure{exitRefused, &fileError{[]string{r.Input.Path}, err}, m.refusedHint(r)}
	case errors.Is(err, transform.ErrOutIsIn):
		return &failure{status: exitUsage, err: err}
	case errors.Is(err, context.Canceled), errors.Is(err, fs.ErrExist):
		return err
	}
	return fmt.Errorf("%w; nothing was written", err)
}

// refusedHint says how to continue after a refusal: the remedy of each code, and all codes to
// allow.
func (m migration) refusedHint(r *transform.Report) string {
	var refusing, all []string
	for _, p := range r.Problems {
		if p.Level != finding.Error {
			continue
		}
		all = append(all, p.Code.Name)
		if p.Outcome == finding.Refused {
			refusing = append(refusing, p.Code.Name)
		}
	}
	allowable := finding.Allowable(m.AllCodes())
	var ways []string
	allow := ""
	for _, code := range sorted(refusing) {
		way := m.settles(code)
		if code == transform.CodeBumpTooLarge.Name {
			way = "give the --bump-revision that the message names"
		}
		if way != "" {
			ways = append(ways, code+": "+way)
		}
	}
	for _, code := range sorted(all) {
		if slices.Contains(allowable, code) {
			allow += " --allow " + code
		}
	}
	hint := "\"etcdshift explain " + append(sorted(refusing), "CODE")[0] + "\" tells what to do; " +
		"change the command, or mend the live cluster and take a new snapshot"
	if ways != nil {
		hint = strings.Join(ways, "; ") + "; otherwise " + hint
	}
	if slices.ContainsFunc(refusing, func(code string) bool { return !slices.Contains(allowable, code) }) {
		return hint // allowing these codes would not be enough
	}
	return hint + ", or go on with" + allow
}

// settles returns the remedy of a code without --allow, from the command or one of its steps; ""
// for none.
func (m migration) settles(code string) string {
	way := m.Settles[code]
	for _, of := range m.Of {
		way = cmp.Or(way, of.Settles[code])
	}
	return way
}

// sorted returns the words in order, without duplicates.
func sorted(words []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(words)))
}
