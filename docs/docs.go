// Package docs holds the pages of this folder, for the program to print without a network.
package docs

import "embed"

// Pages has the pages by name, such as "calico-v3.md".
//
//go:embed *.md
var Pages embed.FS
