package rehearse

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// refusalOf is the API server's refusal in err, nil if it is none.
func refusalOf(err error) *apierrors.StatusError {
	var status *apierrors.StatusError
	errors.As(err, &status)
	return status
}

// says tells whether a refusal is about the object, and not from a webhook that stands in.
func (r *runner) says(k *kind, refusal *apierrors.StatusError) bool {
	message := refusal.ErrStatus.Message
	return r.StandIn == "" || !k.webhook || apierrors.IsInvalid(refusal) ||
		!strings.Contains(message, "conversion webhook for ") || !strings.Contains(message, r.StandIn)
}

// reason is what the API server says, on one line, the same each time, and without quoted values.
// Of messages that an expression of the definition may have made, the sort of error is left.
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

// withoutValue leaves the value out of the message about a field, "Invalid value: VALUE: why".
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
		return what // printed as Go does
	}
	return message
}

// withoutQuotes leaves out quoted words, and what was got in place of what was expected.
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
