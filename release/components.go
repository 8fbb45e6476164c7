package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// components lists what each program is made of, as CycloneDX and as SPDX.
func (r *release) components(ctx context.Context) error {
	for _, p := range r.platforms {
		all, err := r.linked(ctx, r.program(p))
		if err != nil {
			return err
		}
		sum, err := sumOf(r.program(p))
		if err != nil {
			return err
		}
		base := filepath.Join(r.out, r.name(p))
		if err := create(base+".cdx.json", func(w io.Writer) error {
			return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(r.cycloneDX(all, sum), cyclonedx.SpecVersion1_6)
		}); err != nil {
			return err
		}
		if err := create(base+".spdx.json", func(w io.Writer) error { return spdxjson.Write(r.spdx(p, all, sum), w, spdxjson.Indent("  ")) }); err != nil {
			return err
		}
	}
	return nil
}

// sumOf is the SHA-256 of a file in hexadecimal.
func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// purl names a package as https://github.com/package-url/purl-spec has it: names of Go modules in
// lower case, the + of a version escaped.
func purl(path, version string) string {
	return "pkg:golang/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")
}

func (m module) expression() string { return strings.Join(m.licences, " AND ") }

const modulePath = "github.com/etcdshift/etcdshift"

func (r *release) cycloneDX(all []module, sum string) *cyclonedx.BOM {
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, []byte(modulePath+"#"+sum)).URN() // of the bytes, not by chance
	program := cyclonedx.Component{
		BOMRef: purl(modulePath, r.version), Type: cyclonedx.ComponentTypeApplication, Name: "etcdshift", Version: r.version,
		PackageURL: purl(modulePath, r.version), Description: summary,
		Hashes:   &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}},
		Licenses: &cyclonedx.Licenses{{Expression: licence}},
	}
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.date.Format(time.RFC3339), Component: &program}
	var components []cyclonedx.Component
	var needs []string
	for _, m := range all {
		c := cyclonedx.Component{
			BOMRef: purl(m.path, m.version), Type: cyclonedx.ComponentTypeLibrary, Name: m.path, Version: m.version,
			Scope: cyclonedx.ScopeRequired, PackageURL: purl(m.path, m.version), Licenses: &cyclonedx.Licenses{{Expression: m.expression()}},
		}
		if m.sum != "" {
			c.Properties = &[]cyclonedx.Property{{Name: "go.sum", Value: m.sum}}
		}
		components, needs = append(components, c), append(needs, c.BOMRef)
	}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: program.BOMRef, Dependencies: &needs}}
	return bom
}

func (r *release) spdx(p platform, all []module, sum string) *v2_3.Document {
	program := &v2_3.Package{
		PackageName: "etcdshift", PackageSPDXIdentifier: "etcdshift", PackageVersion: r.version, PackageFileName: p.program(),
		PackageDownloadLocation: homepage, PackageLicenseConcluded: licence, PackageLicenseDeclared: licence, PackageCopyrightText: "NOASSERTION",
		PackageChecksums: []common.Checksum{{Algorithm: common.SHA256, Value: sum}}, PrimaryPackagePurpose: "APPLICATION",
		PackageExternalReferences: reference(modulePath, r.version),
	}
	doc := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: r.name(p),
		DocumentNamespace: homepage + "/spdx/" + r.name(p) + "/" + sum,
		CreationInfo: &v2_3.CreationInfo{
			Created: r.date.Format(time.RFC3339), Creators: []common.Creator{{CreatorType: "Organization", Creator: "the etcdshift authors"}},
		},
		Packages:      []*v2_3.Package{program},
		Relationships: []*v2_3.Relationship{relation("DOCUMENT", "DESCRIBES", "etcdshift")},
	}
	id := strings.NewReplacer("/", "-", "_", "-", "~", "-", "+", "-")
	for _, m := range all {
		name := common.ElementID("go-" + id.Replace(m.path))
		doc.Packages = append(doc.Packages, &v2_3.Package{
			PackageName: m.path, PackageSPDXIdentifier: name, PackageVersion: m.version, PackageDownloadLocation: "NOASSERTION",
			PackageLicenseConcluded: m.expression(), PackageLicenseDeclared: m.expression(), PackageCopyrightText: "NOASSERTION",
			PackageExternalReferences: reference(m.path, m.version),
		})
		doc.Relationships = append(doc.Relationships, relation("etcdshift", "STATIC_LINK", name))
	}
	return doc
}

func reference(path, version string) []*v2_3.PackageExternalReference {
	return []*v2_3.PackageExternalReference{{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: purl(path, version)}}
}

func relation(from common.ElementID, is string, to common.ElementID) *v2_3.Relationship {
	return &v2_3.Relationship{RefA: common.DocElementID{ElementRefID: from}, Relationship: is, RefB: common.DocElementID{ElementRefID: to}}
}
