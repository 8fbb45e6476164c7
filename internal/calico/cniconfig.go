package calico

import (
	"regexp"
	"strings"
)

// apiGroupField is the member of a CNI network configuration that pins the group the CNI plugin
// works on. Absent or empty, it is filled from CALICO_API_GROUP when the plugin is installed on a
// node.
const apiGroupField = "calico_api_group"

// jsonString matches a JSON string, and the one that is its value where it names a member.
var jsonString = regexp.MustCompile(`(?s)"((?:[^"\\]|\\.)*)"(?:\s*:\s*"((?:[^"\\]|\\.)*)")?`)

// unpinAPIGroup sets every calico_api_group of a CNI network configuration that names another group
// to projectcalico.org/v3, and returns the values it replaced. The text is a template (with
// placeholders such as "mtu": __CNI_MTU__), so it is read as a row of JSON strings; all else stays.
// An empty value and a placeholder pin nothing.
func unpinAPIGroup(text string) (out string, replaced []string) {
	var b strings.Builder
	done := 0
	for _, at := range jsonString.FindAllStringSubmatchIndex(text, -1) {
		if text[at[2]:at[3]] != apiGroupField || at[4] < 0 {
			continue
		}
		value := text[at[4]:at[5]]
		if placeholder := strings.HasPrefix(value, "__") && strings.HasSuffix(value, "__"); value == "" || value == apiVersionV3 || placeholder {
			continue
		}
		b.WriteString(text[done:at[4]])
		b.WriteString(apiVersionV3)
		done = at[5]
		replaced = append(replaced, value)
	}
	return b.String() + text[done:], replaced
}
