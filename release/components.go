package main

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

const modulePath = "github.com/etcdshift/etcdshift"

// components writes a CycloneDX list of the components of each program.
func (r *release) components(context.Context) error {
	for _, p := range r.platforms {
		sum, err := sumOf(r.program(p))
		if err != nil {
			return err
		}
		var b bytes.Buffer
		to := cyclonedx.NewBOMEncoder(&b, cyclonedx.BOMFileFormatJSON).SetPretty(true)
		if err := to.EncodeVersion(r.cycloneDX(r.linked[p], sum), cyclonedx.SpecVersion1_6); err != nil {
			return err
		}
		if err := r.write(r.name(p)+".cdx.json", b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) cycloneDX(all []module, sum string) *cyclonedx.BOM {
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, []byte(modulePath+"#"+sum)).URN() // not random
	program := component(cyclonedx.ComponentTypeApplication, modulePath, r.version, licence)
	program.Name, program.Description = "etcdshift", summary
	program.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}}
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.date.Format(time.RFC3339), Component: &program}
	var components []cyclonedx.Component
	var needs []string
	for _, m := range all {
		c := component(cyclonedx.ComponentTypeLibrary, m.path, m.version, m.expression())
		c.Scope = cyclonedx.ScopeRequired
		if m.sum != "" {
			c.Properties = &[]cyclonedx.Property{{Name: "go.sum", Value: m.sum}}
		}
		components, needs = append(components, c), append(needs, c.BOMRef)
	}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: program.BOMRef, Dependencies: &needs}}
	return bom
}

// component returns a module as specified in https://github.com/package-url/purl-spec: in lower
// case, with the + of a version escaped.
func component(kind cyclonedx.ComponentType, path, version, licences string) cyclonedx.Component {
	purl := "pkg:golang/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cyclonedx.Component{
		BOMRef: purl, Type: kind, Name: path, Version: version, PackageURL: purl,
		Licenses: &cyclonedx.Licenses{{Expression: licences}},
	}
}
