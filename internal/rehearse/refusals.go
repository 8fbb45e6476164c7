package rehearse

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/etcdshift/etcdshift/finding"
)

// listed counts the objects of a list at a version.
func (k *kind) listed(version string, objects int, complete bool) {
	k.Lock()
	defer k.Unlock()
	k.Objects = max(k.Objects, objects)
	if complete {
		k.Listed = append(k.Listed, version)
	}
}

// record counts a refusal, and keeps it as a failure if it was checked.
func (r *runner) record(
	k *kind, code *finding.Code, of objectName, version, verb string, refusal *apierrors.StatusError,
) {
	why := reason(refusal, k.expressive)
	k.Lock()
	defer k.Unlock()
	if !r.aboutObject(k, refusal) {
		if k.NotChecked == "" || why < k.NotChecked {
			k.NotChecked = why
		}
		return
	}
	k.Failed++
	if of.Name == "" && apierrors.IsNotFound(refusal) && k.status != "" {
		why += " (" + k.status + ")"
	}
	r.failures.add(refused{
		Finding: code.Because("%s: %s at %s: %s", subject(k.Resource, of), verb, version, why), Resource: k.Resource,
		objectName: of, Version: version,
	})
}

// subject names an object, or the resource if the name is empty.
func subject(resource string, of objectName) string {
	switch {
	case of.Name == "":
		return resource
	case of.Namespace == "":
		return resource + " " + of.Name
	}
	return resource + " " + of.Namespace + "/" + of.Name
}

// refused is one request refused by the API server.
type refused struct {
	*finding.Finding // with a reason that names the object, version and verb; without a key

	Resource   string // such as "widgets.example.com"
	objectName        // empty if the whole resource fails
	Version    string // of the request
}

func compareFailures(a, b refused) int {
	return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Reason, b.Reason))
}

// failures counts all failures, and keeps the first of each code in the order of compareFailures.
type failures struct {
	sync.Mutex
	kept   map[*finding.Code][]refused
	counts map[*finding.Code]int
}

// add counts and keeps a failure. A list is truncated at twice its final length, to sort seldom.
func (f *failures) add(failure refused) {
	f.Lock()
	defer f.Unlock()
	if f.kept == nil {
		f.kept, f.counts = map[*finding.Code][]refused{}, map[*finding.Code]int{}
	}
	f.counts[failure.Code]++
	kept := append(f.kept[failure.Code], failure)
	if len(kept) >= 2*finding.MaxListed {
		kept = first(kept)
	}
	f.kept[failure.Code] = kept
}

// first sorts failures and truncates the list.
func first(of []refused) []refused {
	slices.SortFunc(of, compareFailures)
	clear(of[min(len(of), finding.MaxListed):])
	return of[:min(len(of), finding.MaxListed)]
}

func (f *failures) all() (all []refused, counts map[*finding.Code]int) {
	f.Lock()
	defer f.Unlock()
	for _, kept := range f.kept {
		all = append(all, first(kept)...)
	}
	slices.SortFunc(all, compareFailures)
	return all, f.counts
}

// refusalOf returns the API server's refusal in err, or nil.
func refusalOf(err error) *apierrors.StatusError {
	var status *apierrors.StatusError
	errors.As(err, &status)
	return status
}

// aboutObject reports whether a refusal is about the object, and not from a stand-in webhook.
func (r *runner) aboutObject(k *kind, refusal *apierrors.StatusError) bool {
	message := refusal.ErrStatus.Message
	return r.StandIn == "" || !k.webhook || apierrors.IsInvalid(refusal) ||
		!strings.Contains(message, "conversion webhook for ") || !strings.Contains(message, r.StandIn)
}

// reason returns the API server's message on one line, in a fixed order and without quoted values.
// If expressive, a CEL messageExpression may have added values: only the type of error is kept.
func reason(refusal *apierrors.StatusError, expressive bool) string {
	details := refusal.ErrStatus.Details
	if apierrors.IsInvalid(refusal) && details != nil && len(details.Causes) > 0 {
		var causes []string
		for _, c := range details.Causes {
			field := c.Field
			if field == "" || field == "<nil>" {
				field = "the object itself"
			}
			text := withoutValue(c.Message)
			if expressive {
				text, _, _ = strings.Cut(text, ": ")
			}
			causes = append(causes, field+": "+text)
		}
		slices.Sort(causes)
		return strings.Join(slices.Compact(causes), "; ")
	}
	head, tail, _ := strings.Cut(refusal.ErrStatus.Message, "\n")
	var lines []string
	for line := range strings.Lines(tail) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines) // the fields of an object come in any order
	message := strings.TrimSpace(head + " " + strings.Join(lines, "; "))
	if strings.Contains(message, "typed") || strings.Contains(message, "parsing ") {
		return withoutQuotes(message)
	}
	return message
}

// withoutValue removes the value from the message about a field, "Invalid value: VALUE: why".
func withoutValue(message string) string {
	what, rest, found := strings.Cut(message, ": ")
	if !found {
		return message
	}
	if !strings.HasSuffix(what, " value") && what != "Not found" && !strings.HasPrefix(what, "Too ") {
		return message
	}
	if quoted, err := strconv.QuotedPrefix(rest); err == nil {
		return what + rest[len(quoted):]
	}
	var value any
	decoder := json.NewDecoder(strings.NewReader(rest))
	if decoder.Decode(&value) == nil {
		return what + rest[decoder.InputOffset():]
	}
	if value, _, _ := strings.Cut(rest, ": "); strings.ContainsAny(value, "{[&") {
		return what // printed as in Go
	}
	return message
}

// withoutQuotes removes quoted words, and actual values after ", got ".
func withoutQuotes(message string) string {
	var out strings.Builder
	for message != "" {
		quoted, err := strconv.QuotedPrefix(message)
		switch got := strings.HasPrefix(message, ", got "); {
		case err == nil && message[0] == '"':
			out.WriteString(`"..."`)
			message = message[len(quoted):]
		case got:
			_, message, _ = strings.Cut(message, "; ")
			if message != "" {
				out.WriteString("; ")
			}
		default:
			out.WriteByte(message[0])
			message = message[1:]
		}
	}
	return out.String()
}
