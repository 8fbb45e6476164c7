// Package english keeps the translations of kubectl's help from being loaded: the program speaks
// English, and unpacking them took 15 ms of the start of every command.
//
// The loader must be set before a package of kubectl asks for a text, which they do as they are
// initialized. This package is: of the packages that can be initialized, Go takes the one with the
// first import path, and every package of kubectl that asks is behind this one.
package english

import "k8s.io/kubectl/pkg/util/i18n"

var _ = i18n.SetLoadTranslationsFunc(func() error { return nil })
