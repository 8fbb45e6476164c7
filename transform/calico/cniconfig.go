package calico

import "strings"

// apiGroupField is the member of a CNI network configuration that pins the group the CNI plugin works on. Absent or empty,
// it is filled from CALICO_API_GROUP when the plugin is installed on a node.
const apiGroupField = "calico_api_group"

// unpinAPIGroup sets every calico_api_group of a CNI network configuration that names another group to
// projectcalico.org/v3, and returns the values it replaced. The text is a template (it has placeholders such as
// "mtu": __CNI_MTU__), so it is read as a row of JSON strings and not as JSON: nothing but those values changes. An empty
// value and a placeholder pin nothing and stay.
func unpinAPIGroup(text string) (out string, replaced []string) {
	var b strings.Builder
	done := 0
	for from := 0; ; {
		start, end, ok := nextString(text, from)
		if !ok {
			break
		}
		from = end
		if text[start+1:end-1] != apiGroupField {
			continue
		}
		start, end, ok = memberString(text, end)
		if !ok {
			continue
		}
		from = end
		if value := text[start+1 : end-1]; pinsGroup(value) {
			b.WriteString(text[done : start+1])
			b.WriteString(apiVersionV3)
			done = end - 1
			replaced = append(replaced, value)
		}
	}
	b.WriteString(text[done:])
	return b.String(), replaced
}

func pinsGroup(value string) bool {
	placeholder := strings.HasPrefix(value, "__") && strings.HasSuffix(value, "__")
	return value != "" && value != apiVersionV3 && !placeholder
}

// nextString finds the next JSON string at or after from; start and end bound it with its quotes.
func nextString(text string, from int) (start, end int, ok bool) {
	i := strings.IndexByte(text[from:], '"')
	if i < 0 {
		return 0, 0, false
	}
	start = from + i
	for end = start + 1; end < len(text); end++ {
		switch text[end] {
		case '\\':
			end++
		case '"':
			return start, end + 1, true
		}
	}
	return 0, 0, false
}

// memberString finds the string that is the value of the member whose name ends at from.
func memberString(text string, from int) (start, end int, ok bool) {
	rest := strings.TrimLeft(text[from:], " \t\r\n")
	value, isMember := strings.CutPrefix(rest, ":")
	value = strings.TrimLeft(value, " \t\r\n")
	if !isMember || !strings.HasPrefix(value, `"`) {
		return 0, 0, false
	}
	return nextString(text, len(text)-len(value))
}
