package sanitize

import (
	"encoding/json"
	"regexp"
	"strings"
)

// shownOfRelease are the fields of a Helm release (helm.sh/helm/v3/pkg/release) that stay: none of
// them is written by who installs a chart.
func shownOfRelease() map[string]any {
	return map[string]any{
		"name": true, "namespace": true, "version": true,
		"info": map[string]any{"first_deployed": true, "last_deployed": true, "deleted": true, "status": true},
		"chart": map[string]any{"metadata": map[string]any{
			"name": true, "version": true, "appVersion": true, "apiVersion": true, "type": true, "kubeVersion": true,
		}},
	}
}

// release replaces the values of a Helm release. Templates, files and manifests go: of a manifest
// the lines stay that say which kinds it has, so that Helm still reads it.
func (m masker) release(plain string, texts int) (string, bool) {
	var of struct {
		Name     *string          `json:"name"`
		Chart    *json.RawMessage `json:"chart"`
		Manifest *string          `json:"manifest"`
	}
	var content map[string]any
	if json.Unmarshal([]byte(plain), &of) != nil || of.Name == nil || of.Chart == nil || of.Manifest == nil || json.Unmarshal([]byte(plain), &content) != nil {
		return "", false
	}
	out := shown(content, shownOfRelease())
	out["manifest"] = kindsOf(*of.Manifest)
	if chart, is := out["chart"].(map[string]any); is {
		from, _ := content["chart"].(map[string]any)
		chart["values"] = m.value(from["values"], texts+1)
		chart["templates"], chart["files"] = []any{}, []any{}
	}
	if config := content["config"]; config != nil {
		out["config"] = m.value(config, texts+1)
	}
	encoded, err := json.Marshal(out)
	return string(encoded), err == nil
}

// shown returns the fields of content that a pattern names.
func shown(content, pattern map[string]any) map[string]any {
	out := map[string]any{}
	for name, child := range content {
		switch want := pattern[name].(type) {
		case bool:
			out[name] = child
		case map[string]any:
			if fields, is := child.(map[string]any); is {
				out[name] = shown(fields, want)
			}
		}
	}
	return out
}

var kindLine = regexp.MustCompile(`^(?:apiVersion|kind): *["']?[A-Za-z0-9./-]{1,253}["']?$`)

func kindsOf(manifest string) string {
	var out strings.Builder
	for line := range strings.Lines(manifest) {
		word := strings.TrimRight(line, "\r\n")
		if word == "---" || kindLine.MatchString(word) {
			out.WriteString(word + "\n")
		}
	}
	return out.String()
}
