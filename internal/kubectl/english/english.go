// Package english prevents loading the translations of kubectl's help: the program prints only
// English, and unpacking translations added 15 ms to the start of every command.
//
// The loader must be set before a kubectl package requests a text during its initialization. Of the
// packages ready for initialization, Go takes the one with the first import path, and all kubectl
// packages that request texts sort after this package.
package english

import "k8s.io/kubectl/pkg/util/i18n"

var _ = i18n.SetLoadTranslationsFunc(func() error { return nil })
