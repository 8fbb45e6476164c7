package transform

import "github.com/etcdshift/etcdshift/finding"

// The codes that Run reports, and the codes common to several migrations.
var (
	CodeRawFile           = finding.Lookup("raw-file")
	CodeDataDir           = finding.Lookup("data-directory")
	CodeCompressed        = finding.Lookup("compressed")
	CodeFreeList          = finding.Lookup("free-list")
	CodeBumpTooLarge      = finding.Lookup("bump-too-large")
	CodeLargeValue        = finding.Lookup("large-value")
	CodeUnsupportedLayout = finding.Lookup("unsupported-layout")
	CodeFinalizers        = finding.Lookup("finalizers-not-run")
	CodeUnknownFields     = finding.Lookup("unknown-fields")
	CodeInvalidObject     = finding.Lookup("invalid-object")
	CodeAddress           = finding.Lookup("address-in-use")
	CodeNameTaken         = finding.Lookup("name-taken")
	CodeWouldBePlaintext  = finding.Lookup("would-be-plaintext")
)
