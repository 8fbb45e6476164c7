package main

import (
	"bytes"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdxlib"
)

// Other programs read the lists: names are valid and used once, and relations name what is listed.
func TestLists(t *testing.T) {
	r := &release{version: "v1.2.3", date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	all := []module{
		{path: "example.com/A_b/c", version: "v2.0.1+incompatible", sum: "h1:x", licences: []string{"MIT", "ISC"}},
		{path: "std", version: "1.26.0", licences: []string{"BSD-3-Clause"}},
	}
	var b bytes.Buffer
	if err := spdxjson.Write(r.spdx(platform{"linux", "amd64"}, all, "abc"), &b); err != nil {
		t.Fatal(err)
	}
	doc, err := spdxjson.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(doc); err != nil {
		t.Error(err)
	}
	var seen []common.ElementID
	for _, p := range doc.Packages {
		id := p.PackageSPDXIdentifier
		if slices.Contains(seen, id) || !regexp.MustCompile(`^[A-Za-z0-9.-]+$`).MatchString(string(id)) {
			t.Errorf("identifier %q", id)
		}
		seen = append(seen, id)
	}
	bom := r.cycloneDX(all, "abc")
	if got, want := (*bom.Components)[0].PackageURL, "pkg:golang/example.com/a_b/c@v2.0.1%2Bincompatible"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, needed := range *(*bom.Dependencies)[0].Dependencies {
		if !slices.ContainsFunc(*bom.Components, func(c cyclonedx.Component) bool { return c.BOMRef == needed }) {
			t.Errorf("%s is not listed", needed)
		}
	}
}
