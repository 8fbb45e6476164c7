package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/fleet"
	"github.com/etcdshift/etcdshift/internal/get"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/migrations"
)

var update = flag.Bool("update", false, "write docs/reference/schema anew")

// documents returns the JSON documents of all commands, by kind: structs whose fields form one
// object, and lists.
func documents() map[string][]any {
	return map[string][]any{
		"Status":                {status{}},
		"Verification":          {verification{}},
		"Diagnosis":             {diagnosis{}},
		"Rehearsal":             {rehearsalDocument{}},
		"PolicyCheck":           {policyCheck{}},
		"Sizes":                 {sizesDocument{}},
		"SnapshotReport":        {snapshotReport{}},
		"CodeList":              {codeList{}},
		"Version":               {release{}},
		"Fleet":                 {fleet.Fleet{}},
		"FleetSummary":          {fleetSummaryHead{}, list{"snapshots", fleet.Row{}}, fleetSummaryTail{}},
		"SavedSnapshot":         {saved{}},
		"SalvagedSnapshot":      {salvaged{}},
		"RestoredSnapshot":      {restoredDocument{}},
		"StatusComparison":      {statuses{}},
		"Signature":             {signedFile{}},
		"KeyList":               {keyListHead{}, list{"keys", inspect.Stored{}}, keyListTail{}},
		"History":               {historyDocument{}, list{"revisions", compare.Step{}}, historyTail{}},
		"Search":                {grepDocument{}, list{"found", get.Found{}}, grepTail{}},
		"Timeline":              {timelineDocument{}, list{"events", compare.Event{}}, timelineTail{}},
		"Diff":                  {diffDocument{}, list{"objects", compare.Object{}}, diffTail{}},
		"LogicalClusterList":    {clusterList{}},
		"MoveVerification":      {moveVerification{}},
		"Report":                reportParts(),
		"LogicalClusterArchive": {archive.Manifest{}},
		"PartArchive":           {archive.PartManifest{}},
		"List":                  {objectList{}, list{"items", map[string]any{}}, get.ListEnd{}},
	}
}

// reportParts returns the parts of the reports of all transforms.
func reportParts() []any {
	var sections, appendices []any
	add := func(parts []any, s transform.Section) []any {
		part := reflect.ValueOf(s).Elem().Interface()
		if slices.ContainsFunc(parts, func(other any) bool { return reflect.TypeOf(other) == reflect.TypeOf(part) }) {
			return parts
		}
		return append(parts, part)
	}
	for _, spec := range migrations.All() {
		for _, s := range spec.Sections {
			sections = add(sections, s)
		}
		if spec.Appendix != nil {
			appendices = add(appendices, spec.Appendix)
		}
	}
	return slices.Concat([]any{transform.Head{}}, sections, []any{transform.Body{}}, appendices,
		[]any{restoredSection{}})
}

// list is a field with elements printed one by one.
type list struct {
	name string
	of   any
}

// schemas returns the schemas of the documents, by kind.
func schemas() map[string]*node {
	from, all := &sources{map[string][]*ast.File{}}, map[string]*node{}
	for kind, parts := range documents() {
		n := &node{Schema: "https://json-schema.org/draft/2020-12/schema", Title: kind, Type: "object"}
		for _, part := range parts {
			switch part := part.(type) {
			case list:
				n.add(part.name, &node{Type: "array", Items: schemaOf(reflect.TypeOf(part.of), from)}, true)
			default:
				n.addFields(reflect.TypeOf(part), from, true)
			}
		}
		all[kind] = n
	}
	return all
}

// TestSchemas: docs/reference/schema has a JSON Schema of each document, derived from the Go types,
// and no other. -update writes the schemas.
func TestSchemas(t *testing.T) {
	folder := schemaFolder()
	var names []string
	for kind, n := range schemas() {
		name := strings.ToLower(kind) + ".json"
		names = append(names, name)
		generated(t, filepath.Join(folder, name), n.text("")+"\n")
	}
	names = append(names, "plan.json") // of TestSchemasPlan
	stored, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	for _, path := range stored {
		if !slices.Contains(names, filepath.Base(path)) {
			t.Errorf("%s: a schema of no document: remove it, or add the document to documents in schema_test.go", path)
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "formats.md"))
	require.NoError(t, err)
	for _, name := range names {
		if link := "[" + name + "](schema/" + name + ")"; !strings.Contains(string(page), link) {
			t.Errorf("docs/reference/formats.md: add the row | `COMMAND` | %s |", link)
		}
	}
}

// storedSchemas returns the schemas in a folder, by lower-case file name. Fields missing in a
// schema violate it.
func storedSchemas(folder string) (map[string]*spec.Schema, error) {
	all := map[string]*spec.Schema{}
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		schema := &spec.Schema{}
		if err := json.Unmarshal(text, schema); err != nil {
			return nil, err
		}
		closeObjects(schema)
		all[strings.TrimSuffix(filepath.Base(path), ".json")] = schema
	}
	return all, err
}

// closeObjects makes the objects of a schema reject other fields.
func closeObjects(s *spec.Schema) {
	if s.Type.Contains("object") && s.AdditionalProperties == nil {
		s.AdditionalProperties = &spec.SchemaOrBool{}
	}
	for name, of := range s.Properties {
		closeObjects(&of)
		s.Properties[name] = of
	}
	if s.Items != nil {
		closeObjects(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		closeObjects(s.AdditionalProperties.Schema)
	}
}

// wrongBy lists the places where a value violates a schema.
func wrongBy(schema *spec.Schema, at string, value any) (wrong []string) {
	if schema == nil {
		return []string{"no schema of " + at + ": add its type to documents in schema_test.go; " + updating}
	}
	result := validate.NewSchemaValidator(schema, nil, at, strfmt.Default).Validate(value)
	return stream.Mapped(result.Errors, error.Error)
}

// wrongPrinted lists the places where printed JSON violates its schema in docs/reference/schema.
// Other text passes, and so does truncated JSON.
func wrongPrinted(all map[string]*spec.Schema, args []string, printed []byte) (wrong []string) {
	d := json.NewDecoder(bytes.NewReader(printed))
	for {
		var value map[string]any
		if d.Decode(&value) != nil {
			return wrong
		}
		kind, _ := value["kind"].(string)
		manifest, _ := value["archive"].(map[string]any)
		part, _ := value["partArchive"].(map[string]any)
		switch {
		case slices.Contains(args, "jsonl"):
			document, list := lineOf(args, value)
			if all[document] == nil {
				return append(wrong, "no schema of a line of jsonl: add the command to lineOf in schema_test.go")
			}
			wrong = append(wrong, wrongBy(all[document].Properties[list].Items.Schema, list, value)...)
		case value["apiVersion"] == "etcdshift/v1", value["etcdshift"] != nil:
			wrong = append(wrong, wrongBy(all[strings.ToLower(kind)], kind, value)...)
		}
		if part != nil {
			wrong = append(wrong, wrongBy(all["partarchive"], "partArchive", part)...)
		}
		if manifest["format"] != nil {
			wrong = append(wrong, wrongBy(all["logicalclusterarchive"], "archive", manifest)...)
		}
	}
}

// lineOf returns the schema of a line of -o jsonl: the elements of a document's list.
func lineOf(args []string, line map[string]any) (document, list string) {
	switch {
	case slices.Contains(args, "history"):
		return "history", "revisions"
	case slices.Contains(args, "grep"):
		return "search", "found"
	case slices.Contains(args, "timeline"):
		return "timeline", "events"
	case slices.Contains(args, "summary"):
		return "fleetsummary", "snapshots"
	case slices.Contains(args, "diff") && line["key"] == nil:
		return "diff", "leases"
	case slices.Contains(args, "diff"):
		return "diff", "objects"
	case slices.Contains(args, "keys"):
		return "keylist", "keys"
	}
	return "", ""
}

// TestDocuments: every kind of document printed for the recorded snapshots obeys its schema.
// Reading commands that need more than a snapshot have a line here.
func TestDocuments(t *testing.T) {
	all, err := storedSchemas(schemaFolder())
	require.NoError(t, err)
	seen := map[string]bool{}
	fixtureFiles(t, "calico/before", "storage/flipped", "kcp/root-before", "kcp/shard1-before", "kcp/cache-before")
	server := etcdtest.Start(t, filepath.Join(t.TempDir(), "member.etcd"))
	lines := []string{
		"save -o json saved.db --endpoints 127.0.0.1:1," + server.URL,
		"verify -o json before.db",
		"salvage -o json before.db salvaged.db",
		"restore -o json before.db --data-dir restored.etcd",
		"sign -o json before.db --key backup.key",
		"verify -o json before.db --key backup.pub",
		"policy check -o json before.db --from-snapshot",
		"rehearse -o json flipped.db --after flipped.db",
		"sizes -o json before.db",
		"sizes -o json --by field before.db",
		"explain -o json",
		"version -o json",
		"keys -o json --history before.db",
		"keys -o jsonl --history cache-before.db",
		"history -o json before.db gadget/g-old -n team-a",
		"history -o jsonl before.db gadget/g-old -n team-a",
		"timeline -o json --all before.db",
		"timeline -o jsonl before.db -n team-a",
		"get -o json before.db pods -A",
		"grep -o json before.db gadget",
		"grep -o jsonl before.db gadget",
		"migrate calico-v3 -o json before.db calico.db --report calico.json",
		"report -o json calico.db calico.html --before before.db --migration calico.json",
		"migrate storage-versions -o json flipped.db storage.db",
		"diff -o json --all before.db calico.db",
		"diff -o jsonl --all before.db calico.db",
		"kcp list -o json root-before.db shard1-before.db --cache cache-before.db",
		"kcp extract -o json 2y3qvnqz5ga11oc4 root-before.db archive.db",
		"kcp import -o json archive.db shard1-before.db shard1-after.db --cache cache-before.db",
		"kcp purge -o json 2y3qvnqz5ga11oc4 root-before.db root-after.db --allow owner-points-here --to-shard shard-1",
		"kcp verify -o json archive.db root-after.db shard1-after.db --origin root-before.db",
		"extract -o json before.db part.db -n team-a", "status -o json part.db", "verify -o json part.db",
		"status -o json archive.db", "status -o json before.db", "status -o json before.db before.db",
		"fleet list -o json . list.json --name x --match before.db",
		"fleet run list.json --index 0 -- migrate calico-v3 {in} {result}.db --report {result}.json -o json",
		"fleet summary list.json -o json",
		"fleet summary list.json -o jsonl",
	}
	lines = append(lines, plainLines("SNAPSHOT", lines, "before.db -o json", "before.db -o jsonl")...)
	lacking(t, "schema_test.go: add a line of %s -o json to TestDocuments", lines, nil, func(c *cli.Command) bool {
		return offers(c, "json") && flagOf(c, "report") == nil // the others print Report
	})
	for _, line := range lines {
		args := strings.Fields(line)
		status, printed, said := runWords(args...)
		require.Contains(t, []int{exitDone, exitFailed, exitRefused}, status, "%s: %s", line, said)
		for _, wrong := range wrongPrinted(all, args, []byte(printed)) {
			t.Errorf("%s: %s", line, wrong)
		}
		for kind := range documents() {
			seen[kind] = seen[kind] || strings.Contains(printed, `"kind": "`+kind+`"`)
		}
	}
	for kind, is := range seen {
		require.True(t, is, "no command line in TestDocuments prints %s: add one in schema_test.go", kind)
	}
}

// testdata returns a path below the folder of recorded files.
func testdata(path ...string) string {
	return filepath.Join(append([]string{schemaFolder(), "..", "..", "..", "testdata"}, path...)...)
}

// schemaFolder returns docs/reference/schema. A script runs elsewhere, with the path in SCHEMAS.
func schemaFolder() string {
	folder, err := filepath.Abs(filepath.Join("..", "..", "docs", "reference", "schema"))
	if err != nil {
		panic(err)
	}
	return cmp.Or(os.Getenv("SCHEMAS"), folder)
}

// documentedMain is the program, and fails after printing or writing JSON that violates its schema.
func documentedMain() {
	report := slices.Index(os.Args, "--report") + 1
	if report == 0 && !slices.ContainsFunc(os.Args, func(a string) bool {
		return a == "json" || a == "jsonl" ||
			a == "-ojson"
	}) {
		os.Exit(Main(os.Stdout, os.Stderr))
	}
	var printed bytes.Buffer
	status := Main(io.MultiWriter(os.Stdout, &printed), os.Stderr)
	all, err := storedSchemas(schemaFolder())
	if err != nil {
		panic(err)
	}
	wrong := wrongPrinted(all, os.Args, printed.Bytes())
	if report > 0 && report < len(os.Args) {
		if is, err := os.Stat(os.Args[report]); err == nil && is.Mode().IsRegular() {
			text, err := os.ReadFile(os.Args[report])
			wrong = append(wrong, wrongPrinted(all, nil, text)...)
			if err != nil {
				wrong = append(wrong, err.Error())
			}
		}
	}
	if wrong != nil {
		fmt.Fprintln(os.Stderr, "not by docs/reference/schema:", strings.Join(wrong, "; "))
		status = 99
	}
	os.Exit(status)
}
