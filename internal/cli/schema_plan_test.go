package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/plan"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/migrations"
)

type object = map[string]any

// planSchema returns the JSON Schema of the plan of "run", derived from the commands.
func planSchema() string {
	var steps []any
	for _, s := range migrations.All() {
		if plan.Unfit(&s) == "" && s.Of == nil {
			steps = append(steps, stepSchema(&s))
		}
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Plan", "type": "object",
		"additionalProperties": false,
		"required":             []string{"apiVersion", "kind", "steps"},
		"properties": object{
			"apiVersion": object{"enum": []string{"etcdshift/v1"}},
			"kind":       object{"enum": []string{"Plan"}},
			"steps":      object{"type": "array", "minItems": 1, "items": object{"oneOf": steps}},
		},
	}); err != nil {
		panic(err)
	}
	return text.String()
}

// stepSchema returns the schema of a step with a command.
func stepSchema(s *transform.Spec) object {
	fields, required := object{"command": object{"enum": []string{s.Command()}, "description": s.Usage}},
		[]string{"command"}
	if words := strings.Fields(s.Rest); len(words) > 0 {
		args := object{"type": "array", "items": textSchema(), "description": s.Rest}
		if least := len(words) - strings.Count(s.Rest, " [") - strings.Count(s.Rest[:1], "["); least > 0 {
			args["minItems"], required = least, append(required, "args")
		}
		fields["args"] = args
	}
	flags := object{}
	for _, f := range s.Flags {
		flags[f.Name] = flagSchema(f)
	}
	if len(flags) > 0 {
		fields["flags"] = object{"type": "object", "additionalProperties": false, "properties": flags}
	}
	if codes := finding.Allowable(s.Codes); len(codes) > 0 {
		fields["allow"] = object{"type": "array", "items": object{"enum": codes}}
	}
	return object{"type": "object", "additionalProperties": false, "required": required, "properties": fields}
}

func textSchema() object { return object{"type": []string{"string", "number"}} }

func flagSchema(f transform.Flag) object {
	of := textSchema()
	switch f.Default.(type) {
	case bool:
		of = object{"type": "boolean"}
	case []string:
		one := textSchema()
		if f.Choices != nil {
			one = object{"enum": f.Choices}
		}
		of = object{"anyOf": []any{one, object{"type": "array", "items": one}}}
	case time.Duration:
		of = object{"type": "string"}
	}
	if _, list := f.Default.([]string); f.Choices != nil && !list {
		of = object{"enum": f.Choices}
	}
	of["description"] = strings.ReplaceAll(f.Usage, "`", "")
	return of
}

// TestSchemasPlan: docs/reference/schema/plan.json is derived from the commands. The schema accepts
// exactly the plans that the program accepts.
func TestSchemasPlan(t *testing.T) {
	generated(t, filepath.Join(schemaFolder(), "plan.json"), planSchema())
	var schema spec.Schema
	require.NoError(t, json.Unmarshal([]byte(planSchema()), &schema))
	valid := func(text string) bool {
		var value any
		require.NoError(t, yaml.Unmarshal([]byte(text), &value), text)
		return validate.NewSchemaValidator(&schema, nil, "", strfmt.Default).Validate(value).IsValid()
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "run.md"))
	require.NoError(t, err)
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, example)
	fixtureFiles(t, "calico/before")
	for i, text := range []string{string(example[1]), planText(t, planSteps()...)} {
		require.True(t, valid(text), text)
		require.NoError(t, os.WriteFile("plan.yaml", []byte(text), 0o600))
		status, _, stderr := runWords("run", "--dry-run", "plan.yaml", "before.db", "out.db")
		require.NotEqual(t, exitUsage, status, "%d: %s", i, stderr)
	}
	const head = "apiVersion: etcdshift/v1\nkind: Plan\nsteps:\n"
	for _, text := range []string{
		"kind: Plan", head + "- {}", head + "- command: kcp purge", head + "- command: run",
		head + "- command: migrate calico-v3\n  more: 1",
		head + "- {command: migrate calico-v3, args: [x]}",
		head + "- {command: migrate calico-v3, flags: {keep: true}}",
		head + "- {command: migrate calico-v3, flags: {keep-v1: maybe}}",
		head + "- {command: migrate calico-v3, flags: {uids: old}}",
		head + "- {command: migrate calico-v3, flags: {dry-run: true}}",
		head + "- {command: migrate calico-v3, allow: [nothing]}",
		head + "- {command: migrate storage-versions, flags: {crd: {}}}",
	} {
		require.False(t, valid(text), text)
		require.NoError(t, os.WriteFile("plan.yaml", []byte(text), 0o600))
		status, _, stderr := runWords("run", "--dry-run", "plan.yaml", "before.db", "out.db")
		require.Equal(t, exitUsage, status, stderr)
	}
}
